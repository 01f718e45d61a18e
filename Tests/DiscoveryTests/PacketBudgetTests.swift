import Primitives
import Testing

@testable import Discovery

/// The processor time of multicast DNS packets, by source and by interface.
struct PacketBudgetTests {
  private var budget = PacketBudget()
  private var now = Instant.zero + .seconds(1000)

  /// A source sends `count` packets of 1 ms each. Returns the number that was paid for.
  @discardableResult private mutating func send(
    _ count: Int, from source: UInt64, on interface: UInt32 = 2, isProven: Bool = false
  ) -> Int {
    (0..<count).count { _ in
      guard let payer = budget.payer(source, on: interface, now: now, isProven: { isProven }) else { return false }
      budget.charge(.milliseconds(1), to: payer, source, on: interface)
      return true
    }
  }

  @Test mutating func `all packets get a tenth of a processor`() {
    send(1000, from: 1)
    var paid = 0
    for _ in 0..<1000 {
      now = now + .milliseconds(10)
      paid += send(10, from: 1)
    }
    #expect((998...1002).contains(paid))
  }

  @Test mutating func `one source uses half of its interface's burst, and another source still gets a share`() {
    #expect(send(1000, from: 1) == 125)
    #expect(send(1000, from: 2) == 63)
    #expect(send(1000, from: 3, on: 3) == 125)
  }

  @Test mutating func `packets of one interface leave time for those of another`() {
    for source in 1...200 as ClosedRange<UInt64> { send(2, from: source) }
    #expect(send(1, from: 1000) == 0)
    #expect(send(1000, from: 1000, on: 3) > 50)
  }

  @Test mutating func `the packets of a quiet source are read during the flood of another`() {
    var paid = 0
    for round in 0..<1000 {
      send(10, from: 1)
      if round % 20 == 0 { paid += send(1, from: 2) }
      now = now + .milliseconds(10)
    }
    #expect(paid == 50)
  }

  @Test mutating func `sources with a proven service have a reserve`() {
    for source in 1...500 as ClosedRange<UInt64> { send(2, from: source) }
    #expect(send(1000, from: 7, isProven: false) == 0)
    #expect(send(1000, from: 8, isProven: true) == 60)
    #expect(send(1000, from: 9, isProven: true) == 30)
    #expect(send(1000, from: 10, isProven: false) == 0)
  }

  @Test mutating func `a source is charged for what it used, even if it sends under many addresses`() {
    for source in 0..<10_000 as Range<UInt64> { send(1, from: source) }
    now = now + .seconds(10)
    let paid = (20_000..<30_000 as Range<UInt64>).reduce(0) { sum, source in sum + send(1, from: source) }
    #expect(paid <= 251)
    now = now + .milliseconds(200)
    #expect((40_000..<50_000 as Range<UInt64>).reduce(0) { sum, source in sum + send(1, from: source) } == 20)
  }

  @Test mutating func `one packet is charged at most the burst`() {
    let payer = budget.payer(1, on: 2, now: now, isProven: { false })
    budget.charge(.seconds(100), to: payer ?? .reserve, 1, on: 2)
    now = now + .seconds(5)
    #expect(send(1, from: 1) == 1)
  }
}
