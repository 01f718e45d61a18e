import Frame
import Primitives

/// All limits of sessions. docs/protocol.md, "Limits", describes which side can use up each limit, and what happens
/// then.
public enum SessionLimits {
  /// Concurrent sessions of a node, including those that it is leaving. Its applications open them, and their users
  /// share them (`LocalLimits.sessions`).
  public static let sessionsMax = 32
  /// Members of a session at once. The founder chooses the maximum within this range.
  public static let membersMin = 2
  public static let membersMax = 64
  public static let membersDefault = 8
  /// Addresses that a session has ever admitted, including those of all sessions that were merged into it. A table of
  /// this size fits one message, even if all have left with the longest text.
  public static let recordsMax = 106
  /// Sessions in a merged session, including the one that stays: as many groups of two as a session has members.
  public static let originsMax = 32
  /// The maximum number of links in a chain of tickets.
  public static let depthMax: UInt8 = 63
  /// The maximum size of an encoded table, in bytes.
  public static let tableBytesMax = 64_512

  /// All services of a node in its advertisement, in bytes. Each counts as `Service.byteCount`.
  public static let serviceBytesMax = Advertisement.bodyBytesMax - 1

  /// The context of an invitation, in bytes: opaque data of the inviter.
  public static let contextBytesMax = 4_096
  /// The explanation in an answer, in bytes of UTF-8.
  public static let explanationBytesMax = 200
  /// The text of a departure, in bytes of UTF-8.
  public static let farewellBytesMax = 63
  /// Concurrent invitations from one node, and to one node. A newer invitation of an inviter evicts its oldest one.
  public static let invitationsPerNodeMax = 4
  /// Invitations to one node. Users share three places, and one is reserved for the operator. A user with fewer
  /// invitations evicts the oldest one of the user with the most. A user who would have as many evicts one only after
  /// its default validity.
  static let invitationsPerNode = FairPlaces(capacity: invitationsPerNodeMax, standTime: invitationTimeDefault)
  /// Invitations of a user to one node that end within `invitationStandTime`. That node counts them for this node, and
  /// would answer its other users busy. The operator has no such rate.
  static let briefInvitations = TokenRate(perSecond: 1, burst: 3)
  /// Concurrent invitations to one service. Strangers fill at most three quarters of the places. Links share them
  /// first, then nodes (`FairPlaces`). The last eighth is reserved for pinned nodes.
  public static let invitationsPerServiceMax = 32
  /// The age until which an ended invitation counts for its inviter. So a key asks an application at most
  /// `invitationsPerNodeMax` times in that time. An invitation that led to a connection does not count.
  public static let invitationStandTime = TimeSpan.seconds(1)
  /// Nodes that are remembered as former members, with places that strangers cannot take. The sessions of applications
  /// fill this list.
  public static let formerMembersMax = 64
  /// Invitations that a node has sent, and those that it has received. One application alone can have 17 sent ones.
  static let invitations = Shares(sure: 1, rest: 32)
  public static let invitationsMax = invitations.all
  /// The validity of an invitation: the default, and the maximum.
  public static let invitationTimeDefault = TimeSpan.seconds(30)
  public static let invitationTimeMax = TimeSpan.seconds(3_600)
  /// Concurrent addresses to which the applications of a node connect. One application alone can have 17.
  static let introductions = Shares(sure: 1, rest: 32)
  public static let introductionsMax = introductions.all
  /// The time by which the invitee waits longer than the inviter: a message may take as long.
  public static let settleTime = TimeSpan.seconds(5)

