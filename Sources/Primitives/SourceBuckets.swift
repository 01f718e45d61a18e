/// Token buckets for 64 source addresses. A new address replaces the address with the fullest bucket, so the addresses
/// that used the most tokens stay.
public struct SourceBuckets {
  private struct Entry {
    var source: UInt64 = 0
    var bucket = TokenBucket()
  }

  public let rate: TokenRate
  private var entries = FixedArray<64, Entry>(repeating: Entry())

  public init(_ rate: TokenRate) { self.rate = rate }

  /// The time of the next token of `source`. The time is not in the future if `source` has a token now.
  public func next(_ source: UInt64) -> Instant {
    index(of: source).map { entries[$0].bucket.next(rate) } ?? .zero
  }

  /// Takes a token of `source`. Returns false if `source` has no token.
  public mutating func take(_ source: UInt64, now: Instant) -> Bool {
    let index = index(of: source) ?? replaceFullest(source)
    return entries[index].bucket.take(rate, now: now)
  }

  /// Takes tokens of `source` even if `source` has too few. The missing tokens are deducted from its future tokens.
  public mutating func charge(_ source: UInt64, _ tokens: UInt64, now: Instant) {
    let index = index(of: source) ?? replaceFullest(source)
    entries[index].bucket.charge(tokens, rate, now: now)
  }

  private func index(of source: UInt64) -> Int? {
    for index in entries.indices where entries[index].source == source { return index }
    return nil
  }

  private mutating func replaceFullest(_ source: UInt64) -> Int {
    var fullest = 0
    for index in entries.indices where entries[index].bucket.next(rate) < entries[fullest].bucket.next(rate) {
      fullest = index
    }
    entries[fullest] = Entry(source: source)
    return fullest
  }
}
