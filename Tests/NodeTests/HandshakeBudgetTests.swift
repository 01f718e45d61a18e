import Primitives
import Testing

@testable import Node

/// The processor time of handshakes with peers that have proven no key.
struct HandshakeBudgetTests {
  private var budget = HandshakeBudget()
  private var now = Instant.zero + .seconds(1000)

  /// Makes handshakes of `milliseconds` each until none may begin, at most 1000. Returns their number.
  @discardableResult private mutating func make(
    _ standing: Standing, milliseconds: UInt64 = 2, max: Int = 1000
  ) -> Int {
    for count in 0..<max {
      if budget.readyAt(standing) > now { return count }
      var charge = budget.begin(UInt64(count + 1), standing, now: now)
      budget.spent(.milliseconds(milliseconds), &charge, now: now)
      budget.ended(charge)
    }
    return max
  }

  @Test mutating func `strangers get a tenth of a processor, whatever a handshake costs`() {
    for milliseconds in [1, 2, 10, 40] as [UInt64] {
      make(.stranger, milliseconds: milliseconds)
      var time: UInt64 = 0
      let begin = now
      while now - begin < .seconds(20) {
        time += UInt64(make(.stranger, milliseconds: milliseconds)) * milliseconds
        now = max(now + .milliseconds(1), budget.readyAt(.stranger))
      }
      #expect((1900...2150).contains(time), "\(milliseconds) ms")
    }
  }

  @Test mutating func `at once strangers get half a second`() {
    #expect(make(.stranger) == 251)
  }

  @Test mutating func `known addresses have time that strangers cannot use`() {
    make(.stranger)
    #expect(make(.proven) == 251)
    #expect(make(.pinned) == 251)
    #expect(budget.readyAt(.stranger) > now && budget.readyAt(.proven) > now && budget.readyAt(.pinned) > now)
  }

  @Test mutating func `known addresses use their own time first, and then that of the others`() {
    #expect(make(.pinned) == 753)
    #expect(make(.stranger) == 0)
  }

  @Test mutating func `a handshake gets back what it did not use`() {
    for _ in 0..<1000 {
      #expect(budget.readyAt(.stranger) <= now)
      budget.ended(budget.begin(1, .stranger, now: now))
    }
  }

  @Test mutating func `handshakes pay in advance what the last ones cost`() {
    make(.stranger, milliseconds: 50, max: 20)
    now = now + .seconds(100)
    var running: [HandshakeBudget.Charge] = []
    while budget.readyAt(.stranger) <= now { running.append(budget.begin(1, .stranger, now: now)) }
    #expect(running.count == 11)
  }

  @Test mutating func `the turns of 512 sources are remembered, the latest ones`() {
    #expect(budget.turn(of: 1) == 0)
    for source in 1...513 as ClosedRange<UInt64> { _ = budget.begin(source, .stranger, now: now) }
    #expect(budget.turn(of: 1) == 0 && budget.turn(of: 2) == 2 && budget.turn(of: 513) == 513)
    _ = budget.begin(2, .stranger, now: now)
    _ = budget.begin(600, .stranger, now: now)
    #expect(budget.turn(of: 2) == 514 && budget.turn(of: 3) == 0)
  }
}
