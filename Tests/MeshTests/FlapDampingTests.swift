import Primitives
import Testing

@testable import Mesh

private let peer = NodeID(high: 1, low: 1)

private func seconds(_ span: TimeSpan?) -> UInt64? { span.map { $0.milliseconds / 1000 } }

@Test func `one break is no flapping`() {
  var history = FlapDamping()
  #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(5), now: start)) == nil)
  #expect(!history.isQuarantined(peer, .wifi, now: start) && history.deadline(after: start) == .never)
}

@Test func `every further break soon after lengthens the quarantine up to two minutes`() {
  var history = FlapDamping()
  let spans = (0..<7).map { _ in seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(1), now: start)) }
  #expect(spans == [nil, 30, 60, 90, 120, 120, 120])
  #expect(history.isQuarantined(peer, .wifi, now: start + .seconds(119)))
  #expect(!history.isQuarantined(peer, .wifi, now: start + .seconds(120)))
  #expect(history.deadline(after: start) == start + .seconds(120))
}

@Test func `a link that was up for half a minute has not flapped`() {
  var history = FlapDamping()
  for _ in 0..<5 { #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(30), now: start)) == nil) }
}

@Test func `breaks that lie far apart are forgotten`() {
  var history = FlapDamping()
  for hour in 0..<5 as Range<UInt64> {
    let now = start + .seconds(hour * 3600)
    #expect(seconds(history.linkBroke(peer, .wifi, from: 1, life: .seconds(1), now: now)) == nil)
  }
}

@Test func `a bearer that flaps leaves the others and other neighbours alone`() {
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

@Test func `in a full history who broke least is forgotten`() {
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

@Test func `breaks of many keys of one address leave other neighbours their penalties`() {
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
