import Frame
import Primitives

/// All limits of sessions. Who can use a place, and what happens beyond it, is in docs/protocol.md, "Limits".
public enum SessionLimits {
  /// Sessions that a node is in at once, those included that it is leaving: opened by its applications, whose users share
  /// them (`LocalLimits.sessions`).
  public static let sessionsMax = 32
  /// Members of a session at once: what its founder chose, within these.
  public static let membersMin = 2
  public static let membersMax = 64
  public static let membersDefault = 8
  /// Addresses that a session has ever admitted, in all the sessions that were merged into it. A table of so many,
  /// all of which have left with the longest text, fits one message.
  public static let recordsMax = 106
  /// Sessions merged into one, with the one that stays: as many groups of two as a session has members.
  public static let originsMax = 32
  /// The most links of a chain of tickets.
  public static let depthMax: UInt8 = 63
  /// A table as it is sent, in bytes.
  public static let tableBytesMax = 64_512

  /// All services of a node in its advertisement, in bytes: each as `Service.byteCount`.
  public static let serviceBytesMax = Advertisement.bodyBytesMax - 1

  /// The context of an invitation, opaque bytes of the inviter.
  public static let contextBytesMax = 4_096
  /// Bytes of UTF-8 of the explanation in an answer.
  public static let explanationBytesMax = 200
  /// Bytes of UTF-8 with which a member leaves.
  public static let farewellBytesMax = 63
  /// Invitations from one node, and to one node, at once. An inviter's oldest gives way to its newer one.
  public static let invitationsPerNodeMax = 4
  /// Those to one node. Users share three of them, and one is kept for the operator: the oldest of the user with most gives way
  /// to a user who has fewer. To a user who would have as many an invitation gives way when it has stood for the time that it
  /// stands by default.
  static let invitationsPerNode = FairPlaces(capacity: invitationsPerNodeMax, standTime: invitationTimeDefault)
  /// Invitations of a user to one node that end within `invitationStandTime`: there they count for this node, whose other users
  /// would be answered busy. The operator has no such rate.
  static let briefInvitations = TokenRate(perSecond: 1, burst: 3)
  /// Invitations to one service at once. Strangers fill three quarters of the places, shared by the links over which they are
  /// reached and then by node (`FairPlaces`); the last eighth is for pinned nodes alone.
  public static let invitationsPerServiceMax = 32
  /// An invitation that this node or the inviter ended counts for the inviter until it is as old: a key asks an application no more
  /// than `invitationsPerNodeMax` times in that time. One that led to a connection does not count.
  public static let invitationStandTime = TimeSpan.seconds(1)
  /// Nodes that are remembered as former members, whose places strangers cannot take. An application's sessions fill them.
  public static let formerMembersMax = 64
  /// Invitations that a node has sent, and those that it has received. Of those that it has sent one application alone gets 17.
  static let invitations = Shares(sure: 1, rest: 32)
  public static let invitationsMax = invitations.all
  /// How long an invitation stands when the application names no time, and at most.
  public static let invitationTimeDefault = TimeSpan.seconds(30)
  public static let invitationTimeMax = TimeSpan.seconds(3_600)
  /// Addresses at once that applications of a node connect to: one alone to 17.
  static let introductions = Shares(sure: 1, rest: 32)
  public static let introductionsMax = introductions.all
  /// How much longer than the inviter the invitee waits: a message may take as long.
  public static let settleTime = TimeSpan.seconds(5)

  /// How long the others of those that gather each other leave it to the lowest address to invite.
  public static let takeOverTime = TimeSpan.seconds(5)
  /// How long whoever is alone leaves it to a session with members to invite it.
  public static let aloneTime = TimeSpan.milliseconds(500)
  /// A session that grows postpones the turn of those that would take over, for so long at most.
  public static let growTime = TimeSpan.seconds(30)
  /// How long a gathered address may take to answer before the next one is invited too.
  public static let answerTime = TimeSpan.seconds(2)
  /// After this time without an answer an invitation gives its place to another one.
  public static let giveWayTime = TimeSpan.seconds(10)
  /// How long an application that gathers waits for the welcome of whom it accepted.
  public static let welcomeTime = TimeSpan.seconds(10)
  /// The longest pause between two invitations of an address that is gathered.
  public static let gatherPauseMax = TimeSpan.seconds(300)
  /// Invitations to gathered addresses at once: of a session, and to a node.
  public static let gatherInvitationsPerSessionMax = 8
  public static let gatherInvitationsPerNodeMax = 3
  /// Those to a node: users share them as `invitationsPerNode`, and each gives way to the operator's.
  static let gatherInvitationsPerNode = FairPlaces(capacity: gatherInvitationsPerNodeMax, standTime: giveWayTime)
  /// Addresses that a node's applications gather, in all their sessions: all services of all nodes would be more. One
  /// application alone gathers 544. With so many one of its own that was invited in vain gives way.
  static let gatherings = Shares(sure: 32, rest: 1_024)
  public static let gatheringsMax = gatherings.all
  /// Messages with records whose signatures are being checked, one of a link: others wait in their channels. While three
  /// links have big tables in check, which takes each 10 s at most, tables of others wait.
  public static let tablesInCheckMax = 3
  /// A message so short has no records.
  public static let messageBytesWithoutRecords = 256
  /// To read so many bytes of a table and to sort them in counts as one check, and so does looking at so many records in vain.
  public static let tableBytesPerCheck = 16_384
  public static let looksPerCheck = 64
  /// To sign takes the time of so many checks.
  public static let checksPerSignature = 2
  /// Signatures that a node remembers as verified: more than a session with all its members has.
  public static let verifiedMax = 512