  /// The time that the lowest of several gathering addresses has to invite, before another one takes over.
  public static let takeOverTime = TimeSpan.seconds(5)
  /// The time that an application that is alone leaves to a session with members to invite it.
  public static let aloneTime = TimeSpan.milliseconds(500)
  /// The maximum time by which a growing session postpones the turns of others.
  public static let growTime = TimeSpan.seconds(30)
  /// The time that a gathered address has to answer before the next one is invited too.
  public static let answerTime = TimeSpan.seconds(2)
  /// The age at which an unanswered invitation may be evicted.
  public static let giveWayTime = TimeSpan.seconds(10)
  /// The time that a gathering application waits for the welcome of an inviter that it accepted.
  public static let welcomeTime = TimeSpan.seconds(10)
  /// The maximum pause between two auto-join invitations of an address.
  public static let gatherPauseMax = TimeSpan.seconds(300)
  /// Concurrent auto-join invitations: of a session, and to a node.
  public static let gatherInvitationsPerSessionMax = 8
  public static let gatherInvitationsPerNodeMax = 3
  /// Auto-join invitations to a node. Users share them like `invitationsPerNode`, and all yield to the operator's.
  static let gatherInvitationsPerNode = FairPlaces(capacity: gatherInvitationsPerNodeMax, standTime: giveWayTime)
  /// The addresses that a node's applications gather, in all their sessions. All services of all nodes would be more.
  /// One application alone can gather 544. At that limit it evicts one of its own addresses whose invitations failed.
  static let gatherings = Shares(sure: 32, rest: 1_024)
  public static let gatheringsMax = gatherings.all
  /// Messages with records whose signatures are being checked, one for each link. Others wait in their channels. If
  /// three links have large tables in check, which takes at most 10 s each, the tables of other links wait.
  public static let tablesInCheckMax = 3
  /// The size up to which a message contains no records, in bytes.
  public static let messageBytesWithoutRecords = 256
  /// Bytes of a table whose decoding and sorting count as one check.
  public static let tableBytesPerCheck = 16_384
  /// Fruitless examinations of records that count as one check.
  public static let looksPerCheck = 64
  /// The number of checks that take as long as one signature.
  public static let checksPerSignature = 2
  /// Signatures that a node remembers as verified: more than a full session has.
  public static let verifiedMax = 512

  /// The interval of handshake messages to a reachable member that is not connected.
  public static let sweepTime = TimeSpan.seconds(10)
  /// The additional interval of the end with the higher address.
  public static let sweepYield = TimeSpan.seconds(2)
  /// The time that an unknown address has to introduce itself before it is asked.
  public static let askPause = TimeSpan.milliseconds(500)
  /// The minimum interval of snapshots to one member.
  public static let tableTime = TimeSpan.seconds(5)
  /// The time for which a table must be unchanged before a member with another digest gets a snapshot.
  public static let quietTime = TimeSpan.seconds(1)
  /// The time for which digests differ after which a member gets a snapshot of a table that keeps changing.
  public static let unlikeTime = TimeSpan.seconds(10)
  /// The minimum interval of snapshots of an unchanged table to one member, whatever digest it reports.
  public static let sameTableTime = TimeSpan.seconds(60)
  /// The time for which a member that left notifies others that were unreachable.
  public static let leavingTime = TimeSpan.seconds(60)
  /// The time for which a departure notice to a member waits until the member has the stream ends that the application
  /// knew when it left. The streams keep their places (`streamsMax`) meanwhile.
  public static let owingTime = TimeSpan.seconds(30)
  /// Non-members per session that are to be sent a table. Each node that knows the session's id can fill these places;
  /// they are shared like those of invitations.
  public static let strangersMax = 16
  /// Remote members at once that are notified that this node is not in a session. The places are shared like those of
  /// invitations.
  public static let staleMax = 4
  /// The part of `staleMax` for the members on one node.
  public static let stalePerNodeMax = 2
  /// Pending members that a welcome lists. With a full table they fit one message.
  public static let newcomersMax = 16
  /// Table messages to one pending member, at intervals of `sweepTime`.
  public static let greetingsMax = 6
  /// The number of wrong signatures from one node after which its tables are ignored for `forgerTime`.
  public static let forgeriesMax = 3
  /// The time for which the tables of such a node are ignored.
  public static let forgerTime = TimeSpan.seconds(60)
  /// Nodes whose wrong signatures are counted.
  public static let forgersMax = 64

