import Primitives

/// What a light does that this process switches: whether it is lit, and when it turns next.
///
/// At rest, alone or linked, it costs one wake-up in 20 s, respectively none; `tick` comes with a wake-up that is there anyway.
struct Blinking {
  private(set) var isLit = false
  /// Until `turn`; nil for never.
  private(set) var timeToTurn: TimeSpan?
  private var pattern = StatusLED.Pattern.off
  private var ticks = 0

  static let flash = TimeSpan.milliseconds(100)
  static let fastHalf = TimeSpan.milliseconds(200)
  static let slowHalf = TimeSpan.milliseconds(500)
  /// Every 20 s there is a flash, where ticks come every 10 s.
  static let ticksPerFlash = 2

  mutating func begin(_ pattern: StatusLED.Pattern) {
    self.pattern = pattern
    ticks = 0
    isLit = pattern != .off
    setTime()
  }

  /// The time has come.
  mutating func turn() {
    isLit.toggle()
    setTime()
  }

  /// Called every 10 s.
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
