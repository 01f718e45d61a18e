import Primitives
import Testing

@testable import Node

private let start = Instant.zero + .seconds(1000)

@Test func aPeerKeepsItsPlaceForAMinuteAfterMuchPassed() {
  var demand = TrafficDemand()
  demand.openWindow(now: start)
  #expect(demand.windowEnd == start + .seconds(10))
  #expect(demand.add(5, now: start + .seconds(3)))
  #expect(demand.contains(5))
  var now = start
  while demand.contains(5) {
    now = demand.windowEnd
    _ = demand.closeWindow(now: now)
    if now > start + .seconds(100) { break }
  }
  #expect(now == start + .seconds(70))
  #expect(demand.windowEnd == .never, "without anybody nothing is to be counted")
}

@Test func whoGoesOnKeepsItsPlace() {
  var demand = TrafficDemand()
  demand.openWindow(now: start)
  #expect(demand.add(5, now: start))
  for _ in 0..<20 {
    let now = demand.windowEnd
    #expect(!demand.add(5, now: now))
    #expect(!demand.closeWindow(now: now))
  }
  #expect(demand.contains(5))
}

@Test func eightPeersHaveAPlaceAndTheNinthWaits() {
  var demand = TrafficDemand()
  demand.openWindow(now: start)
  for hint in 1...8 as ClosedRange<UInt64> { #expect(demand.add(hint, now: start)) }
  #expect(!demand.add(9, now: start) && !demand.contains(9))
  #expect(demand.closeWindow(now: start + .seconds(61)))
  #expect(demand.add(9, now: start + .seconds(61)))
}

@Test func nobodyWithoutANameHasAPlace() { #expect(!TrafficDemand().contains(0)) }
