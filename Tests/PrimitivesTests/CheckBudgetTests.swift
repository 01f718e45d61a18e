import Primitives
import Testing

private let start = Instant.zero + .seconds(10)

@Suite struct CheckBudgetTests {
  @Test func `a batch has three checks, and the next batch begins on its own only after a while`() {
    var budget = CheckBudget()
    budget.beginPiece(now: start)
    let granted = (0..<Limits.checksPerPiece).map { _ in budget.take(by: 1, now: start) }
    let beyond = budget.take(by: 2, now: start), tables = budget.takeForTables(by: 2, now: start)
    let isLeft = budget.takeOfPiece(now: start + .milliseconds(4))
    let later = budget.take(by: 2, now: start + .milliseconds(5))
    #expect(granted.allSatisfy { $0 == .granted })
    #expect(beyond == .pieceUsed && tables == 0 && !isLeft && later == .granted)
  }

  @Test func `a single link gets the whole rate over any number of batches`() {
    var budget = CheckBudget()
    var granted = 0
    for millisecond in 0..<2_000 as Range<UInt64> {
      let now = start + .milliseconds(millisecond)
      budget.beginPiece(now: now)
      granted += budget.takeForTables(by: 1, now: now)
    }
    #expect((300...320).contains(granted))
  }

  @Test func `table checks leave the link some checks for advertisements`() {
    var budget = CheckBudget()
    var tables = 0
    while true {
      budget.beginPiece(now: start)
      let granted = budget.takeForTables(by: 1, now: start)
      if granted == 0 { break }
      tables += granted
    }
    var others = 0
    while true {
      budget.beginPiece(now: start)
      if budget.take(by: 1, now: start) != .granted { break }
      others += 1
    }
    #expect(tables == 14 && others == 2)
  }

  @Test func `unused checks are returned to the link and the batch`() {
    var budget = CheckBudget()
    budget.beginPiece(now: start)
    let granted = budget.takeForTables(by: 1, now: start)
    budget.giveBack(granted, by: 1)
    let again = budget.takeForTables(by: 1, now: start)
    #expect(granted == 3 && again == 3)
  }

  @Test func `each one of two greedy links gets half of the rate`() {
    var budget = CheckBudget()
    var granted = [0, 0]
    for millisecond in 0..<10_000 as Range<UInt64> {
      let now = start + .milliseconds(millisecond)
      for link in 0..<2 {
        budget.beginPiece(now: now)
        granted[link] += budget.takeForTables(by: link, now: now)
      }
    }
    #expect(abs(granted[0] - granted[1]) < 20 && (1_480...1_540).contains(granted[0] + granted[1]))
  }
}
