import Primitives
import Testing

/// The units that each of `holders` holders has at the end. All take one unit in turn until none may take another unit.
private func greedy(_ rule: ShareRule, _ holders: Int) -> [Int] {
  var held = [Int](repeating: 0, count: holders)
  var isGreedy = true
  while isGreedy {
    isGreedy = false
    for holder in held.indices where rule.mayTake(1, held: held[holder], taken: held.reduce(0, +)) {
      held[holder] += 1
      isGreedy = true
    }
  }
  return held
}

@Suite struct ShareRuleTests {
  @Test(arguments: [(1, 1, 32), (1, 2, 43), (2, 2, 26), (3, 2, 19), (4, 1, 13)])
  func `greedy holders get equal shares and leave one to a newcomer`(holders: Int, factor: Int, each: Int) {
    let rule = ShareRule(capacity: 64, factor: factor)
    let held = greedy(rule, holders)
    #expect(held.allSatisfy { (each - 1...each).contains($0) }, "\(held)")
    #expect(rule.mayTake(1, held: 0, taken: held.reduce(0, +)))
  }

  @Test func `a reserve for favoured holders is unavailable to all others`() {
    let rule = ShareRule(capacity: 20, reserve: 4, factor: 2)
    #expect(greedy(rule, 1) == [11])
    #expect(greedy(rule, 30).reduce(0, +) == 16)
    #expect(!rule.mayTake(1, held: 0, taken: 16) && rule.mayTake(4, held: 0, taken: 16, isFavoured: true))
    #expect(!rule.mayTake(1, held: 19, taken: 20, isFavoured: true))
  }

  @Test func `each holder may take one unit while one is free`() {
    let rule = ShareRule(capacity: 4, reserve: 1)
    #expect(rule.mayTake(1, held: 0, taken: 2) && !rule.mayTake(1, held: 1, taken: 2))
  }

  @Test func `a single large item does not exceed a share of bytes`() {
    let rule = ShareRule(capacity: 1_200, reserve: 300, factor: 2)
    #expect(rule.bytesMax(held: 0, taken: 0) == 600)
    #expect(rule.bytesMax(held: 600, taken: 600) == 0)
    #expect(rule.bytesMax(held: 0, taken: 600) == 200)
    #expect(rule.bytesMax(held: 0, taken: 1_000) == 0)
    #expect(rule.bytesMax(held: 600, taken: 600, isFavoured: true) == 600)
  }
}
