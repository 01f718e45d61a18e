import Frame
import Primitives

/// The limits of sessions. docs/security.md lists which side can fill each table, and docs/protocol.md, section 16,
/// what happens at each limit.
public enum SessionLimits {
  /// The maximum number of concurrent sessions of a node, including sessions that the node is leaving. Local
  /// applications open sessions, and the users of these applications share this number (`LocalLimits.sessions`).
  public static let sessionsMax = 32
  /// The lowest, highest and default value of a session's member limit. The founder chooses the limit.
  public static let membersMin = 2
  public static let membersMax = 64
  public static let membersDefault = 8
  /// Addresses that a session has ever admitted, including those of all sessions that were merged into it. A table of
  /// this size fits one message, even if every address has left with the longest farewell.
  public static let recordsMax = 106
  /// Sessions merged into one session, including the session whose id stays. 64 members that first form groups of two
  /// have 32 sessions.
  public static let originsMax = 32
  /// The maximum depth of a ticket (a signed membership): the number of admissions from the founder to the member.
  public static let depthMax: UInt8 = 63
  /// The maximum size of an encoded table, in bytes.
  public static let tableBytesMax = 64_512

  /// The maximum size of all services of a node in its advertisement, in bytes. Each service uses `Service.byteCount`.
  public static let serviceBytesMax = Advertisement.bodyBytesMax - 1

  /// The maximum size of an invitation's context, in bytes. The context is opaque data of the inviting application.
  public static let contextBytesMax = 4_096
  /// The maximum size of the explanation in an answer to an invitation, in bytes of UTF-8.
  public static let explanationBytesMax = 200
  /// The maximum size of the farewell text in a departure, in bytes of UTF-8.
  public static let farewellBytesMax = 63
  /// Concurrent invitations received from one node, and concurrent invitations sent to one node. A further received
  /// invitation evicts the inviter's oldest one.
  public static let invitationsPerNodeMax = 4
  /// The slots for invitations to one node. Users share three of these slots, and one slot is reserved for the
  /// operator. A user with fewer invitations evicts the oldest invitation of the user with the most. An invitation of a
  /// user with as many can be evicted only after its default validity.
  static let invitationsPerNode = FairSlots(capacity: invitationsPerNodeMax, standTime: invitationTimeDefault)
  /// The rate of invitations of one user to one node that end within `invitationStandTime`. The invited node charges
  /// these short invitations to this node. Too many short invitations from one user would make the invited node answer
  /// other users here `busy`. The rate does not apply to the operator.
  static let briefInvitations = TokenRate(perSecond: 1, burst: 3)
  /// Concurrent invitations to one service. Unknown nodes (strangers) use at most three quarters of these slots. The
  /// last eighth is reserved for pinned nodes. The slots are shared by the links over which the nodes are reached, then
  /// by the nodes of a link (`FairSlots`).
  public static let invitationsPerServiceMax = 32
  /// The age until which an invitation is charged to its inviter even if it has ended. So one node asks an application
  /// at most `invitationsPerNodeMax` times within this age. An invitation that led to a connection is not charged.
  public static let invitationStandTime = TimeSpan.seconds(1)
  /// Nodes that are remembered as former members: a member on the node was connected before. Tables reserve slots for
  /// these nodes that unknown nodes cannot use. Every member that connects adds its node to the list.
  public static let formerMembersMax = 64
  /// The slots for invitations that a node has sent. One application alone can use 17 of these slots. `invitationsMax`
  /// is also the number of slots for received invitations.
  static let invitations = Shares(sure: 1, rest: 32)
  public static let invitationsMax = invitations.all
  /// The default and the maximum validity of an invitation.
  public static let invitationTimeDefault = TimeSpan.seconds(30)
  public static let invitationTimeMax = TimeSpan.seconds(3_600)
  /// Addresses to which the applications of a node connect at the same time (`Sessions.connect`). One application alone
  /// can use 17 of these slots.
  static let introductions = Shares(sure: 1, rest: 32)
  public static let introductionsMax = introductions.all
  /// The time that an invitee waits beyond the inviter's deadline, because the welcome can take this long to arrive.
  /// Also the time for which the end of an invitation is still sent.
  public static let settleTime = TimeSpan.seconds(5)

