import Primitives
import Session

/// All limits of the local API. Every application with access to the socket can use up these limits, within the share
/// of its user. See docs/local-api.md, “Limits”.
public enum LocalLimits {
  /// The versions of the protocol that this daemon speaks.
  public static let versions: ClosedRange<UInt16> = 1...1
  /// The number of clients at once. `ShareRule` divides this limit among the users, and also the limits of services and
  /// sessions. A single user gets at most 38 clients. 8 are reserved for the operator (root and the daemon's own user).
  public static let clientsMax = 64
  static let clients = ShareRule(capacity: clientsMax, reserve: 8, factor: 2)
  /// The number of services of all clients, and the bytes of all services in the node's advertisement. A single user
  /// gets at most 10 services and 1,094 bytes.
  static let services = ShareRule(capacity: Limits.servicesMax, reserve: 2, factor: 2)
  static let serviceBytes = ShareRule(capacity: SessionLimits.serviceBytesMax, reserve: 256, factor: 2)
  /// The number of sessions of all clients. A single user gets at most 18 sessions.
  static let sessions = ShareRule(capacity: SessionLimits.sessionsMax, reserve: 6, factor: 2)
  /// The time within which a new client must send its hello.
  public static let helloTime = TimeSpan.seconds(5)
  /// The time within which the rest of a packet must arrive after its beginning. The limit does not apply while the
  /// daemon does not read from the client.
  public static let packetTime = TimeSpan.seconds(60)
  /// The maximum numbers of services, sessions and browses of one client at once.
  public static let servicesMax = 8
  public static let sessionsMax = 16
  public static let browsesMax = 8
  /// The number of message results that one client awaits at once: one result for each recipient of a message in
  /// flight.
  public static let flightsMax = 256
  /// The number of streams of one client at once, including streams that members opened. The members on one node
  /// together may open no more streams than then remain free.
  ///
  /// The limit is enough for a session of eight members in which each member sends a file to each other member: 28
  /// streams, two for each transfer.
  public static let streamsMax = 32
  /// The maximum number of bytes of a stream in one packet.
  public static let streamBytesMax = 4_096
  /// The size of a full stream-data packet to a client: length, type, number, byte count, data.
  public static let streamPacketBytesMax = 4 + 1 + 4 + 4 + streamBytesMax
  /// The size of a full stream-data packet from a client, which also has a request number.
  public static let streamRequestBytesMax = streamPacketBytesMax + 4
  /// The smallest increase of a stream's write limit that is reported to the client, in bytes.
  static let streamRoomBytes = SessionLimits.streamTurnBytes / 4
  /// The maximum size of a packet without its length field, in bytes. A message of maximum size with the addresses of
  /// all members fits.
  public static let packetBytesMax = 66_560
  /// The maximum work in one pass of the event loop, for all clients of a user, or for one client of the operator. The
  /// unit is a message to one member. Other requests are counted as `workOfRequest`, because some need a signature.
  public static let workPerCall = 256
  static let workOfRequest = 32
  /// The rate of signatures for the requests of one user. Making one signature takes 3.4 million instructions on
  /// aarch64 (counted by QEMU: mbedTLS 3.6), which is 1.74 ms on a Raspberry Pi 4. Opening a session costs two
  /// signatures. The operator has no rate limit.
  static let signaturesPerUser = TokenRate(perSecond: 20, burst: 64)
  /// The rate of signatures for all users together. Signing at this rate costs less than a fifth of the time of a
  /// Raspberry Pi 4's processor. Waiting users take turns.
  static let signaturesOfAll = TokenRate(perSecond: 100, burst: 128)
  /// The longest packet, in bytes without its length field, that a client may send at any time. A longer packet needs a
  /// slot; see `LongPacketSlots`.
  public static let shortPacketBytesMax = 4_352
  /// The number of slots for longer packets from clients. A single user gets at most 2 of these slots, and one slot is
  /// reserved for the operator.
  public static let longPacketsMax = 4
  static let longPackets = ShareRule(capacity: longPacketsMax, reserve: 1, factor: 2)
  /// The time after which a client loses its slot for a longer packet, if another client waits for a slot.
  public static let longPacketTime = TimeSpan.seconds(10)
  /// If a client has left more bytes of answers unread than this, no request is read from the client.
  public static let repliesBytesMax = 2_048
  /// When this many bytes are queued for a client, no further packet is added before they are written. `largeBytesMax`
  /// describes the exception to this limit.
  public static let batchBytesMax = 4_096
  /// The maximum number of bytes that are read from or written to a client at once, while the client has one of
  /// `largeMax` slots for large reads and writes. Other clients are limited by `shortPacketBytesMax` and
  /// `batchBytesMax`. The packets for all buffered turns of a stream (`SessionLimits.streamTurnsMax`) fit.
  public static let largeBytesMax =
    SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes / streamBytesMax * streamRequestBytesMax
  public static let largeMax = 4
  /// The rule by which users share the slots for large packets. A single user gets at most 2 of these slots, and one
  /// slot is reserved for the operator.
  public static let large = ShareRule(capacity: largeMax, reserve: 1, factor: 2)
  /// The maximum number of bytes of a member's certificates in one packet to a client, including their length fields. A
  /// longer chain is truncated to the first certificates that fit, because the packet needs memory until the client
  /// reads.
  public static let certificatesBytesMax = 6_144
  /// The bytes that each message uses of the client's window in addition to its content.
  public static let windowOverheadBytes = 64
  /// The maximum bytes of waiting unreliable messages, in one session and for all clients. Further unreliable messages
  /// are dropped. Each message is counted with `SessionLimits.messageOverheadBytes` in addition to its content.
  /// Reliable messages use the pools of `SessionLimits` instead.
  public static let unreliableBytesMax = 65_536
  public static let unreliableBytesOfAll = 262_144
  /// The rule for the clients of one user: together at most four times the free bytes, which is 0.8 of the total for a
  /// single user.
  static let unreliable = ShareRule(capacity: unreliableBytesOfAll, reserve: 4_096, factor: 4)
  /// The longest time until a client is notified to retry a message for which a member had no room.
  public static let retryTime = TimeSpan.seconds(1)
  /// The maximum length of the name of an application, in bytes of UTF-8.
  public static let instanceBytesMax = 63
}

