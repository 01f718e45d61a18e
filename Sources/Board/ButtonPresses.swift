import Primitives

/// A press of the button, by its duration.
public enum ButtonPress: UInt8, Sendable {
  /// Released after 50 ms to 2 s.
  case short
  /// The button was released after 4 to 30 s.
  case long
}

/// Converts the edges of a button's GPIO line into presses. A press is reported when the button is released. So a
/// button that is stuck, or that was already held at the start, causes no report.
struct ButtonPresses {
  static let shortest = TimeSpan.milliseconds(50)
  static let shortLongest = TimeSpan.seconds(2)
  static let longShortest = TimeSpan.seconds(4)
  /// The maximum duration of a press. A longer press is ignored, because an object may lie on the button.
  static let longest = TimeSpan.seconds(30)
  /// The minimum time between two reported presses. Presses that follow sooner may come from a loose contact.
  static let pause = TimeSpan.seconds(1)

  private var pressedAt: Instant?
  private var countedAt: Instant?
  private var sequence: UInt32?

  /// Handles one edge. Returns a press if the edge is the release that completes it. `sequence` is the kernel's edge
  /// counter. A gap in the counter means that the kernel's queue overflowed. A release after a gap is ignored, because
  /// the time of its press is unknown.
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
