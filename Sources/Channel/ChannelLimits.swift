import Primitives

/// All limits of a channel.
public enum ChannelLimits {
  /// Calls `body` for each field of a channel, like `Limits.eachWidth`.
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
  /// Sends of one lane whose completion was not taken. Further sends throw `.full`.
  public static let unfinishedMessagesMax = 512

  // MARK: Memory

  /// The first allocation of a ring, in bytes. It doubles when more is needed. An unused ring has no memory.
  public static let ringBytesFirst = 4_096
  /// The guaranteed size of every ring, in bytes: one message of the maximum length, and a sixteenth of the ring more.
  /// The receiver announces room in steps of at least a sixteenth.
  public static let ringBytesMin = 73_728
  /// The maximum size of each ring of the interactive lane, in bytes: one message of the maximum length and a few short
  /// ones.
  public static let interactiveRingBytes = ringBytesMin
  /// The maximum size of each ring of the bulk lane, in bytes. It holds the bandwidth-delay product of three hops of 1
  /// Gbit/s or Wi-Fi, and three times as much behind a lost segment.
  public static let bulkRingBytes = 1_048_576
  /// Bytes that a bulk lane buffers at the sender and at the receiver before the path is measured.
  public static let bulkRoomBytes = 262_144
  /// The ring for unread datagrams of a peer, in bytes: four datagrams of the maximum length.
  public static let datagramRingBytes = 67_584
  /// The budget that all rings of a node share beyond their guaranteed sizes, in bytes: six transfers at full speed in
  /// both directions. A ring without a part of it does not grow, and its lane is slower.
  public static let ringBudgetBytes = 11_272_192
  /// The guaranteed bytes of one channel: two rings in each direction, and the datagram ring.
  public static let ringBytesSure = 4 * ringBytesMin + datagramRingBytes
  /// The time after which an empty ring frees its memory.
  public static let ringRest = TimeSpan.seconds(10)

  // MARK: Streams

  /// Ranges above the cumulative offset that one end remembers. If all are used, a receiver drops the segment, and a
  /// sender ignores the range.
  public static let rangesMax = 32
  /// The receive window that a sender assumes before the first acknowledgement, in bytes.
  public static let initialWindowBytes: UInt64 = 65_536
  /// The largest stream offset. Below it, no sum of an offset and a length overflows.
  public static let offsetMax: UInt64 = 1 << 62
  /// The smallest payload that every path must carry, in bytes: an acknowledgement with all its ranges.
  public static let pathMTUMin = 128
  /// The shortest path MTU, in bytes, with which an acknowledgement shares its payload with a segment.
  public static let joinedMTUMin = 512
  /// The largest payload that is used, in bytes.
  public static let pathMTUMax = 16_640

  // MARK: Time

  /// The longest delay of an acknowledgement, in case a second segment arrives.
  public static let acknowledgementDelay = TimeSpan.milliseconds(25)
  /// The number of unacknowledged bytes from which the receiver acknowledges at once.
  public static let acknowledgementBytes: UInt64 = 8_192
  /// The retransmission timeout (RFC 6298): before the first measurement, and the maximum that measurements give.
  public static let retransmissionFirst = TimeSpan.seconds(1)
  public static let retransmissionMax = TimeSpan.seconds(10)
  /// The maximum retransmission timeout after back-off. Relays reroute within seconds without notifying the end nodes,
  /// and one segment every 3 s is no load.
  public static let backoffMax = TimeSpan.seconds(3)
  /// The longest plausible round-trip time. A longer sample is a wrong echo and is ignored.
  public static let roundTripMax = TimeSpan.seconds(120)
  /// The time without progress after which unfinished sends of a lane fail.
  public static let deliveryDeadline = TimeSpan.seconds(60)

  // MARK: Path model

  /// Round trips in one cycle. The sender probes for more bandwidth once in a cycle.
  public static let cycleRounds = 8
  /// The age at which the minimum round-trip time is measured again, with a small window.
  public static let roundTripAge = TimeSpan.seconds(10)
  /// The loss rate up to which the window is not reduced: twice the worst measured loss of a radio hop.
  public static let lossToleratedPercent: UInt64 = 20
  /// The number of segments over which the loss rate is computed, so that a single loss does not count as a rate.
  public static let lossEpisodeSegments: UInt64 = 48
}
