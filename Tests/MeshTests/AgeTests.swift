import Frame
import Primitives
import TestSupport
import Testing

@testable import Mesh

// A neighbour sends the age of an advertisement unsigned. So a node bounds the age by its own knowledge.

private func rest(_ bench: Bench, of number: Int, at now: Instant = start) -> UInt64 {
  180 - bench.mesh.age(of: bench.mesh.index(of: bench.id(number))!, .topology, now: now) / 1000
}

@Test func `a newer advertisement counts as no older than its predecessor, whatever its age field`() {
  let bench = Bench()
  bench.state(1, [])
  let later = start + .seconds(50)
  #expect(bench.assess(1, epoch: 1, sequence: 2, age: 179_999, at: later) == .new)
  #expect(bench.assess(1, epoch: 1, sequence: 2, age: .max, at: later) == .new)
  bench.state(1, [], sequence: 2, age: 179_999, at: later)
  #expect(rest(bench, of: 1, at: later) == 130)
  // The next advertisement arrives before the stored one expires, 30 s later.
  bench.state(1, [], sequence: 3, age: .max, at: later + .seconds(100))
  #expect(rest(bench, of: 1, at: later + .seconds(100)) == 30)
}

@Test func `a younger copy of the same bytes extends the lifetime`() {
  let bench = Bench()
  bench.state(1, [], age: 179_000)
  #expect(rest(bench, of: 1) == 1)
  bench.receiveKnown(1, sequence: 1, age: 2_000, from: 3)
  #expect(rest(bench, of: 1) == 178)
  bench.mesh.expire(now: start + .seconds(170))
  #expect(bench.mesh.nodeCount == 1)
  bench.mesh.expire(now: start + .seconds(178))
  #expect(bench.mesh.nodeCount == 0)
}

@Test func `a younger copy with other bytes changes nothing`() {
  let bench = Bench()
  bench.state(1, [], age: 100_000)
  let other = Neighbour(node: bench.id(2), cost: 1, payloadBytesMax: 2048, bearer: .ethernet)
  bench.receiveKnown(1, topologyBody([other]), sequence: 1, from: 3)
  #expect(rest(bench, of: 1) == 80)
}

@Test func `an older copy changes nothing`() {
  let bench = Bench()
  bench.state(1, [], age: 20_000)
  bench.receiveKnown(1, sequence: 1, age: 170_000, from: 3)
  #expect(rest(bench, of: 1) == 160)
}

@Test func `a much younger copy is sent to the other neighbours`() {
  let bench = Bench()
  for number in 1...3 { bench.link(number, to: number) }
  bench.state(9, [], age: 179_900, from: 1)
  for slot in 1...3 { _ = bench.told(slot) }
  bench.receiveKnown(9, sequence: 1, age: 1_000, from: 2)
  #expect(bench.told(1) == ["9 topology"] && bench.told(2).isEmpty && bench.told(3) == ["9 topology"])
  #expect(bench.mesh.takeLinksToFlood() & 0b1010 == 0b1010)
}

@Test func `a growing lifetime is forwarded only a few times`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.state(9, [], age: 180_000 - 1, from: 2)
  _ = bench.told(1)
  var told = 0
  for age in stride(from: UInt64(179_900), through: 0, by: -100) {
    bench.receiveKnown(9, sequence: 1, age: age, from: 2)
    told += bench.told(1).count
  }
  #expect(told == 5)
  #expect(rest(bench, of: 9) == 180)
}

@Test func `a neighbour with a much older copy receives the advertisement`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.state(9, [], from: 2)
  bench.receiveKnown(9, sequence: 1, age: 31_000, from: 1)
  #expect(bench.told(1) == ["9 topology"])
  bench.state(9, [], sequence: 2, from: 2)
  bench.receiveKnown(9, sequence: 2, age: 29_000, from: 1)
  #expect(bench.told(1).isEmpty)
}

@Test func `a neighbour that sent a much older copy first receives the younger one`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.link(2, to: 2)
  bench.state(9, [], from: 2)
  _ = bench.told(1)
  bench.state(9, [], sequence: 2, age: 170_000, from: 1)
  #expect(bench.told(1) == ["9 topology"])
}

// MARK: Renewals

@Test func `renewals of one node are accepted once per second after a burst`() {
  let bench = Bench()
  for sequence in 1...4 as ClosedRange<UInt64> { bench.state(1, [], sequence: sequence) }
  #expect(bench.mesh.stamp(of: bench.mesh.index(of: bench.id(1))!, .topology)!.sequence == 4)
  #expect(bench.assess(1, epoch: 1, sequence: 5) == .tooOften)
  #expect(bench.assess(1, epoch: 2, sequence: 1) == .tooOften)
  // Profiles have a rate limit of their own.
  #expect(bench.assess(1, .profile, epoch: 1, sequence: 1) == .new)
  #expect(bench.assess(1, epoch: 1, sequence: 5, at: start + .milliseconds(999)) == .tooOften)
  bench.state(1, [], sequence: 5, at: start + .seconds(1))
  #expect(bench.assess(1, epoch: 1, sequence: 6, at: start + .seconds(1)) == .tooOften)
}

@Test func `a requested advertisement is sent again`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  bench.mesh.proveLink(1)
  for number in 2...4 { bench.state(number, []) }
  _ = bench.told(1)
  // The advertisement is sent again over the link in use, not over the link on which the request arrived.
  bench.mesh.markUnsentAgain(bench.id(3), on: 0)
  bench.mesh.markUnsentAgain(bench.id(77), on: 0)
  #expect(bench.told(0).isEmpty && bench.told(1) == ["3 topology"])
  bench.mesh.markUnsentAgain(.none, on: 1)
  #expect(bench.told(1).sorted() == ["2 topology", "3 topology", "4 topology"])
}