  /// How often a member is met again that is in reach and not connected. The one with the higher address waits longer.
  public static let sweepTime = TimeSpan.seconds(10)
  public static let sweepYield = TimeSpan.seconds(2)
  /// How long a stranger is given to introduce itself before it is asked.
  public static let askPause = TimeSpan.milliseconds(500)
  /// A whole table goes to one member so often at most.
  public static let tableTime = TimeSpan.seconds(5)
  /// So long a table must not have changed before a member whose digest differs is sent the whole of it; and how
  /// long that is waited for.
  public static let quietTime = TimeSpan.seconds(1)
  public static let unlikeTime = TimeSpan.seconds(10)
  /// The same one, whatever the member says it has.
  public static let sameTableTime = TimeSpan.seconds(60)
  /// How long a member that left tells others, who were out of reach.
  public static let leavingTime = TimeSpan.seconds(60)
  /// How long its farewell to a member waits until that has the ends of streams that the application knew when it left. They keep
  /// their places of the node's streams (`streamsMax`) meanwhile.
  public static let owingTime = TimeSpan.seconds(30)
  /// Addresses per session that are no members and are to be sent a table. Each node that knows the session's id can fill it; the
  /// places are shared as those of invitations.
  public static let strangersMax = 16
  /// Members at other nodes that are told that a session is none of this node's: at once, shared as the places of invitations,
  /// and of one node.
  public static let staleMax = 4
  public static let stalePerNodeMax = 2
  /// Addresses that a welcome names because they were welcomed at the same time: with a whole table they fit one message.
  public static let newcomersMax = 16
  /// How often an address is told of this one that was welcomed at the same time, each time after `sweepTime`.
  public static let greetingsMax = 6
  /// So many wrong signatures from one node, and its tables are ignored for `forgerTime`.
  public static let forgeriesMax = 3
  public static let forgerTime = TimeSpan.seconds(60)
  public static let forgersMax = 64

  /// Data bytes of one message in a session.
  public static let messageBytesMax = 65_000
  /// Data bytes of one unreliable message: what fits one sealed frame over every bearer (`Limits.framePayloadBytesFloor`), so that
  /// what arrives on one path arrives on any.
  public static let unreliableBytesMax = 1_900
  /// Each message counts so many bytes more for credit: what it takes beside its bytes while it waits.
  public static let messageOverheadBytes = 192
  /// Room for messages that wait for a node's applications, with that overhead: what is divided among the members of all
  /// their sessions, and what is lent to those that ask for more.
  public static let sharePoolBytes: UInt64 = 768 * 1024
  public static let loanPoolBytes: UInt64 = 1024 * 1024
  /// What users share of both. One alone gets two thirds of the shares and 0.75 of the loans, of which the operator is kept
  /// room for the longest message.
  static let shares = ShareRule(capacity: Int(sharePoolBytes), factor: 2)
  static let loans = ShareRule(capacity: Int(loanPoolBytes), reserve: 65_536, factor: 4)
  /// How long an application may keep credit that it asked for and does not use; and how long another node may.
  public static let giveBackTime = TimeSpan.seconds(10)
  public static let takeBackTime = TimeSpan.seconds(60)
  /// Messages that are not delivered yet, each member that is to get one counted. One application has for sure what a
  /// message to all members of the greatest session takes, and 319 when it is alone.
  static let unsentMessages = Shares(sure: membersMax - 1, rest: 512)
  public static let unsentMessagesMax = unsentMessages.all
  /// An application that has something to read and reads nothing for so long is called paused.
  public static let pauseTime = TimeSpan.seconds(30)

  /// Streams that one of two members has opened to the other: each end counts its own.
  public static let streamsPerPairMax = 16
  /// Streams of a node. Those that one other node opens get no more places than are left. A single user has 59 at most; 8
  /// are kept for the operator.
  public static let streamsMax = 96
  static let streams = ShareRule(capacity: streamsMax, reserve: 8, factor: 2)
  /// Bytes of UTF-8 of a stream's name.
  public static let streamNameBytesMax = 63
  /// What a stream sends in a turn, and what is kept of each at the sender.
  public static let streamTurnBytes = 15_360
  /// Turns that are kept of a stream that is read, those included that the application may write at any time; and streams of
  /// which more than one turn is kept.
  public static let streamTurnsMax = 4
  public static let streamsAheadMax = 6
  /// One user alone has 4 of these; one is kept for the operator.
  static let streamsAhead = ShareRule(capacity: streamsAheadMax, reserve: 1, factor: 2)
  /// Bytes of a stream that may be on their way or unread: at most, before the application has read so many, and for sure.
  public static let streamWindow: UInt64 = 136 * 1024
  public static let streamWindowFirst: UInt64 = 40 * 1024
  public static let streamWindowSure: UInt64 = 8 * 1024
  /// The same of all streams of a node: `streamWindowSure` for each, and a pool for the rest.
  public static let streamBytesMax: UInt64 = 1280 * 1024
  /// The part of that pool for a user's streams, as a multiple of what is left for all. The operator is kept a first window.
  static let streamBytesFactor = 2
  /// Bytes of streams that a lane holds and has not sent, so that the next stream's turn comes soon: on any path, and on one
  /// on which more may be in flight.
  public static let streamLaneBytes = 32 * 1024
  public static let streamLaneBytesMax = 64 * 1024
}
