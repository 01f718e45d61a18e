/// How often something may happen: once in `interval` on average, `burst` times at once.
public struct TokenRate: Sendable {
  public let interval: TimeSpan
  public let burst: UInt64

  public init(interval: TimeSpan, burst: UInt64) {
    self.interval = interval
    self.burst = burst
  }

  /// `perSecond` times a second on average.
  public init(perSecond: UInt64, burst: UInt64) { self.init(interval: .seconds(1) / perSecond, burst: burst) }
}

/// The tokens left of a `TokenRate`, as one instant (the generic cell rate algorithm, ITU-T I.371). Full at first.
public struct TokenBucket: Sendable {
  private var fullAt = Instant.zero

  public init() {}

  /// When the next token is there.
  public func next(_ rate: TokenRate) -> Instant {
    Instant.zero + (fullAt - (Instant.zero + rate.interval * (rate.burst - 1)))
  }

  public func hasToken(_ rate: TokenRate, now: Instant) -> Bool { next(rate) <= now }

  /// Takes a token; false when there is none.
  public mutating func take(_ rate: TokenRate, now: Instant) -> Bool {
    guard hasToken(rate, now: now) else { return false }
    charge(1, rate, now: now)
    return true
  }

  /// Takes tokens, whether they are there or not: those that are not are taken from what comes later.
  public mutating func charge(_ tokens: UInt64, _ rate: TokenRate, now: Instant) {
    fullAt = max(fullAt, now) + rate.interval * tokens
  }
}
