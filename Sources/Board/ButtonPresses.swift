import Primitives

/// A press of the button, by its duration.
public enum ButtonPress: UInt8, Sendable {
  /// Released after 50 ms to 2 s.
  case short
  /// Released after 4 to 30 s.
  case long
}

/// Turns the edges of a button's line into presses. A press counts at its release, so a button that is stuck, or held
/// since before the start, does nothing.
struct ButtonPresses {
  static let shortest = TimeSpan.milliseconds(50)
  static let shortLongest = TimeSpan.seconds(2)
  static let longShortest = TimeSpan.seconds(4)
  /// Anything longer is not a press: something lies on the button.
  static let longest = TimeSpan.seconds(30)
  /// The minimum time between two counted presses. A loose contact produces many.
  static let pause = TimeSpan.seconds(1)

  private var pressedAt: Instant?
  private var countedAt: Instant?
  private var sequence: UInt32?

  /// Handles one edge, and returns the press that it completes. `sequence` is the kernel's edge counter. After a gap,
  /// where the kernel's queue overflowed, the state is unknown until the next press.
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
