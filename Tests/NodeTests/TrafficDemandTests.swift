import Primitives
import Testing

@testable import Node

private let start = Instant.zero + .seconds(1000)

/// Counts the traffic with each peer in consecutive windows of time.
private final class Counter {
  private(set) var demand = TrafficDemand()

  init() { demand.openWindow(now: start) }

  func add(_ hint: UInt64, from holder: Int = 0, at now: Instant = start) -> Bool {
    demand.add(hint, from: holder, now: now)
  }

  /// Ends the current window and returns the time of its end.
  func closeWindow() -> Instant {
    let end = demand.windowEnd
    _ = demand.closeWindow(now: end)
    return end
  }
}

@Test func `a peer keeps its slot for a minute after heavy traffic`() {
  let counter = Counter()
  #expect(counter.demand.windowEnd == start + .seconds(10))
  #expect(counter.add(5, at: start + .seconds(3)))
  #expect(counter.demand.contains(5))
  var now = start
  for _ in 0..<20 where counter.demand.contains(5) { now = counter.closeWindow() }
  #expect(now == start + .seconds(70))
  #expect(counter.demand.windowEnd == .never, "without anybody nothing is to be counted")
}

@Test func `a peer with continuing traffic keeps its slot`() {
  let counter = Counter()
  #expect(counter.add(5))
  for _ in 0..<20 {
    #expect(!counter.add(5, at: counter.demand.windowEnd))
    _ = counter.closeWindow()
  }
  #expect(counter.demand.contains(5))
}

@Test func `eight peers have slots, and the ninth waits`() {
  let counter = Counter()
  for hint in 1...8 as ClosedRange<UInt64> { #expect(counter.add(hint)) }
  #expect(!counter.add(9) && !counter.demand.contains(9))
  var now = start
  for _ in 0..<7 { now = counter.closeWindow() }
  #expect(counter.add(9, at: now))
}

@Test func `peers behind one link lose slots to peers behind another`() {
  let counter = Counter()
  for hint in 1...8 as ClosedRange<UInt64> { #expect(counter.add(hint, from: 3, at: start + .seconds(hint))) }
  #expect(!counter.add(9, from: 3, at: start + .seconds(9)))
  for hint in 10...13 as ClosedRange<UInt64> { #expect(counter.add(hint, from: 4, at: start + .seconds(hint))) }
  // The two links share the eight slots, four each.
  #expect(!counter.add(14, from: 4, at: start + .seconds(14)))
  #expect((1...8).filter { counter.demand.contains($0) } == [5, 6, 7, 8])
}

@Test func `a candidate without an id has no slot`() { #expect(!TrafficDemand().contains(0)) }
