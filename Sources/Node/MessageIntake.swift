import Primitives

/// Limits how many messages of peers one pass of the event loop takes from the channels. Further messages wait in the
/// channels until other events were handled. A peer can send a complete window of empty messages, and one segment can
/// make all of them readable at once.
///
/// The calls of one pass have the same `now`. 512 short messages, or 512 KiB, take less than 5 ms on a Raspberry Pi 4.
struct MessageIntake {
  static let messagesMax = 512
  static let bytesMax = 512 * 1024
  /// The delay of the messages beyond the limit. Messages beyond the limit are never due at the same instant, so other
  /// events are handled first.
  private static let untilNext = TimeSpan(nanoseconds: 1_000)

  private var takenAt = Instant.zero
  private var messages = 0
  private var bytes = 0

  /// Counts a message of `byteCount` bytes that was taken.
  mutating func took(_ byteCount: Int, now: Instant) {
    if takenAt != now { (takenAt, messages, bytes) = (now, 0, 0) }
    messages += 1
    bytes += byteCount
  }

  /// Whether this pass of the event loop may take no more messages.
  func isSpent(now: Instant) -> Bool { takenAt == now && isFull }

  /// When messages beyond the limit may be taken, or `.never` if the limit was not reached.
  var deadline: Instant { isFull ? takenAt + Self.untilNext : .never }

  private var isFull: Bool { messages >= Self.messagesMax || bytes >= Self.bytesMax }
}
