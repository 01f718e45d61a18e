/// A back-off whose pauses double from `first` up to `longest`.
public struct Backoff: Sendable {
  public let first: TimeSpan
  public let longest: TimeSpan
  private var next: TimeSpan

  public init(first: TimeSpan, longest: TimeSpan) {
    self.first = first
    self.longest = longest
    next = first
  }

  /// Returns the pause before the next attempt, and doubles the pause that the next call returns.
  public mutating func take() -> TimeSpan {
    let pause = next
    next = min(next * 2, longest)
    return pause
  }

  /// Makes the next pause `first` again.
  public mutating func reset() { next = first }
}
