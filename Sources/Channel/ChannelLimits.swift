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

  /// What a ring takes first; it doubles as more is needed. A ring that nobody uses has no memory.
  public static let ringBytesFirst = 4_096
  /// Every ring is sure of this much: a message of the greatest length. The receiver offers room again from
  /// a sixteenth of its ring on, so a sixteenth must be left beside such a message.
  public static let ringBytesMin = 73_728
  /// Greatest ring of each direction of the interactive lane: one message of the greatest length and a few small ones.
  public static let interactiveRingBytes = ringBytesMin
  /// Greatest ring of each direction of the bulk lane: what three hops of 1 Gbit/s or of Wi-Fi hold, and three
  /// times as much again that waits behind something lost.
  public static let bulkRingBytes = 1_048_576
  /// Room that a bulk lane gives its application, and its sender, before it knows what the path holds.
  public static let bulkRoomBytes = 262_144
  /// Datagrams of one peer that wait to be read: four of the greatest length.
  public static let datagramRingBytes = 67_584
  /// What the rings of a node may take beyond what each is sure of: six transfers at full speed both ways. A ring that
  /// gets no more of it stays as it is, and its lane is slower.
  public static let ringBudgetBytes = 12_582_912
  /// What the rings of one channel are sure of: two each way, and the datagrams.
  public static let ringBytesSure = 4 * ringBytesMin + datagramRingBytes
  /// A ring that has been empty for so long gives its memory back.
  public static let ringRest = TimeSpan.seconds(10)

  // MARK: Streams

  /// Separate ranges of bytes that one end remembers above the cumulative offset. Beyond them a receiver
  /// drops the segment, and a sender the hint.
  public static let rangesMax = 32
  /// Room that every receiver has before its first acknowledgement told the true figure.
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
  /// So many bytes are acknowledged without waiting for more.
  public static let acknowledgementBytes: UInt64 = 8_192
  /// Retransmission timeout (RFC 6298) before the first measurement, and its greatest.
  public static let retransmissionFirst = TimeSpan.seconds(1)
  public static let retransmissionMax = TimeSpan.seconds(10)
  /// Doubling by timeouts ends here. A relay finds another way for what it lost within seconds, unseen from either end,
  /// and a segment in so long a time asks little of any path.
  public static let backoffMax = TimeSpan.seconds(3)
  /// A round-trip time above this is a broken echo, not a measurement.
  public static let roundTripMax = TimeSpan.seconds(120)
  /// Time without any progress after which the unfinished sends of a lane fail.
  public static let deliveryDeadline = TimeSpan.seconds(60)

  // MARK: The model of the path

  /// Rounds of a cycle in which a sender asks once whether the path has more to give.
  public static let cycleRounds = 8
  /// A shortest round trip that was not seen again for so long is measured anew, with little in flight.
  public static let roundTripAge = TimeSpan.seconds(10)
  /// Share of lost bytes up to which the window is not narrowed: twice what a bad radio hop was seen to lose.
  public static let lossToleratedPercent: UInt64 = 20
  /// Losses are judged over so many segments, so that one accident is not a share.
  public static let lossEpisodeSegments: UInt64 = 48
}
