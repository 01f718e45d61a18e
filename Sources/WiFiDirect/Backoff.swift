import Primitives

/// Pauses that double from `first` to `longest`.
struct Backoff {
  let first: TimeSpan
  let longest: TimeSpan
  private var next: TimeSpan

  init(first: TimeSpan, longest: TimeSpan) {
    self.first = first
    self.longest = longest
    next = first
  }

  mutating func take() -> TimeSpan {
    let pause = next
    next = min(next * 2, longest)
    return pause
  }

  mutating func reset() { next = first }
}
