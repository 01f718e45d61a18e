import Primitives

/// All limits of a channel.
public enum ChannelLimits {
  /// Calls `body` for each field of a channel whose width bounds a limit. The arguments are those of
  /// `Limits.eachWidth`.
  public static func eachWidth(_ body: (_ field: StaticString, _ greatest: Int, _ fits: Int) -> Void) {
    body("channel: ranges above the cumulative offset", rangesMax, RangeSet.Ranges.count)
    body("channel: ranges of an acknowledgement", Acknowledgement.rangesMax, Acknowledgement.Ranges.count)
    body("channel: an acknowledgement in the shortest path MTU", Acknowledgement.bytesMax, pathMTUMin)
    body("channel: an acknowledgement and a segment", Acknowledgement.bytesMax + Segment.headerBytes + 1, joinedMTUMin)
    body("channel: length of a message, 32 bits", messageBytesMax, Int(UInt32.max))
    body("channel: a message and its framing in the least ring", messageHeaderBytes + messageBytesMax, ringBytesMin)
    body("channel: payload of a frame", pathMTUMax, Limits.framePayloadBytesMax)
  }

  // MARK: Messages

  /// Bytes of one message, without its framing.
  public static let messageBytesMax = 65_536
  /// Framing before each message in the stream: u32 length, u8 kind.
  public static let messageHeaderBytes = 5
  /// The maximum number of sends of one lane whose completion the owner has not taken. Further sends throw `.full`.
  public static let unfinishedMessagesMax = 512

  // MARK: Memory

  /// The size of a ring when the ring is first used, in bytes. The ring's size doubles when more is needed. An unused
  /// ring has no memory.
  public static let ringBytesFirst = 4_096
  /// The guaranteed size of every ring, in bytes. This size holds one message of the maximum length and a sixteenth of
  /// the ring more. The receiver advertises buffer space in steps of at least a sixteenth.
  public static let ringBytesMin = 73_728
  /// The maximum size of each ring of the interactive lane, in bytes: one message of the maximum length and a few short
  /// ones.
  public static let interactiveRingBytes = ringBytesMin
  /// The maximum size of each ring of the bulk lane, in bytes. A ring of this size holds four bandwidth-delay products
  /// of three hops of 1 Gbit/s or Wi-Fi. One product is in flight, and three may be behind a lost segment.
  public static let bulkRingBytes = 1_048_576
  /// The bytes that a bulk lane buffers at the sender, and as many at the receiver, before the path is measured.
  public static let bulkRoomBytes = 262_144
  /// The size of the ring for unread datagrams of one peer, in bytes: four datagrams of the maximum length.
  public static let datagramRingBytes = 67_584
  /// The budget that all rings of a node share beyond their guaranteed sizes, in bytes: six transfers at full speed in
  /// both directions. A ring that gets no part of the budget keeps its guaranteed size, so its lane is slower.
  public static let ringBudgetBytes = 11_272_192
  /// The ring memory guaranteed to one channel, in bytes: a send and a receive ring for each lane, and the datagram
  /// ring.
  public static let ringBytesSure = 4 * ringBytesMin + datagramRingBytes
  /// The time after which an empty ring frees its memory.
  public static let ringRest = TimeSpan.seconds(10)

  // MARK: Streams

  /// The maximum number of ranges above the cumulative offset that one end records for a lane. If a further range is
  /// needed, a receiver drops its segment, and a sender ignores the acknowledged range.
  public static let rangesMax = 32
  /// The receive window that a sender assumes before the first acknowledgement, in bytes.
  public static let initialWindowBytes: UInt64 = 65_536
  /// The largest stream offset. Below this limit, no sum of an offset and a length overflows.
  public static let offsetMax: UInt64 = 1 << 62
  /// The payload length that every path must carry, in bytes. An acknowledgement with all its ranges fits.
  public static let pathMTUMin = 128
  /// The shortest path MTU, in bytes, with which an acknowledgement shares its payload with a segment.
  public static let joinedMTUMin = 512
  /// The longest payload that a channel sends or accepts, in bytes.
  public static let pathMTUMax = 16_640

  // MARK: Time

  /// The maximum delay of an acknowledgement. This delay gives a second segment time to arrive, so that one
  /// acknowledgement covers both segments.
  public static let acknowledgementDelay = TimeSpan.milliseconds(25)
  /// The number of unacknowledged bytes from which the receiver acknowledges at once.
  public static let acknowledgementBytes: UInt64 = 8_192
  /// The retransmission timeout before the first measurement (RFC 6298).
  public static let retransmissionFirst = TimeSpan.seconds(1)
  /// The maximum retransmission timeout that measurements give, without back-off.
  public static let retransmissionMax = TimeSpan.seconds(10)
  /// The maximum to which back-off raises the retransmission timeout. This maximum is short, because relays reroute
  /// within seconds without notifying the end nodes. The load of one segment every 3 s is negligible.
  public static let backoffMax = TimeSpan.seconds(3)
  /// The longest plausible round-trip time. A longer sample comes from a wrong timestamp echo and is ignored.
  public static let roundTripMax = TimeSpan.seconds(120)
  /// The time without progress after which unfinished sends of a lane fail.
  public static let deliveryDeadline = TimeSpan.seconds(60)

  // MARK: Path model

  /// The number of rounds, of one round trip each, in a cycle of the path model. The sender probes for more bandwidth
  /// once in a cycle.
  public static let cycleRounds = 8
  /// The age at which the minimum round-trip time is measured again, with a small window.
  public static let roundTripAge = TimeSpan.seconds(10)
  /// The loss rate up to which the window is not reduced: twice the worst measured loss of a radio hop.
  public static let lossToleratedPercent: UInt64 = 20
  /// The number of segments over which the loss rate is computed, so that a single loss does not give a high rate.
  public static let lossEpisodeSegments: UInt64 = 48
}
