import Primitives

/// The state of a light that this process switches: whether it is lit, and when it toggles next.
///
/// The resting patterns are cheap: `alone` costs one wake-up in 20 s, `linked` none. `tick` shares a wake-up that
/// happens anyway.
struct Blinking {
  private(set) var isLit = false
  /// The time until `turn` is due, or nil if the light does not change.
  private(set) var timeToTurn: TimeSpan?
  private var pattern = StatusLED.Pattern.off
  private var ticks = 0

  static let flash = TimeSpan.milliseconds(100)
  static let fastHalf = TimeSpan.milliseconds(200)
  static let slowHalf = TimeSpan.milliseconds(500)
  /// Two ticks of 10 s give one flash in 20 s.
  static let ticksPerFlash = 2

  mutating func begin(_ pattern: StatusLED.Pattern) {
    self.pattern = pattern
    ticks = 0
    isLit = pattern != .off
    setTime()
  }

  /// Toggles the light; called when `timeToTurn` has passed.
  mutating func turn() {
    isLit.toggle()
    setTime()
  }

  /// Starts the flash of `alone` when it is due; called every 10 s.
  mutating func tick() {
    guard pattern == .alone else { return }
    ticks += 1
    if ticks % Self.ticksPerFlash == 0 {
      isLit = true
      setTime()
    }
  }

  private mutating func setTime() {
    timeToTurn =
      switch pattern {
      case .off, .linked: nil
      case .alone: isLit ? Self.flash : nil
      case .joining: Self.slowHalf
      case .fault: Self.fastHalf
      }
  }
}
