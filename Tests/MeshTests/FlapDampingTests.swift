import Primitives
import Testing

@testable import Mesh

private let peer = NodeID(high: 1, low: 1)

private func seconds(_ span: TimeSpan?) -> UInt64? { span.map { $0.milliseconds / 1000 } }

@Test func `a single break causes no quarantine`() {
  var history = FlapDamping()
  #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(5), now: start)) == nil)
  #expect(!history.isQuarantined(peer, .wifi, now: start) && history.deadline(after: start) == .never)
}

@Test func `each further break in short succession lengthens the quarantine up to two minutes`() {
  var history = FlapDamping()
  let spans = (0..<7).map { _ in seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(1), now: start)) }
  #expect(spans == [nil, 30, 60, 90, 120, 120, 120])
  #expect(history.isQuarantined(peer, .wifi, now: start + .seconds(119)))
  #expect(!history.isQuarantined(peer, .wifi, now: start + .seconds(120)))
  #expect(history.deadline(after: start) == start + .seconds(120))
}

@Test func `a link that was up for half a minute does not count as flapping`() {
  var history = FlapDamping()
  for _ in 0..<5 { #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(30), now: start)) == nil) }
}

@Test func `breaks long ago are forgotten`() {
  var history = FlapDamping()
  for hour in 0..<5 as Range<UInt64> {
    let now = start + .seconds(hour * 3600)
    #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(1), now: now)) == nil)
  }
}

@Test func `a flapping bearer does not affect other bearers and neighbours`() {
  var history = FlapDamping()
  for _ in 0..<3 { _ = history.linkBroke(peer, .wifi, from: 1, life: .seconds(1), now: start) }
  #expect(history.isQuarantined(peer, .wifi, now: start))
  #expect(!history.isQuarantined(peer, .bluetoothLE, now: start))
  #expect(!history.isQuarantined(NodeID(high: 2, low: 1), .wifi, now: start))
}

@Test func `a penalty halves in half a minute`() {
  #expect(FlapDamping.decayed(8000, .seconds(0)) == 8000)
  #expect(FlapDamping.decayed(8000, .seconds(15)) == 6000)
  #expect(FlapDamping.decayed(8000, .seconds(30)) == 4000)
  #expect(FlapDamping.decayed(8000, .seconds(60)) == 2000)
  #expect(FlapDamping.decayed(8000, .seconds(100_000)) == 0)
}

@Test func `the neighbour with the fewest breaks is evicted from a full history`() {
  var history = FlapDamping()
  for number in 1...64 as ClosedRange<UInt64> {
    for _ in 0..<(number == 20 ? 1 : 3) {
      _ = history.linkBroke(NodeID(high: number, low: 0), .wifi, from: 1, life: .seconds(1), now: start)
    }
  }
  for _ in 0..<2 { _ = history.linkBroke(NodeID(high: 99, low: 0), .wifi, from: 1, life: .seconds(1), now: start) }
  #expect(history.isQuarantined(NodeID(high: 99, low: 0), .wifi, now: start))
  #expect(
    (1...64 as ClosedRange<UInt64>).filter { !history.isQuarantined(NodeID(high: $0, low: 0), .wifi, now: start) } == [
      20
    ])
}

@Test func `breaks of many keys at one address do not evict the penalties of other neighbours`() {
  var history = FlapDamping()
  let other = NodeID(high: 1_000, low: 0)
  for _ in 0..<2 { _ = history.linkBroke(other, .wifi, from: 2, life: .seconds(1), now: start) }
  for number in 1...100 as ClosedRange<UInt64> {
    for _ in 0..<4 {
      _ = history.linkBroke(NodeID(high: number, low: 0), .wifi, from: 1, life: .seconds(1), now: start)
    }
  }
  #expect(history.isQuarantined(other, .wifi, now: start))
  let kept = (1...100 as ClosedRange<UInt64>).filter {
    history.isQuarantined(NodeID(high: $0, low: 0), .wifi, now: start)
  }
  #expect(kept.count == 63)
}
