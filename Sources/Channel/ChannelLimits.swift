import Primitives

/// Every limit of a channel by name.
public enum ChannelLimits {
  /// As `Limits.eachWidth`, of the fields of a channel.
  public static func eachWidth(_ body: (_ field: StaticString, _ greatest: Int, _ fits: Int) -> Void) {
    body("channel: ranges above the cumulative offset", rangesMax, RangeSet.Ranges.count)
    body("channel: ranges of an acknowledgement", Acknowledgement.rangesMax, Acknowledgement.Ranges.count)
    body("channel: an acknowledgement in the shortest path MTU", Acknowledgement.bytesMax, pathMTUMin)
    body("channel: length of a message, 32 bits", messageBytesMax, Int(UInt32.max))
    body("channel: a message and its framing in the least ring", messageHeaderBytes + messageBytesMax, ringBytesMin)
    body("channel: payload of a frame", pathMTUMax, Limits.framePayloadBytesMax)
  }

  // MARK: Messages

  /// Bytes of one message, its framing not counted.
  public static let messageBytesMax = 65_536
  /// Framing before each message in the stream: u32 length, u8 kind.
  public static let messageHeaderBytes = 5
  /// Sends of one lane whose completion was not taken yet; more are refused with `.full`.
  public static let unfinishedMessagesMax = 512

  // MARK: Memory

  /// The first allocation of a ring. It doubles as more is needed. An unused ring has no memory.
  public static let ringBytesFirst = 4_096
  /// The guaranteed size of every ring: one message of the greatest length, and a sixteenth more, because the receiver
  /// announces room from a sixteenth of its ring on.
  public static let ringBytesMin = 73_728
  /// Greatest ring of each direction of the interactive lane: one message of the greatest length and a few small ones.
  public static let interactiveRingBytes = ringBytesMin
  /// Greatest ring of each direction of the bulk lane: the bandwidth-delay product of three hops of 1 Gbit/s or of Wi-Fi,
  /// and three times as much that waits behind a lost segment.
  public static let bulkRingBytes = 1_048_576
  /// Room of a bulk lane for its application, and for its sender, before the path is measured.
  public static let bulkRoomBytes = 262_144
  /// Datagrams of one peer that wait to be read: four of the greatest length.
  public static let datagramRingBytes = 67_584
  /// The budget that all rings of a node share above their guaranteed sizes: six transfers at full speed both ways. A ring
  /// that gets nothing from it does not grow, and its lane is slower.
  public static let ringBudgetBytes = 12_582_912
  /// The guaranteed bytes of one channel: two rings in each direction, and the datagrams.
  public static let ringBytesSure = 4 * ringBytesMin + datagramRingBytes
  /// A ring that has been empty for so long gives its memory back.
  public static let ringRest = TimeSpan.seconds(10)

  // MARK: Streams

  /// Separate ranges of bytes that one end remembers above the cumulative offset. Beyond them a receiver
  /// drops the segment, and a sender the hint.
  public static let rangesMax = 32
  /// The receive window that a sender assumes before the first acknowledgement.
  public static let initialWindowBytes: UInt64 = 65_536
  /// Stream offsets end here, so that no sum of an offset and a length overflows.
  public static let offsetMax: UInt64 = 1 << 62
  /// Payload bytes of a frame: what a path must carry at least (an acknowledgement with all its ranges) and
  /// what it carries at most.
  public static let pathMTUMin = 128
  public static let pathMTUMax = 16_640

  // MARK: Time

  /// An acknowledgement waits this long for a second segment.
  public static let acknowledgementDelay = TimeSpan.milliseconds(25)
  /// From this many unacknowledged bytes on an acknowledgement is sent at once.
  public static let acknowledgementBytes: UInt64 = 8_192
  /// Retransmission timeout (RFC 6298) before the first measurement, and its greatest.
  public static let retransmissionFirst = TimeSpan.seconds(1)
  public static let retransmissionMax = TimeSpan.seconds(10)
  /// The greatest retransmission timeout after back-off. Relays reroute within seconds, unseen by the end nodes, and one
  /// segment in this time burdens no path.
  public static let backoffMax = TimeSpan.seconds(3)
  /// A round-trip time above this is a broken echo, not a measurement.
  public static let roundTripMax = TimeSpan.seconds(120)
  /// Time without any progress after which the unfinished sends of a lane fail.
  public static let deliveryDeadline = TimeSpan.seconds(60)

  // MARK: The model of the path

  /// Rounds of a cycle. The sender probes for more bandwidth once a cycle.
  public static let cycleRounds = 8
  /// The age at which the shortest round trip is measured again, with a small window.
  public static let roundTripAge = TimeSpan.seconds(10)
  /// The loss rate up to which the window is not reduced: twice the worst measured loss of a radio hop.
  public static let lossToleratedPercent: UInt64 = 20
  /// The loss rate is computed over this many segments, so that one loss is not a rate.
  public static let lossEpisodeSegments: UInt64 = 48
}
