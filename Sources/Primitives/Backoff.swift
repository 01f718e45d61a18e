/// Pauses that double from `first` to `longest`.
public struct Backoff: Sendable {
  public let first: TimeSpan
  public let longest: TimeSpan
  private var next: TimeSpan

  public init(first: TimeSpan, longest: TimeSpan) {
    self.first = first
    self.longest = longest
    next = first
  }

  public mutating func take() -> TimeSpan {
    let pause = next
    next = min(next * 2, longest)
    return pause
  }

  public mutating func reset() { next = first }
}
