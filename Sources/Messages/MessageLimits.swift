/// Every limit of the messages between applications by name.
public enum MessageLimits {
  /// Bytes of UTF-8 of one text message.
  public static let textBytesMax = 4_096
  /// Bytes of UTF-8 of a resource's name, as it is offered.
  public static let nameBytesMax = 255
  /// Bytes of a name that is safe to create: some are left for what the receiver appends (`.part`, `-2`) below
  /// the 255 of every file system.
  public static let safeNameBytesMax = 240
  /// Data bytes of one chunk: with its header it fits one frame of the longest kind.
  public static let chunkBytesMax = 15_360
  /// Bytes of UTF-8 of the explanation in an answer or a cancellation.
  public static let explanationBytesMax = 200
  /// Sizes end here, so that no sum of an offset and a length overflows: 8 EiB.
  public static let resourceBytesMax: UInt64 = 1 << 63
  /// What a receiver takes unless it is set otherwise: 16 GiB.
  public static let acceptedBytesMaxDefault: UInt64 = 16 << 30
  /// How long a sender waits for the first answer and for the last.
  public static let answerSecondsMax: UInt64 = 120
  /// How long a receiver waits for the next chunk.
  public static let chunkSecondsMax: UInt64 = 120
}
