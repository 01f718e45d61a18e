/// How often something may happen from one address, for the 64 addresses from which it happened most: a further address
/// takes the place of the one whose bucket is the fullest.
public struct SourceBuckets {
  private struct Entry {
    var source: UInt64 = 0
    var bucket = TokenBucket()
  }

  public let rate: TokenRate
  private var entries = FixedArray<64, Entry>(repeating: Entry())

  public init(_ rate: TokenRate) { self.rate = rate }

  /// When `source` has its next token; a time in the past when it has one.
  public func next(_ source: UInt64) -> Instant {
    index(of: source).map { entries[$0].bucket.next(rate) } ?? .zero
  }

  /// Takes a token of `source`; false when it has none.
  public mutating func take(_ source: UInt64, now: Instant) -> Bool {
    let place = index(of: source) ?? replaceFullest(source)
    return entries[place].bucket.take(rate, now: now)
  }

  /// Takes tokens of `source`, whether it has them or not: those that it has not are taken from what comes later.
  public mutating func charge(_ source: UInt64, _ tokens: UInt64, now: Instant) {
    let place = index(of: source) ?? replaceFullest(source)
    entries[place].bucket.charge(tokens, rate, now: now)
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
