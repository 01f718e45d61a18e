import Frame
import Journal
import Node
import Primitives
import TestSupport
import Testing

@testable import Node

/// Plays a neighbour that already has a link to another node with the key of this node. So the neighbour closes each
/// link to this node. Returns how often this node reported the node with the same key.
private func told(closing links: Int, every pause: TimeSpan, reason: UInt8 = 2) -> Int {
  let bench = Bench(5)
  for _ in 0..<links {
    let slot = bench.neighbour(9, .ethernet)
    bench.receive(frame(.goodbye, from: bench.id(9), [reason, 0, 0, 0]), on: slot)
    bench.handle(.linkClosed(slot))
    bench.pass(pause)
  }
  return bench.told(.keyHeldElsewhere)
}

@Test func `a neighbour that keeps another link to this node's key for 20 s is reported once`() {
  #expect(told(closing: 12, every: .seconds(2)) == 1)
}

@Test func `a former link that the neighbour closes in time does not count as a duplicate key`() {
  #expect(told(closing: 10, every: .seconds(2)) == 0)
}

@Test func `links that end for other reasons do not count as a duplicate key`() {
  #expect(told(closing: 12, every: .seconds(2), reason: 10) == 0)
}

@Test func `a refused link beside another link to the neighbour does not count as a duplicate key`() {
  let bench = Bench(5)
  let kept = bench.neighbour(9, .wifi)
  for _ in 0..<12 {
    let slot = bench.neighbour(9, .ethernet)
    bench.receive(frame(.goodbye, from: bench.id(9), [2, 0, 0, 0]), on: slot)
    bench.handle(.linkClosed(slot))
    for _ in 0..<2 {
      bench.pass(.seconds(1))
      bench.receive(frame(.ping, from: bench.id(9), [0, 0, 0, 0, 0, 0, 0, 1]), on: kept)
    }
  }
  #expect(bench.node.link(kept).state == .up && bench.told(.keyHeldElsewhere) == 0)
}

@Test func `a neighbour is watched until a link to it lasts, or for a minute without a refusal`() {
  let now = Instant.zero + .seconds(1000), one = Bench.people[1].id, other = Bench.people[2].id
  var holder = DuplicateKeyDetector()
  func isTold(by peer: NodeID, _ seconds: UInt64) -> Bool {
    holder.linkRefused(by: peer, from: peer == one ? 1 : 2, now: now + .seconds(seconds))
  }
  let first = isTold(by: one, 0), beside = isTold(by: other, 25), later = isTold(by: one, 26)
  #expect(!first && !beside && later && holder.isKnown(to: one) && !holder.isKnown(to: other))
  let again = isTold(by: one, 60)
  holder.linkStands(with: other)
  #expect(!again && holder.isKnown(to: one))
  holder.linkStands(with: one)
  let anew = isTold(by: one, 61), early = isTold(by: one, 80), minute = isTold(by: one, 141)
  #expect(!anew && !early && !minute && !holder.isKnown(to: one))
}

@Test func `a duplicate key is reported again after ten minutes`() {
  let now = Instant.zero + .seconds(1000), peer = Bench.people[1].id
  var holder = DuplicateKeyDetector(), times: [UInt64] = []
  for second in stride(from: 0, to: 1300, by: 20) as StrideTo<UInt64> {
    if holder.linkRefused(by: peer, from: 1, now: now + .seconds(second)) { times.append(second) }
  }
  #expect(times == [20, 620, 1220])
}

@Test func `neither another neighbour nor many keys of one address hide a neighbour's refusal`() {
  let now = Instant.zero + .seconds(1000), honest = NodeID(high: 1_000, low: 1)
  var holder = DuplicateKeyDetector()
  let liar = holder.linkRefused(by: NodeID(high: 1, low: 1), from: 1, now: now)
  let first = holder.linkRefused(by: honest, from: 2, now: now)
  for number in 2...200 as ClosedRange<UInt64> {
    _ = holder.linkRefused(by: NodeID(high: number, low: 1), from: 1, now: now + .seconds(10))
  }
  let last = holder.linkRefused(by: honest, from: 2, now: now + .seconds(20))
  #expect(!liar && !first && last && holder.isKnown(to: honest))
}

@Test func `refusals from one address are reported once in ten minutes`() {
  let now = Instant.zero + .seconds(1000)
  var holder = DuplicateKeyDetector(), times: [UInt64] = []
  for second in stride(from: 0, through: 620, by: 10) as StrideThrough<UInt64> {
    for number in 1...30 as ClosedRange<UInt64> {
      let peer = NodeID(high: number, low: 1)
      if holder.linkRefused(by: peer, from: 1, now: now + .seconds(second)) { times.append(second) }
    }
  }
  #expect(times == [20, 620])
}
