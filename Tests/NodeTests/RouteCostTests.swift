import Primitives
import Testing

@testable import Node

private let start = Instant.zero + .seconds(1000)

@Suite struct RouteCostTests {
  /// The number of checks that a link gets at once.
  private func checksLeft(of slot: Int, _ budget: CheckBudget) -> Int {
    var budget = budget
    return (0..<100).prefix { _ in
      budget.beginPiece(now: start)
      return budget.take(by: slot, now: start) == .granted
    }.count
  }

  @Test func `the computation of routes is charged to the link that caused it`() {
    var cost = RouteCost()
    var budget = CheckBudget()
    let whole = checksLeft(of: 1, budget)
    cost.note(changeFrom: 1)
    cost.charge(3 * Limits.routeStepsPerCheck, to: &budget, now: start)
    #expect(checksLeft(of: 1, budget) == whole - 3)
    #expect(checksLeft(of: 2, budget) >= whole - 3)
    // Nobody caused the next computation: the links of this node changed.
    cost.charge(3 * Limits.routeStepsPerCheck, to: &budget, now: start)
    #expect(checksLeft(of: 1, budget) == whole - 3)
  }

  @Test func `computations of small networks are charged by their sum`() {
    var cost = RouteCost()
    var budget = CheckBudget()
    let whole = checksLeft(of: 1, budget)
    for _ in 1..<8 {
      cost.note(changeFrom: 1)
      cost.charge(Limits.routeStepsPerCheck / 8, to: &budget, now: start)
    }
    #expect(checksLeft(of: 1, budget) == whole)
    cost.note(changeFrom: 1)
    cost.charge(Limits.routeStepsPerCheck / 8, to: &budget, now: start)
    #expect(checksLeft(of: 1, budget) == whole - 1)
  }

  @Test func `links that caused a computation together pay equal parts`() {
    var cost = RouteCost()
    var budget = CheckBudget()
    cost.note(changeFrom: 1)
    cost.note(changeFrom: 2)
    cost.charge(8 * Limits.routeStepsPerCheck, to: &budget, now: start)
    #expect(checksLeft(of: 1, budget) == checksLeft(of: 2, budget))
    #expect(checksLeft(of: 3, budget) > checksLeft(of: 1, budget))
  }

  @Test func `expired advertisements are removed once in 100 ms`() {
    var cost = RouteCost()
    let answers = [0, 99, 100].map { cost.mayExpire(start + .milliseconds($0)) }
    #expect(answers == [true, false, true] && cost.expiryDue == start + .milliseconds(200))
  }
}
