/// Decides when and how to recover a radio that fails, is absent or is blocked. Each radio of any kind has its own
/// `RadioRecovery`.
///
/// Recovery of a failing radio escalates through the steps arm, power cycle and reset (`Step`), with pauses that
/// double. When every step has failed, the owner reports the failure. Power cycle and reset then alternate until a step
/// succeeds. An absent or blocked radio gets no steps, because only a person can make it usable. When an absent or
/// blocked radio becomes usable, it is armed immediately, and escalation starts again.
///
/// Drain rule: after every `handle`, and at `deadline`, the owner calls `nextStep` until it returns nil. The owner
/// carries out each step and reports the result by `.works`, `.failed` or `.silent`.
public struct RadioRecovery: Equatable, Sendable {
  /// A recovery step.
  public enum Step: UInt8, Sendable {
    /// Apply the settings and use the radio.
    case arm
    /// Switch the radio off and on, then arm it.
    case powerCycle
    /// Reopen the connection to the kernel or program that drives the radio, switch the radio off and on, then arm it.
    case reset
  }

  /// Something that happened to the radio.
  public enum Event: Sendable {
    /// Whether the radio exists.
    case present(Bool)
    /// Whether rfkill switches the radio off.
    case blocked(Bool)
    /// The program that drives the radio was restarted, so earlier failures are forgotten.
    case renewed
    case works
    case failed
    /// The radio failed without a response, so arming the radio again would not help.
    case silent
  }

  private enum State: Equatable {
    /// The radio is absent, blocked, or not yet reported.
    case held
    case resting(until: Instant)
    case trying
    case working(since: Instant)
  }

  /// With more consecutive failures than this number, every step of the escalation has failed.
  private static let stepsMax: UInt8 = 6
  public static let pauseMin = TimeSpan.seconds(1)
  public static let pauseMax = TimeSpan.seconds(60)
  /// After a failure, a radio that had worked for at least this long starts again with the first step.
  public static let stableTime = TimeSpan.seconds(30)

  /// The number of consecutive failures, at most 255.
  public private(set) var failures: UInt8 = 0
  private var isPresent = false
  private var isBlocked = false
  private var state = State.held

  public init() {}

  /// Whether every step of the escalation has failed. Attempts continue.
  public var isHopeless: Bool { failures > Self.stepsMax }
  public var isUsable: Bool { isPresent && !isBlocked }

  /// The time at which `nextStep` returns a step without a further event.
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
    // When every step has failed, only the parity of `failures` selects the next step.
    failures = failures < 254 ? failures + 1 : 253
    let pause = Backoff.pause(after: Int(failures) - 1, first: Self.pauseMin, longest: Self.pauseMax)
    state = .resting(until: now + pause)
  }
}