  /// Data bytes of one message in a session.
  public static let messageBytesMax = 65_000
  /// Data bytes of one unreliable message. They fit one sealed frame over every bearer
  /// (`Limits.framePayloadBytesFloor`), so a message that arrives on one path arrives on any.
  public static let unreliableBytesMax = 1_900
  /// The memory that a waiting message takes beside its data, in bytes. It counts for credit too.
  public static let messageOverheadBytes = 192
  /// The memory for waiting messages that is divided among the members of all sessions of a node, in bytes. It includes
  /// the overhead of messages.
  public static let sharePoolBytes: UInt64 = 768 * 1024
  /// The memory for waiting messages that is reserved on request, in bytes. It includes the overhead of messages.
  public static let loanPoolBytes: UInt64 = 1024 * 1024
  /// The rules by which users share the pools. One user alone gets two thirds of the share pool and 0.75 of the borrow
  /// pool. The borrow pool reserves room for the longest message of the operator.
  static let shares = ShareRule(capacity: Int(sharePoolBytes), factor: 2)
  static let loans = ShareRule(capacity: Int(loanPoolBytes), reserve: 65_536, factor: 4)
  /// The time after which an application returns requested credit that it has not used.
  public static let giveBackTime = TimeSpan.seconds(10)
  /// The time after which an unused reservation of another node may be withdrawn.
  public static let takeBackTime = TimeSpan.seconds(60)
  /// Messages that are not delivered yet, counted for each receiving member. One application is guaranteed places for a
  /// message to all members of the largest session. It can have 319 when it is alone.
  static let unsentMessages = Shares(sure: membersMax - 1, rest: 512)
  public static let unsentMessagesMax = unsentMessages.all
  /// The time without reading after which an application with unread messages counts as paused.
  public static let pauseTime = TimeSpan.seconds(30)

  /// Streams that one of two members has opened to the other. Each end counts its own.
  public static let streamsPerPairMax = 16
  /// Streams of a node. The streams that one other node opens take no more places than are left. A single user has at
  /// most 59; 8 are reserved for the operator.
  public static let streamsMax = 96
  static let streams = ShareRule(capacity: streamsMax, reserve: 8, factor: 2)
  /// The name of a stream, in bytes of UTF-8.
  public static let streamNameBytesMax = 63
  /// The bytes that a stream sends in one turn, and that the sender buffers for each stream.
  public static let streamTurnBytes = 15_360
  /// The turns that are buffered for a stream whose receiver reads, including bytes that the application may write at
  /// any time.
  public static let streamTurnsMax = 4
  /// Streams with more than one buffered turn.
  public static let streamsAheadMax = 6
  /// One user alone has 4 of these; one is reserved for the operator.
  static let streamsAhead = ShareRule(capacity: streamsAheadMax, reserve: 1, factor: 2)
  /// The maximum of bytes of a stream in flight or unread.
  public static let streamWindow: UInt64 = 136 * 1024
  /// The maximum before the application has read as many bytes of the stream.
  public static let streamWindowFirst: UInt64 = 40 * 1024
  /// The guaranteed bytes of a stream in flight or unread.
  public static let streamWindowSure: UInt64 = 8 * 1024
  /// Bytes of all streams of a node in flight or unread: `streamWindowSure` for each, and a pool for the rest.
  public static let streamBytesMax: UInt64 = 1280 * 1024
  /// The part of that pool for a user's streams, as a multiple of what is left for all. A first window is reserved for
  /// the operator.
  static let streamBytesFactor = 2
  /// Unsent bytes of streams in a lane, on any path. The number is low so that the next stream's turn comes soon.
  public static let streamLaneBytes = 32 * 1024
  /// The maximum of unsent bytes of streams in a lane, on a path with a larger congestion window.
  public static let streamLaneBytesMax = 64 * 1024
}
