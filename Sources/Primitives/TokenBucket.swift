/// A rate limit: one token per `interval` on average, and a burst of at most `burst` tokens.
public struct TokenRate: Sendable {
  public let interval: TimeSpan
  public let burst: UInt64

  public init(interval: TimeSpan, burst: UInt64) {
    self.interval = interval
    self.burst = burst
  }

  /// Creates a rate of `perSecond` tokens per second on average.
  public init(perSecond: UInt64, burst: UInt64) { self.init(interval: .seconds(1) / perSecond, burst: burst) }
}

/// A token bucket for a `TokenRate`, stored as one instant (the generic cell rate algorithm, ITU-T I.371). A new bucket
/// is full.
public struct TokenBucket: Sendable {
  private var fullAt = Instant.zero

  public init() {}

  /// The time of the next token. The time is not in the future if the bucket has a token now.
  public func next(_ rate: TokenRate) -> Instant {
    Instant.zero + (fullAt - (Instant.zero + rate.interval * (rate.burst - 1)))
  }

  public func hasToken(_ rate: TokenRate, now: Instant) -> Bool { next(rate) <= now }

  /// Takes a token. Returns false if the bucket has no token.
  public mutating func take(_ rate: TokenRate, now: Instant) -> Bool {
    guard hasToken(rate, now: now) else { return false }
    charge(1, rate, now: now)
    return true
  }

  /// Takes tokens even if the bucket has too few. The missing tokens are deducted from future tokens.
  public mutating func charge(_ tokens: UInt64, _ rate: TokenRate, now: Instant) {
    fullAt = max(fullAt, now) + rate.interval * tokens
  }
}
