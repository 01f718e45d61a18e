/// Every limit of a channel by name.
public enum ChannelLimits {
  /// Bytes of one message, its framing not counted.
  public static let messageBytesMax = 65_536
  /// Framing before each message in the stream: u32 length, u8 kind.
  public static let messageHeaderBytes = 5

  /// Ring of each direction of the interactive lane: one message of the greatest length and a few small ones.
  public static let interactiveRingBytes = 73_728
  /// Ring of each direction of the bulk lane: the most that is in flight, and the most a slow reader holds.
  public static let bulkRingBytes = 262_144
  /// The smallest ring that can hold a message of the greatest length. The receiver offers room again from a
  /// sixteenth of its ring on, so a sixteenth must be left beside such a message.
  public static let ringBytesMin = interactiveRingBytes
  /// Sends of one lane whose completion was not taken yet; more are refused with `.full`.
  public static let unfinishedMessagesMax = 512
  /// Separate ranges of bytes that one end remembers above the cumulative offset. Beyond them a receiver
  /// drops the segment, and a sender the hint.
  public static let rangesMax = 32

  /// Room that every receiver has before its first acknowledgement told the true figure.
  public static let initialWindowBytes: UInt64 = 32_768
  /// Stream offsets end here, so that no sum of an offset and a length overflows.
  public static let offsetMax: UInt64 = 1 << 62

  /// Payload bytes of a frame: what a path must carry at least (an acknowledgement with all its ranges) and
  /// what it carries at most.
  public static let pathMTUMin = 128
  public static let pathMTUMax = 16_640

  /// An acknowledgement waits this long for a second segment.
  public static let acknowledgementDelayMilliseconds: UInt64 = 25
  /// Retransmission timeout (RFC 6298): before the first measurement, and its bounds.
  public static let retransmissionInitialMilliseconds: UInt64 = 1_000
  public static let retransmissionMinMilliseconds: UInt64 = 200
  public static let retransmissionMaxMilliseconds: UInt64 = 10_000
  /// Time that a lane's own bytes may spend in queues before its congestion window stops growing.
  public static let queueingMilliseconds: UInt64 = 400
  /// A round-trip time above this is a broken echo, not a measurement.
  public static let roundTripMillisecondsMax: UInt64 = 120_000
  /// Time without any progress after which the unfinished sends of a lane fail.
  public static let deliveryDeadlineSeconds: UInt64 = 60
}
