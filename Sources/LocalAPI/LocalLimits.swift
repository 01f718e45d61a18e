import Primitives
import Session

/// All limits of the local API. Any application that may connect can use a place, as far as the share of its user goes.
/// docs/local-api.md, "Limits".
public enum LocalLimits {
  /// The versions of the protocol that this daemon speaks.
  public static let versions: ClosedRange<UInt16> = 1...1
  /// Clients at once. Users share them, and what follows, by `ShareRule`: a single user has 38, and 8 are kept for the
  /// operator (root and the daemon's own user).
  public static let clientsMax = 64
  static let clients = ShareRule(capacity: clientsMax, reserve: 8, factor: 2)
  /// Services of all clients, and their bytes in the node's advertisement: a single user has 10, and 1,094 bytes.
  static let services = ShareRule(capacity: Limits.servicesMax, reserve: 2, factor: 2)
  static let serviceBytes = ShareRule(capacity: SessionLimits.serviceBytesMax, reserve: 256, factor: 2)
  /// Sessions of all clients: a single user has 18.
  static let sessions = ShareRule(capacity: SessionLimits.sessionsMax, reserve: 6, factor: 2)
  /// How long a client may take to say hello.
  public static let helloTime = TimeSpan.seconds(5)
  /// How long a client may take for the rest of a packet that it has begun, while its packets are taken.
  public static let packetTime = TimeSpan.seconds(60)
  /// Services, sessions and browses of one client at once.
  public static let servicesMax = 8
  public static let sessionsMax = 16
  public static let browsesMax = 8
  /// Results that one client waits for: each member to which a message is on its way.
  public static let flightsMax = 256
  /// Streams of one client at once, those included that members have opened to it: one node's members no more than they leave
  /// free. Enough for a session of eight in which
  /// everybody sends a file to everybody, which takes 28 (two a transfer).
  public static let streamsMax = 32
  /// Bytes of a stream in one packet.
  public static let streamBytesMax = 4_096
  /// The packet that carries so many to a client: its length, type, number, their count, and they.
  public static let streamPacketBytesMax = 4 + 1 + 4 + 4 + streamBytesMax
  /// The same from a client: the request has a number of its own.
  public static let streamRequestBytesMax = streamPacketBytesMax + 4
  /// A client is told that it may write when it is so much more at least.
  static let streamRoomBytes = SessionLimits.streamTurnBytes / 4
  /// A packet without its length: a message to as many members as a session has.
  public static let packetBytesMax = 66_560
  /// The work of one wake-up for the clients of a user together, or for one of the operator's, in units of a
  /// message to one member. Other requests take more of it: some cost a signature.
  public static let workPerCall = 256
  static let workOfRequest = 32
  /// Signatures that the requests of a user cost: at once, and a second. One takes 3.4 million instructions on aarch64 (counted
  /// by QEMU: mbedTLS 3.6), and so 1.74 ms on a Raspberry Pi 4; to open a session costs two. The operator has no rate.
  static let signaturesPerUser = TokenRate(perSecond: 20, burst: 64)
  /// The same of all users together, less than a fifth of that processor's time. Waiting users take turns.
  static let signaturesOfAll = TokenRate(perSecond: 100, burst: 128)
  /// What a client may send before a place for a longer packet is free.
  public static let shortPacketBytesMax = 4_352
  /// Longer packets that may be on their way from clients at once: a single user has 2 places, and one is kept for the
  /// operator.
  public static let longPacketsMax = 4
  static let longPackets = ShareRule(capacity: longPacketsMax, reserve: 1, factor: 2)
  /// How long a client may take for a longer packet while another one waits for a place.
  public static let longPacketTime = TimeSpan.seconds(10)
  /// Answers that a client has not read. With more nothing is read from it.
  public static let repliesBytesMax = 2_048
  /// With so many bytes in hand no more packets for a client share one write.
  public static let batchBytesMax = 4_096
  /// What is read from a client at once, and written to it, as long as fewer than `largeMax` clients have more in hand than
  /// `shortPacketBytesMax` and `batchBytesMax`: the packets for all turns of a stream.
  public static let largeBytesMax =
    SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes / streamBytesMax * streamRequestBytesMax
  public static let largeMax = 4
  /// One user alone has 2 of these; one is kept for the operator.
  public static let large = ShareRule(capacity: largeMax, reserve: 1, factor: 2)
  /// Certificates that a client is told of a member, in bytes with their lengths: those at the beginning of the chain that fit,
  /// because a client that stops reading keeps them here.
  public static let certificatesBytesMax = 6_144
  /// Each message counts so many bytes more for a client's window.
  public static let windowOverheadBytes = 64
  /// Unreliable messages are dropped when so many bytes of them wait in their session, or for all clients, with
  /// `SessionLimits.messageOverheadBytes` for each. Reliable ones have their room in the sessions' pools.
  public static let unreliableBytesMax = 65_536
  public static let unreliableBytesOfAll = 262_144
  /// The part that a user's clients may hold: four times what is left, which is 0.8 for one alone.
  static let unreliable = ShareRule(capacity: unreliableBytesOfAll, reserve: 4_096, factor: 4)
  /// When a member had no room, its sender is told to try again after this time at most.
  public static let retryTime = TimeSpan.seconds(1)
  /// A client's name for itself, in bytes of UTF-8.
  public static let instanceBytesMax = 63
}

/// The greatest memory of the local API, in bytes, for the memory ledger of its host.
public enum LocalMemory {
  private static let arrayOverheadBytes = 48
  /// One client: its objects, the members of its sessions excepted, its answers, what is on its way to it, and a packet on
  /// its way from it: the longest to it, beside messages, is the question about a member.
  public static let client =
    MemoryLayout<LocalClient.Flight>.stride * LocalLimits.flightsMax
    + (MemoryLayout<LocalBrowse>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes) * LocalLimits.browsesMax
    + (MemoryLayout<LocalClient.Service>.stride + Limits.serviceTypeBytesMax + arrayOverheadBytes)
    * LocalLimits.servicesMax
    + LocalLimits.repliesBytesMax + LocalLimits.batchBytesMax + LocalLimits.shortPacketBytesMax + 128
    + LocalLimits.certificatesBytesMax + LocalLimits.sessionsMax * 256
  /// What waits of one stream for sure, in blocks of which the first and the last are used in part.
  public static let stream =
    (Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes + 2) * (ByteBlocks.blockBytes + arrayOverheadBytes)
    + 256
  /// What waits of all streams beside that.
  public static let streamsShared =
    Int(SessionLimits.streamBytesMax) / ByteBlocks.blockBytes * (ByteBlocks.blockBytes + arrayOverheadBytes)
    - SessionLimits.streamsMax * Int(SessionLimits.streamWindowSure) / ByteBlocks.blockBytes
    * (ByteBlocks.blockBytes + arrayOverheadBytes)
  /// One session: its members, those included whose leaving the client was not told yet.
  public static let session =
    SessionLimits.recordsMax
    * (MemoryLayout<LocalMember>.stride + SessionLimits.farewellBytesMax + arrayOverheadBytes)
  /// An invitation that waits for its client, with its context.
  public static let invitation =
    MemoryLayout<LocalClient.ReceivedInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
}
