import Primitives
import Testing

private let start = Instant.zero + .seconds(1000)

extension FairShare {
  // `mayTake` and `held` are mutating, so these functions call them on a copy.
  fileprivate func wouldTake(_ units: Int, by holder: Int) -> Bool {
    var copy = self
    return copy.mayTake(units, by: holder)
  }
  fileprivate func holding(_ holder: Int) -> Int {
    var copy = self
    return copy.held(by: holder)
  }
}

@Test func `a single holder gets half, and a newcomer may take as much`() {
  var share = FairShare(capacity: 32)
  while share.mayTake(1, by: 0) { share.take(1, by: 0) }
  #expect(share.holding(0) == 16 && share.free == 16)
  #expect(share.wouldTake(16, by: 64) && !share.wouldTake(17, by: 64))
}

@Test(arguments: [1, 2, 3, 7, 15, 31]) func `greedy holders get equal amounts`(count: Int) {
  var share = FairShare(capacity: 32)
  var isGreedy = true
  while isGreedy {
    isGreedy = false
    for holder in 0..<count where share.mayTake(1, by: holder) {
      share.take(1, by: holder)
      isGreedy = true
    }
  }
  let held = (0..<count).map { share.holding($0) }
  #expect(held.max()! - held.min()! <= 1 && held.max()! <= 32 / (count + 1) + 1)
  #expect(share.wouldTake(1, by: 63))
}

@Test func `each holder may take one unit while one is free`() {
  var share = FairShare(capacity: 4)
  for holder in 0..<4 {
    #expect(share.wouldTake(1, by: holder))
    share.take(1, by: holder)
  }
  #expect(!share.wouldTake(1, by: 9))
  share.giveBack(1, by: 2)
  #expect(share.wouldTake(1, by: 9) && share.free == 1)
}

/// The number of units that each holder in `greedy` gets in `seconds`, when each asks for one unit every millisecond.
private func taken(_ rate: inout FairRate, _ greedy: [Int], seconds: UInt64, from start: Instant) -> [Int] {
  var taken = [Int](repeating: 0, count: greedy.count)
  for millisecond in 0..<seconds * 1000 {
    for index in greedy.indices where rate.take(by: greedy[index], now: start + .milliseconds(millisecond)) {
      taken[index] += 1
    }
  }
  return taken
}

@Test func `a single holder gets the whole rate`() {
  var rate = FairRate(burst: 32, perSecond: 200)
  let count = taken(&rate, [7], seconds: 10, from: start)[0]
  #expect((2000...2032).contains(count))
}

@Test func `greedy holders get equal parts of a rate`() {
  var rate = FairRate(burst: 32, perSecond: 200)
  let counts = taken(&rate, [3, 5, 60, 64], seconds: 10, from: start)
  #expect(counts.reduce(0, +) <= 2032 && counts.allSatisfy { (490...520).contains($0) }, "\(counts)")
}

@Test func `a newcomer gets its share of an exhausted rate at once`() {
  var rate = FairRate(burst: 32, perSecond: 200)
  _ = taken(&rate, [0], seconds: 5, from: start)
  let late = start + .seconds(5)
  var atOnce = 0
  while rate.take(by: 1, now: late) { atOnce += 1 }
  #expect(atOnce >= 8)
  let counts = taken(&rate, [0, 1], seconds: 10, from: late)
  #expect(counts.allSatisfy { (980...1030).contains($0) }, "\(counts)")
}

@Test func `an idle rate saves up no more than its burst`() {
  var rate = FairRate(burst: 32, perSecond: 200)
  _ = taken(&rate, [0], seconds: 1, from: start)
  var atOnce = 0
  while rate.take(by: 0, now: start + .seconds(100)) { atOnce += 1 }
  #expect(atOnce == 16)
}

@Test func `a holder that used more than its share waits until the excess is paid`() {
  var rate = FairRate(burst: 32, perSecond: 10)
  // The share of the holder is 16 units at once, so the holder has no debt yet.
  rate.charge(16, to: 3, now: start)
  rate.charge(5, to: 3, now: start)
  #expect(rate.take(by: 3, now: start + .milliseconds(500)) == false)
  #expect(rate.take(by: 4, now: start + .milliseconds(500)) == true)
  #expect(rate.take(by: 3, now: start + .seconds(1)) == true)
  // The debt of the holder is limited to half of the burst.
  rate.charge(1000, to: 3, now: start + .seconds(1))
  #expect(rate.take(by: 3, now: start + .seconds(2)) == false)
  #expect(rate.take(by: 3, now: start + .seconds(5)) == true)
}
