/// What is done about a radio that fails, is away or is blocked, and when. One for each radio, whatever its kind.
///
/// A radio that fails climbs a ladder: it is armed again, power-cycled, then everything about it is made anew, after pauses that
/// double. At the end of the ladder its owner says so, and the last two steps are repeated for as long as it takes. A radio that is
/// away or blocked is not tried: nothing helps it but somebody's hand. As soon as it is usable again it is armed at once, from
/// the foot of the ladder.
///
/// Drain rule: after every `handle`, and at `deadline`, call `nextStep` until it returns nil. Carry out the step, and report its
/// end with `.works` or `.failed`.
public struct RadioRecovery: Equatable, Sendable {
  /// What an attempt consists of.
  public enum Step: UInt8, Sendable {
    /// Settings are made and the radio is used.
    case arm
    /// The same, after the radio was switched off and on.
    case powerCycle
    /// The same, after the connection to what drives the radio was made anew, too.
    case reset
  }

  /// What has happened to the radio.
  public enum Event: Sendable {
    /// Whether there is a radio.
    case present(Bool)
    /// Whether it is switched off by rfkill.
    case blocked(Bool)
    /// What drives the radio is new: failures of the time before do not count.
    case renewed
    case works
    case failed
    /// It failed without a word: to arm it again would not help.
    case silent
  }

  private enum State: Equatable {
    /// Away or blocked, or never told of.
    case held
    case resting(until: Instant)
    case trying
    case working(since: Instant)
  }

  /// The failures after which the whole ladder was in vain.
  private static let stepsMax: UInt8 = 6
  public static let pauseMin = TimeSpan.seconds(1)
  public static let pauseMax = TimeSpan.seconds(60)
  /// A radio that has worked for so long begins at the foot of the ladder.
  public static let stableTime = TimeSpan.seconds(30)

  /// Failures in a row, at most 255.
  public private(set) var failures: UInt8 = 0
  private var isPresent = false
  private var isBlocked = false
  private var state = State.held

  public init() {}

  /// Whether the whole ladder was in vain. Steps go on all the same.
  public var isHopeless: Bool { failures > Self.stepsMax }
  public var isUsable: Bool { isPresent && !isBlocked }

  /// When `nextStep` returns a step without another event.
  public var deadline: Instant {
    if case .resting(let until) = state { until } else { .never }
  }

  public mutating func handle(_ event: Event, _ now: Instant) {
    switch event {
    case .present(let isPresent):
      if isPresent == self.isPresent { return }
      self.isPresent = isPresent
      begin(now)
    case .blocked(let isBlocked):
      if isBlocked == self.isBlocked { return }
      self.isBlocked = isBlocked
      begin(now)
    case .renewed: begin(now)
    case .works: if isUsable { state = .working(since: now) }
    case .failed: failed(now, isSilent: false)
    case .silent: failed(now, isSilent: true)
    }
  }

  public mutating func nextStep(_ now: Instant) -> Step? {
    guard now >= deadline else { return nil }
    state = .trying
    if isHopeless { return failures % 2 == 0 ? .reset : .powerCycle }
    return failures < 3 ? .arm : failures < 5 ? .powerCycle : .reset
  }

  private mutating func begin(_ now: Instant) {
    failures = 0
    state = isUsable ? .resting(until: now) : .held
  }

  private mutating func failed(_ now: Instant, isSilent: Bool) {
    switch state {
    case .held, .resting: return
    case .working(let since): if now - since >= Self.stableTime { failures = 0 }
    case .trying: break
    }
    if isSilent { failures = max(failures, 2) }
    // Beyond the ladder only its evenness counts.
    failures = failures < 254 ? failures + 1 : 253
    state = .resting(until: now + min(Self.pauseMin * (1 << UInt64(min(failures - 1, 6))), Self.pauseMax))
  }
}