/// The maximum memory of the local API, in bytes. The host adds these numbers to its ledger of all memory (`Ledger`).
public enum LocalMemory {
  private static let arrayOverheadBytes = 48
  /// The memory of one client: its objects without the members of its sessions, its unread answers, and one packet in
  /// each direction. Apart from messages, the longest packet to a client is the request to decide on a member.
  public static let client =
    MemoryLayout<ClientRecord.Flight>.stride * LocalLimits.flightsMax
    + (MemoryLayout<LocalBrowse>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes) * LocalLimits.browsesMax
    + (MemoryLayout<ClientRecord.Service>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes)
    * LocalLimits.servicesMax
    + LocalLimits.repliesBytesMax + LocalLimits.batchBytesMax + LocalLimits.shortPacketBytesMax + 128
    + LocalLimits.certificatesBytesMax + LocalLimits.sessionsMax * 256
  /// The guaranteed buffer of one stream, in blocks (`ByteBlocks`). The first and the last block may be used only in
  /// part.
  public static let stream =
    (Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes + 2) * (ByteBlocks.blockBytes + arrayOverheadBytes)
    + 256
  /// The buffer that all streams share, in addition to the guaranteed buffer of each stream.
  public static let streamsShared =
    Int(SessionLimits.streamBytesMax) / ByteBlocks.blockBytes * (ByteBlocks.blockBytes + arrayOverheadBytes)
    - SessionLimits.streamsMax * Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes
    * (ByteBlocks.blockBytes + arrayOverheadBytes)
  /// The memory of one session: its members, including former members whose departure was not yet reported to the
  /// client.
  public static let session =
    SessionLimits.recordsMax
    * (MemoryLayout<LocalMember>.stride + SessionLimits.farewellBytesMax + arrayOverheadBytes)
  /// An invitation that waits for its client, with its context.
  public static let invitation =
    MemoryLayout<ClientRecord.ReceivedInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
}
