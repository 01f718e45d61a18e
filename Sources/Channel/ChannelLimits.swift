import Primitives

/// All limits of a channel.
public enum ChannelLimits {
  /// Like `Limits.eachWidth`, for the fields of a channel.
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

  /// Bytes of one message, its framing not counted.
  public static let messageBytesMax = 65_536
  /// Framing before each message in the stream: u32 length, u8 kind.
  public static let messageHeaderBytes = 5
  /// Sends of one lane whose completion was not taken yet. Further sends get `.full`.
  public static let unfinishedMessagesMax = 512

  // MARK: Memory

  /// The first allocation of a ring. It doubles as more is needed. An unused ring has no memory.
  public static let ringBytesFirst = 4_096
  /// The guaranteed size of every ring: one message of the greatest length, and a sixteenth of the ring more, because
  /// the receiver announces room in steps of at least a sixteenth.
  public static let ringBytesMin = 73_728
  /// Greatest size of each ring of the interactive lane: one message of the greatest length and a few short ones.
  public static let interactiveRingBytes = ringBytesMin
  /// Greatest size of each ring of the bulk lane: the bandwidth-delay product of three hops of 1 Gbit/s or of Wi-Fi,
  /// and three times as much that waits behind a lost segment.
  public static let bulkRingBytes = 1_048_576
  /// Bytes that a bulk lane buffers before the path is measured, at the sender and at the receiver.
  public static let bulkRoomBytes = 262_144
  /// Ring for a peer's unread datagrams: four of the greatest length.
  public static let datagramRingBytes = 67_584
  /// The budget that all rings of a node share for what exceeds their guaranteed sizes: six transfers at full speed in
  /// both directions. A ring that gets nothing from it does not grow, and its lane is slower.
  public static let ringBudgetBytes = 11_272_192
  /// The guaranteed bytes of one channel: two rings in each direction, and the datagram ring.
  public static let ringBytesSure = 4 * ringBytesMin + datagramRingBytes
  /// A ring frees its memory after it was empty for this time.
  public static let ringRest = TimeSpan.seconds(10)

  // MARK: Streams

  /// Ranges above the cumulative offset that one end remembers. When all are used, a receiver drops the segment,
  /// and a sender ignores the range.
  public static let rangesMax = 32
  /// The receive window that a sender assumes before the first acknowledgement.
  public static let initialWindowBytes: UInt64 = 65_536
  /// The greatest stream offset. Below it, no sum of an offset and a length overflows.
  public static let offsetMax: UInt64 = 1 << 62
  /// Payload bytes of a frame: the least that a path must carry (an acknowledgement with all its ranges), and the most
  /// that is used.
  public static let pathMTUMin = 128
  /// With a shorter one no segment shares its payload with an acknowledgement.
  public static let joinedMTUMin = 512
  public static let pathMTUMax = 16_640

  // MARK: Time

  /// An acknowledgement is delayed by at most this, in case a second segment arrives.
  public static let acknowledgementDelay = TimeSpan.milliseconds(25)
  /// From this many unacknowledged bytes on, the receiver acknowledges at once.
  public static let acknowledgementBytes: UInt64 = 8_192
  /// Retransmission timeout (RFC 6298): before the first measurement, and the greatest that measurements give.
  public static let retransmissionFirst = TimeSpan.seconds(1)
  public static let retransmissionMax = TimeSpan.seconds(10)
  /// The greatest retransmission timeout after back-off. Relays reroute within seconds and the end nodes do not notice;
  /// one segment per 3 s loads no path.
  public static let backoffMax = TimeSpan.seconds(3)
  /// A round-trip time above this is a broken echo, not a measurement.
  public static let roundTripMax = TimeSpan.seconds(120)
  /// Unfinished sends of a lane fail after this time without progress.
  public static let deliveryDeadline = TimeSpan.seconds(60)

  // MARK: Path model

  /// Round trips in one cycle. The sender probes for more bandwidth once a cycle.
  public static let cycleRounds = 8
  /// The age at which the minimum round-trip time is measured again, with a small window.
  public static let roundTripAge = TimeSpan.seconds(10)
  /// The loss rate up to which the window is not reduced: twice the worst measured loss of a radio hop.
  public static let lossToleratedPercent: UInt64 = 20
  /// The loss rate is computed over this many segments, so that one loss is not a rate.
  public static let lossEpisodeSegments: UInt64 = 48
}
