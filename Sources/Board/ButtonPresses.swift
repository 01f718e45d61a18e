import Primitives

/// What a person means by pressing a button.
public enum ButtonPress: UInt8, Sendable {
  /// Released after 50 ms to 2 s.
  case short
  /// Released after 4 to 30 s.
  case long
}

/// Makes presses of a button's edges. It decides when the button is released, so one that is stuck, or held since before the
/// start, does nothing.
struct ButtonPresses {
  static let shortest = TimeSpan.milliseconds(50)
  static let shortLongest = TimeSpan.seconds(2)
  static let longShortest = TimeSpan.seconds(4)
  /// Something lies on it.
  static let longest = TimeSpan.seconds(30)
  /// Between two presses that count: a contact that is loose makes many.
  static let pause = TimeSpan.seconds(1)

  private var pressedAt: Instant?
  private var countedAt: Instant?
  private var sequence: UInt32?

  /// One edge. `sequence` counts the line's edges: after a gap, where the kernel's queue overflowed, nothing is known of the
  /// button until it is pressed again.
  mutating func edge(isPressed: Bool, at now: Instant, sequence: UInt32) -> ButtonPress? {
    if let last = self.sequence, sequence != last &+ 1 { pressedAt = nil }
    self.sequence = sequence
    if isPressed {
      pressedAt = now
      return nil
    }
    guard let began = pressedAt else { return nil }
    pressedAt = nil
    let press: ButtonPress
    switch now - began {
    case Self.shortest...Self.shortLongest: press = .short
    case Self.longShortest...Self.longest: press = .long
    default: return nil
    }
    if let countedAt, now - countedAt < Self.pause { return nil }
    countedAt = now
    return press
  }
}
