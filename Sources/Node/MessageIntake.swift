import Primitives

/// Limits how many messages of peers one wake-up takes. The rest waits in the channels until other events were handled.
/// A peer may send a whole window of empty messages, which all become due with one segment.
///
/// The messages of one wake-up have the same `now`. 512 short messages, or 512 KiB, take less than 5 ms on a Raspberry
/// Pi 4.
struct MessageIntake {
  static let messagesMax = 512
  static let bytesMax = 512 * 1024
  /// The rest is never due at the same instant, so other events come between.
  private static let untilNext = TimeSpan(nanoseconds: 1_000)

  private var takenAt = Instant.zero
  private var messages = 0
  private var bytes = 0

  /// Counts a message that was taken.
  mutating func took(_ byteCount: Int, now: Instant) {
    if takenAt != now { (takenAt, messages, bytes) = (now, 0, 0) }
    messages += 1
    bytes += byteCount
  }

  /// Whether this wake-up takes no more messages.
  func isSpent(now: Instant) -> Bool { takenAt == now && isFull }

  /// When the rest is due, if there may be any.
  var deadline: Instant { isFull ? takenAt + Self.untilNext : .never }

  private var isFull: Bool { messages >= Self.messagesMax || bytes >= Self.bytesMax }
}
