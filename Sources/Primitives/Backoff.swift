/// A back-off whose pauses double from `first` up to `longest`.
public struct Backoff: Equatable, Sendable {
  public let first: TimeSpan
  public let longest: TimeSpan
  /// The pause before the next attempt.
  public private(set) var pause: TimeSpan

  public init(first: TimeSpan, longest: TimeSpan) {
    self.first = first
    self.longest = longest
    pause = first
  }

  /// Returns the pause before the next attempt, and doubles the pause that the next call returns.
  public mutating func take() -> TimeSpan {
    defer { double() }
    return pause
  }

  /// Doubles the next pause.
  public mutating func double() { pause = min(pause * 2, longest) }

  /// Sets the next pause to `first` again.
  public mutating func reset() { pause = first }

  /// The pause after a number of earlier failures: `first`, doubled for each of these failures, and at most `longest`.
  /// This function is for owners that keep the number instead of a back-off.
  public static func pause(after failures: Int, first: TimeSpan, longest: TimeSpan) -> TimeSpan {
    // `longest` is less than 2³² times `first` in every use, so more doublings change nothing.
    let doublings = UInt64(min(max(failures, 0), 32))
    return first.nanoseconds <= longest.nanoseconds >> doublings ? first * (1 << doublings) : longest
  }
}
