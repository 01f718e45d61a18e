import Primitives
import Session

/// All limits of the local API. Any application with access can use places, within the share of its user. See
/// docs/local-api.md, “Limits”.
public enum LocalLimits {
  /// The versions of the protocol that this daemon speaks.
  public static let versions: ClosedRange<UInt16> = 1...1
  /// Clients at once. Users share them, and the following limits, by `ShareRule`. A single user has 38, and 8 are
  /// reserved for the operator (root and the daemon's own user).
  public static let clientsMax = 64
  static let clients = ShareRule(capacity: clientsMax, reserve: 8, factor: 2)
  /// Services of all clients, and their bytes in the node's advertisement. A single user has 10 services and 1,094
  /// bytes.
  static let services = ShareRule(capacity: Limits.servicesMax, reserve: 2, factor: 2)
  static let serviceBytes = ShareRule(capacity: SessionLimits.serviceBytesMax, reserve: 256, factor: 2)
  /// Sessions of all clients. A single user has 18.
  static let sessions = ShareRule(capacity: SessionLimits.sessionsMax, reserve: 6, factor: 2)
  /// The timeout for a client's hello.
  public static let helloTime = TimeSpan.seconds(5)
  /// The timeout for the rest of a packet that has begun, while the client's packets are read.
  public static let packetTime = TimeSpan.seconds(60)
  /// Services, sessions and browses of one client at once.
  public static let servicesMax = 8
  public static let sessionsMax = 16
  public static let browsesMax = 8
  /// Message results that one client awaits, one for each recipient of a message in flight.
  public static let flightsMax = 256
  /// Streams of one client at once, including those that members opened. The members of one node may open no more than
  /// they leave free.
  ///
  /// It is enough for a session of eight members in which everyone sends a file to everyone: 28 streams, two for each
  /// transfer.
  public static let streamsMax = 32
  /// Bytes of a stream in one packet.
  public static let streamBytesMax = 4_096
  /// The size of a full stream-data packet to a client: length, type, number, byte count, data.
  public static let streamPacketBytesMax = 4 + 1 + 4 + 4 + streamBytesMax
  /// The size of a full stream-data packet from a client, which also has a request number.
  public static let streamRequestBytesMax = streamPacketBytesMax + 4
  /// The smallest increase of a stream's write limit that is reported.
  static let streamRoomBytes = SessionLimits.streamTurnBytes / 4
  /// A packet without its length field. A message to all members of a session fits.
  public static let packetBytesMax = 66_560
  /// The work in one wake-up for all clients of a user, or for one client of the operator. The unit is a message to one
  /// member. Other requests count more, because some cost a signature.
  public static let workPerCall = 256
  static let workOfRequest = 32
  /// The rate of signatures for the requests of one user. One signature takes 3.4 million instructions on aarch64
  /// (counted by QEMU: mbedTLS 3.6), which is 1.74 ms on a Raspberry Pi 4. Opening a session costs two. The operator
  /// has no rate.
  static let signaturesPerUser = TokenRate(perSecond: 20, burst: 64)
  /// The rate for all users together, less than a fifth of that processor's time. Waiting users take turns.
  static let signaturesOfAll = TokenRate(perSecond: 100, burst: 128)
  /// The longest packet, in bytes, that a client may send without a place for long packets.
  public static let shortPacketBytesMax = 4_352
  /// Places for longer packets from clients. A single user has 2, and one is reserved for the operator.
  public static let longPacketsMax = 4
  static let longPackets = ShareRule(capacity: longPacketsMax, reserve: 1, factor: 2)
  /// The timeout for a longer packet while another client waits for a place.
  public static let longPacketTime = TimeSpan.seconds(10)
  /// Bytes of unread answers above which no request is read from a client.
  public static let repliesBytesMax = 2_048
  /// Bytes in one write above which no further packet is added.
  public static let batchBytesMax = 4_096
  /// Bytes read from or written to a client at once, while fewer than `largeMax` clients hold more than
  /// `shortPacketBytesMax` and `batchBytesMax`. The packets for all turns of a stream fit.
  public static let largeBytesMax =
    SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes / streamBytesMax * streamRequestBytesMax
  public static let largeMax = 4
  /// One user alone has 2 of these places; one is reserved for the operator.
  public static let large = ShareRule(capacity: largeMax, reserve: 1, factor: 2)
  /// The bytes of a member's certificates, with their lengths, that a client receives. A longer chain is truncated to
  /// the certificates that fit, because the daemon keeps them for a client that does not read.
  public static let certificatesBytesMax = 6_144
  /// The overhead of each message in a client's window, in bytes.
  public static let windowOverheadBytes = 64
  /// Bytes of waiting unreliable messages in one session, and of all clients, above which further ones are dropped.
  /// Each counts `SessionLimits.messageOverheadBytes` more. Reliable messages use the sessions' pools.
  public static let unreliableBytesMax = 65_536
  public static let unreliableBytesOfAll = 262_144
  /// The share of one user's clients: four times the free bytes, which is 0.8 of the total for a single user.
  static let unreliable = ShareRule(capacity: unreliableBytesOfAll, reserve: 4_096, factor: 4)
  /// The longest time after which the sender of a message without room is notified to retry.
  public static let retryTime = TimeSpan.seconds(1)
  /// The name of an application, in bytes of UTF-8.
  public static let instanceBytesMax = 63
}

/// The maximum memory of the local API, in bytes, for the memory ledger of the host.
public enum LocalMemory {
  private static let arrayOverheadBytes = 48
  /// One client: its objects without the members of its sessions, its answers, and one packet in each direction. The
  /// longest packet to it, besides messages, is the request to decide on a member.
  public static let client =
    MemoryLayout<LocalClient.Flight>.stride * LocalLimits.flightsMax
    + (MemoryLayout<LocalBrowse>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes) * LocalLimits.browsesMax
    + (MemoryLayout<LocalClient.Service>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes)
    * LocalLimits.servicesMax
    + LocalLimits.repliesBytesMax + LocalLimits.batchBytesMax + LocalLimits.shortPacketBytesMax + 128
    + LocalLimits.certificatesBytesMax + LocalLimits.sessionsMax * 256
  /// The guaranteed buffer of one stream, in blocks. The first and the last block may be partly used.
  public static let stream =
    (Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes + 2) * (ByteBlocks.blockBytes + arrayOverheadBytes)
    + 256
  /// The shared buffer of all streams beyond that.
  public static let streamsShared =
    Int(SessionLimits.streamBytesMax) / ByteBlocks.blockBytes * (ByteBlocks.blockBytes + arrayOverheadBytes)
    - SessionLimits.streamsMax * Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes
    * (ByteBlocks.blockBytes + arrayOverheadBytes)
  /// One session: its members, including those whose departure was not yet reported to the client.
  public static let session =
    SessionLimits.recordsMax
    * (MemoryLayout<LocalMember>.stride + SessionLimits.farewellBytesMax + arrayOverheadBytes)
  /// An invitation that waits for its client, with its context.
  public static let invitation =
    MemoryLayout<LocalClient.ReceivedInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
}
