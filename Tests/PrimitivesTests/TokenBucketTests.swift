import Primitives
import Testing

private let start = Instant.zero + .seconds(1000)

private final class Bucket {
  private var bucket = TokenBucket()
  private let rate: TokenRate

  init(_ rate: TokenRate) { self.rate = rate }

  func take(after span: TimeSpan) -> Bool { bucket.take(rate, now: start + span) }
  func takeAll(after span: TimeSpan) -> Int {
    var count = 0
    while take(after: span) { count += 1 }
    return count
  }
  var next: Instant { bucket.next(rate) }
}

@Test func `a bucket grants its burst and then one token per interval`() {
  let bucket = Bucket(TokenRate(interval: .seconds(5), burst: 4))
  #expect(bucket.takeAll(after: .seconds(0)) == 4 && bucket.next == start + .seconds(5))
  #expect(!bucket.take(after: .milliseconds(4999)))
  #expect(bucket.takeAll(after: .seconds(5)) == 1 && bucket.takeAll(after: .seconds(9)) == 0)
  #expect(bucket.takeAll(after: .seconds(10)) == 1)
}

@Test func `an idle bucket holds at most its burst`() {
  let bucket = Bucket(TokenRate(interval: .seconds(5), burst: 4))
  #expect(bucket.takeAll(after: .seconds(0)) == 4)
  #expect(bucket.takeAll(after: .seconds(3600)) == 4)
}

@Test func `a refused token is not charged`() {
  let bucket = Bucket(TokenRate(perSecond: 1, burst: 1))
  #expect(bucket.take(after: .seconds(0)))
  for millisecond in 0..<1000 as Range<UInt64> { #expect(!bucket.take(after: .milliseconds(millisecond))) }
  #expect(bucket.take(after: .seconds(1)))
}