  /// The time that an application with auto-join waits for an application with a lower address to invite. After this
  /// time, the waiting application invites.
  public static let takeOverTime = TimeSpan.seconds(5)
  /// The time that an application without other members waits for the invitation of a session with members. After this
  /// time, the waiting application invites.
  public static let aloneTime = TimeSpan.milliseconds(500)
  /// The maximum time by which the growth of a session postpones an auto-join invitation to an address.
  public static let growTime = TimeSpan.seconds(30)
  /// The time that an invited address has to answer before auto-join invites the next address too.
  public static let answerTime = TimeSpan.seconds(2)
  /// The age from which a sent invitation can be evicted. This age applies to auto-join invitations without an answer,
  /// and to accepted invitations whose invitee is not a member yet.
  public static let giveWayTime = TimeSpan.seconds(10)
  /// The time that an application with auto-join waits for the welcome to an invitation that it accepted.
  public static let welcomeTime = TimeSpan.seconds(10)
  /// The pause between two answers to one invitation, which a node can repeat as often as it likes.
  static let answerPause = TimeSpan.seconds(1)
  /// The pause between two merges that auto-join offers: a signature, which other nodes cause by their invitations.
  static let offerPause = TimeSpan.milliseconds(20)
  /// The maximum pause between two auto-join invitations to one address.
  public static let gatherPauseMax = TimeSpan.seconds(300)
  /// Concurrent auto-join invitations of one session, and to one node.
  public static let gatherInvitationsPerSessionMax = 8
  public static let gatherInvitationsPerNodeMax = 3
  /// The slots for auto-join invitations to one node. Users share these slots as in `invitationsPerNode`. Invitations
  /// of other users can be evicted for those of the operator.
  static let gatherInvitationsPerNode = FairSlots(capacity: gatherInvitationsPerNodeMax, standTime: giveWayTime)
  /// Addresses that a node's applications gather for auto-join, in all their sessions. The services of all nodes can be
  /// more than the slots for gathered addresses. One application alone can gather 544 addresses. An application at its
  /// limit evicts one of its own addresses (`Sessions.gather`).
  static let gatherings = Shares(sure: 32, rest: 1_024)
  public static let gatheringsMax = gatherings.all
  /// Messages with records whose signatures are being checked at the same time, at most one for each link. Other
  /// messages wait in their channels. Large tables of three links, up to 10 s each, delay the tables of all other
  /// links.
  public static let tablesInCheckMax = 3
  /// The size up to which a message is too short to contain a record, in bytes.
  public static let messageBytesWithoutRecords = 256
  /// The bytes of a table whose decoding and sorting are charged as one signature check.
  public static let tableBytesPerCheck = 16_384
  /// The number of examined records that is charged as one signature check. The checks of their
  /// signatures are charged separately.
  public static let looksPerCheck = 64
  /// The number of signature checks that take as long as making one signature.
  public static let checksPerSignature = 2
  /// Verified signatures that a node remembers. A full session has fewer signatures.
  public static let verifiedMax = 512

  /// The interval of handshake messages (meet) to a reachable member that is not connected yet.
  public static let sweepTime = TimeSpan.seconds(10)
  /// The time by which `sweepTime` is longer at the end with the higher address, so that the two ends do not repeat at
  /// once.
  public static let sweepYield = TimeSpan.seconds(2)
  /// The time that an unknown address has to send its records before its table is requested.
  public static let askPause = TimeSpan.milliseconds(500)
  /// The minimum interval between two snapshots (complete tables) to one member.
  public static let tableTime = TimeSpan.seconds(5)
  /// The time for which a table must be unchanged before a snapshot is sent to a member with another digest.
  public static let quietTime = TimeSpan.seconds(1)
  /// The time after which a member whose digest still differs is sent a snapshot of a table that keeps changing.
  public static let unlikeTime = TimeSpan.seconds(10)
  /// The minimum interval of snapshots of an unchanged table to one member, whatever digest the member reports.
  public static let sameTableTime = TimeSpan.seconds(60)
  /// The time for which a node that left a session sends its departure to members that were unreachable.
  public static let leavingTime = TimeSpan.seconds(60)
  /// The maximum time for which a departure notice to a member waits for stream ends. The awaited stream ends are those
  /// that the application knew when it left, and that the member has not received. While the notice waits, the streams
  /// use slots of `streamsMax`.
  public static let owingTime = TimeSpan.seconds(30)
  /// Non-members of one session that wait to be sent a table. Any node that knows the session's id can fill these
  /// slots. Nodes share these slots in the same way as slots for invitations (`FairSlots`).
  public static let strangersMax = 16
  /// Remote members that are being notified, at the same time, that this node is not in their session. Nodes share the
  /// slots for such members in the same way as slots for invitations.
  public static let staleMax = 4
  /// The number of `staleMax` slots for the members on one node.
  public static let stalePerNodeMax = 2
  /// Pending members (welcomed, not in the table yet) that a welcome lists. A welcome with these and a full table fits
  /// one message.
  public static let pendingMembersMax = 16
  /// Table messages to one pending member, at intervals of `sweepTime`.
  public static let greetingsMax = 6
  /// The number of wrong signatures in tables of one node after which its tables are ignored for `forgerTime`.
  public static let forgeriesMax = 3
  /// The time for which the tables of a node with `forgeriesMax` wrong signatures are ignored.
  public static let forgerTime = TimeSpan.seconds(60)
  /// Nodes whose wrong signatures are counted at the same time.
  public static let offendersMax = 64

