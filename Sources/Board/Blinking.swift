import Primitives

/// The state of a light that this process switches: whether the light is lit, and when it toggles next.
///
/// The patterns of a box at rest cost little: `alone` costs one pass of the event loop in 20 s, `linked` costs none.
/// `tick` is called in a pass of the event loop that happens anyway.
struct Blinking {
  private(set) var isLit = false
  /// The time until `turn` is due, or nil if the light does not change.
  private(set) var timeToTurn: TimeSpan?
  private var pattern = StatusLED.Pattern.off
  private var ticks = 0

  static let flash = TimeSpan.milliseconds(100)
  static let fastHalf = TimeSpan.milliseconds(200)
  static let slowHalf = TimeSpan.milliseconds(500)
  /// The number of ticks for each flash. Ticks come every 10 s, so the light flashes every 20 s.
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
