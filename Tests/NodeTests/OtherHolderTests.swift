import Frame
import Journal
import Node
import Primitives
import TestSupport
import Testing

@testable import Node

/// A neighbour that is linked with another holder of the node's key closes each link of the node. How often that was told.
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

@Test func `a neighbour that keeps another link to this node's key for 20 s is told once`() {
  #expect(told(closing: 12, every: .seconds(2)) == 1)
}

@Test func `a former link that the neighbour gives up in time is no other holder`() {
  #expect(told(closing: 10, every: .seconds(2)) == 0)
}

@Test func `links that end otherwise tell of no other holder`() {
  #expect(told(closing: 12, every: .seconds(2), reason: 10) == 0)
}

@Test func `who has another link to the neighbour was refused for that one`() {
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

@Test func `one neighbour is watched until a link to it lasts or nothing is heard for a minute`() {
  let now = Instant.zero + .seconds(1000), one = Bench.people[1].id, other = Bench.people[2].id
  var holder = OtherHolder()
  func isTold(by peer: NodeID, _ seconds: UInt64) -> Bool { holder.linkRefused(by: peer, now: now + .seconds(seconds)) }
  let first = isTold(by: one, 0), beside = isTold(by: other, 25), later = isTold(by: one, 26)
  #expect(!first && !beside && later && holder.isKnown(to: one) && !holder.isKnown(to: other))
  let again = isTold(by: one, 60)
  holder.linkStands(with: other)
  #expect(!again && holder.isKnown(to: one))
  holder.linkStands(with: one)
  let anew = isTold(by: one, 61), early = isTold(by: one, 80), minute = isTold(by: one, 141)
  #expect(!anew && !early && !minute && !holder.isKnown(to: one))
}

@Test func `it is told again after ten minutes`() {
  let now = Instant.zero + .seconds(1000), peer = Bench.people[1].id
  var holder = OtherHolder(), times: [UInt64] = []
  for second in stride(from: 0, to: 1300, by: 20) as StrideTo<UInt64> {
    if holder.linkRefused(by: peer, now: now + .seconds(second)) { times.append(second) }
  }
  #expect(times == [20, 620, 1220])
}
