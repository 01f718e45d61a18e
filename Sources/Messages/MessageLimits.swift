/// All limits of the messages between applications.
public enum MessageLimits {
  /// Bytes of UTF-8 of one text message.
  public static let textBytesMax = 4_096
  /// Bytes of UTF-8 of a resource's offered name.
  public static let nameBytesMax = 255
  /// Bytes of a name that may be created as a file. The receiver appends a suffix (`.part`, `-2`), and file systems
  /// allow 255.
  public static let safeNameBytesMax = 240
  /// Data bytes of one chunk. With its header it fits one frame of the greatest length.
  public static let chunkBytesMax = 15_360
  /// Bytes of UTF-8 of the explanation in an answer or a cancellation.
  public static let explanationBytesMax = 200
  /// Greatest size, so that no sum of an offset and a length overflows: 8 EiB.
  public static let resourceBytesMax: UInt64 = 1 << 63
  /// The largest resource that a receiver accepts by default: 16 GiB.
  public static let acceptedBytesMaxDefault: UInt64 = 16 << 30
  /// How long a sender waits for the answer to its offer, and for the final answer.
  public static let answerSecondsMax: UInt64 = 120
  /// How long a receiver waits for the next chunk.
  public static let chunkSecondsMax: UInt64 = 120
}