  /// The maximum data bytes of one reliable message in a session.
  public static let messageBytesMax = 65_000
  /// The maximum data bytes of one unreliable message. A message of this size fits one sealed frame over every bearer
  /// (`Limits.framePayloadBytesFloor`). So a message that fits one path fits every path.
  public static let unreliableBytesMax = 1_900
  /// The memory that a message uses in addition to its data while it waits for its application, in bytes. The sender
  /// of a message needs credit for these bytes too.
  public static let messageOverheadBytes = 192
  /// The size of the share pool, in bytes: memory for waiting messages that is divided among the members of all
  /// sessions of a node. The overhead of messages is included.
  public static let sharePoolBytes: UInt64 = 768 * 1024
  /// The size of the borrow pool, in bytes: memory for waiting messages that is reserved on request. The overhead of
  /// messages is included.
  public static let loanPoolBytes: UInt64 = 1024 * 1024
  /// The rules by which the users of this node share the two pools. By these rules, one user alone gets two thirds of
  /// the share pool and three quarters of the borrow pool. The borrow pool reserves buffer space for the longest
  /// message to the operator's applications.
  static let shares = ShareRule(capacity: Int(sharePoolBytes), factor: 2)
  static let loans = ShareRule(capacity: Int(loanPoolBytes), reserve: 65_536, factor: 4)
  /// The time after which requested credit that the application has not used is returned.
  public static let giveBackTime = TimeSpan.seconds(10)
  /// The time after which a reservation that another node has not used can be withdrawn.
  public static let takeBackTime = TimeSpan.seconds(60)
  /// Messages without a delivery result. A message to n members uses n of these slots. One application is guaranteed
  /// slots for one message to all members of the largest session. An application that is alone can use 319 slots.
  static let unsentMessages = Shares(sure: membersMax - 1, rest: 512)
  public static let unsentMessagesMax = unsentMessages.all
  /// The time without reading after which an application with unread messages is reported as paused.
  public static let pauseTime = TimeSpan.seconds(30)

  /// Streams from one member to another that are not over. Streams that the other member opened have a separate limit.
  public static let streamsPerPairMax = 16
  /// Streams of a node in all its sessions. A stream that another node opens is refused if the streams with that node
  /// are as many as the free slots. A single user has at most 59 streams; 8 slots are reserved for the operator.
  public static let streamsMax = 96
  static let streams = ShareRule(capacity: streamsMax, reserve: 8, factor: 2)
  /// The maximum size of a stream's name, in bytes of UTF-8.
  public static let streamNameBytesMax = 63
  /// The maximum bytes that a stream sends in one turn. The sender buffers as many for each stream.
  public static let streamTurnBytes = 15_360
  /// The turns that are buffered for a stream whose receiver reads. These turns include bytes that the writing
  /// application was promised and has not written.
  public static let streamTurnsMax = 4
  /// Streams of a node with more than one buffered turn, at the same time.
  public static let streamsAheadMax = 6
  /// The rule by which users share `streamsAheadMax`. One user alone can have 4 of these streams; one slot is reserved
  /// for the operator.
  static let streamsAhead = ShareRule(capacity: streamsAheadMax, reserve: 1, factor: 2)
  /// The maximum bytes of a stream in flight or unread, once its application has read `streamWindowFirst` bytes.
  public static let streamWindow: UInt64 = 136 * 1024
  /// The maximum bytes of a stream in flight or unread, before its application has read as many bytes.
  public static let streamWindowFirst: UInt64 = 40 * 1024
  /// The bytes in flight or unread that every stream is guaranteed.
  public static let streamWindowSure: UInt64 = 8 * 1024
  /// The maximum bytes of all streams of a node in flight or unread. Each stream has `streamWindowSure` of these bytes;
  /// the remainder is a common pool.
  public static let streamBytesMax: UInt64 = 1280 * 1024
  /// The maximum part of the common pool for one user's streams, as a multiple of what is free. A first window
  /// (`streamWindowFirst`) is reserved for the operator.
  static let streamBytesFactor = 2
  /// The maximum unsent stream bytes in the bulk lane to one node, on any path. The value is low so that the next
  /// stream's turn comes soon.
  public static let streamLaneBytes = 32 * 1024
  /// The maximum unsent stream bytes in the bulk lane to one node, on a path with a larger congestion window.
  public static let streamLaneBytesMax = 64 * 1024
}
