import Frame
import Primitives
import TestSupport
import Testing

@testable import Mesh

@Test func `a new neighbour receives every advertisement once`() {
  let bench = Bench()
  for number in 1...3 {
    bench.state(number, [])
    bench.introduce(number)
  }
  bench.link(5, to: 1)
  #expect(bench.mesh.takeLinksToFlood() == 1 << 5)
  #expect(bench.told(5).sorted() == ["1 profile", "1 topology", "2 profile", "2 topology", "3 profile", "3 topology"])
  #expect(bench.told(5).isEmpty && bench.mesh.takeLinksToFlood() == 0)
}

@Test func `a new advertisement is sent to all neighbours except its sender`() {
  let bench = Bench()
  for number in 1...3 { bench.link(number, to: number) }
  _ = bench.mesh.takeLinksToFlood()
  bench.state(9, [], from: 2)
  #expect(bench.mesh.takeLinksToFlood() == 0b1010)
  #expect(bench.told(1) == ["9 topology"] && bench.told(2).isEmpty && bench.told(3) == ["9 topology"])
}

@Test func `a neighbour that sends the stored advertisement does not receive it`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.state(9, [], sequence: 4)
  bench.introduce(9)
  bench.receiveKnown(9, sequence: 4, from: 1)
  #expect(bench.told(1) == ["9 profile"])
}

@Test func `a neighbour that sends an older advertisement receives the stored one`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.state(9, [], sequence: 4)
  bench.receiveKnown(9, sequence: 3, from: 1)
  #expect(bench.told(1) == ["9 topology"])
}

@Test func `a newer advertisement replaces the one that waits to be sent`() {
  let bench = Bench()
  bench.link(1, to: 1)
  for sequence in 1...1000 as ClosedRange<UInt64> {
    bench.state(9, [], sequence: sequence, at: start + .seconds(sequence))
  }
  #expect(bench.told(1) == ["9 topology"])
  #expect(bench.mesh.stamp(of: bench.mesh.index(of: bench.id(9))!, .topology)!.sequence == 1000)
}

@Test func `advertisements of unreachable nodes are sent last`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.link(2, to: 2)
  for invented in 20..<25 { bench.state(invented, []) }
  bench.state(1, [.init(number: 0), .init(number: 9)])
  bench.state(9, [.init(number: 1)])
  _ = bench.route(to: 9)
  #expect(bench.told(2).prefix(2).sorted() == ["1 topology", "9 topology"])
}

@Test func `a second link to a neighbour carries no advertisement until it is in use`() {
  let bench = Bench()
  bench.state(9, [])
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  #expect(bench.told(1).isEmpty)
  bench.state(8, [])
  bench.mesh.proveLink(1)
  // Advertisements that were not yet sent over the first link are sent over the second link.
  #expect(bench.told(0).isEmpty && bench.told(1).sorted() == ["8 topology", "9 topology"])
}

@Test func `advertisements that a removed link may have lost are sent again`() {
  let bench = Bench()
  bench.state(9, [])
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  #expect(bench.told(0) == ["9 topology"])
  bench.mesh.removeLink(0)
  #expect(bench.told(1) == ["9 topology"])
}

@Test func `advertisements that a former link in use may have lost are sent again`() {
  let bench = Bench()
  bench.state(9, [])
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  #expect(bench.told(0) == ["9 topology"])
  bench.mesh.proveLink(1)
  #expect(bench.told(1).isEmpty)
  bench.mesh.removeLink(0)
  #expect(bench.told(1) == ["9 topology"])
}

@Test func `the end of a link that was never in use causes no repetition`() {
  let bench = Bench()
  bench.state(9, [])
  bench.link(0, to: 1, .wifi)
  bench.link(1, to: 1, .bluetoothLE)
  _ = bench.told(0)
  bench.mesh.removeLink(1)
  #expect(bench.told(0).isEmpty)
}

@Test func `the node's own advertisement is sent to every neighbour, and to later ones`() {
  let bench = Bench()
  bench.link(1, to: 1)
  bench.makeOwn(sequence: 1)
  bench.link(2, to: 2)
  #expect(bench.told(1) == ["0 profile"] && bench.told(2) == ["0 profile"])
  #expect(bench.mesh.nodeCount == 0 && bench.route(to: 0) == nil)
}

@Test func `the node's own advertisement is an echo unless it is newer`() {
  let bench = Bench()
  bench.makeOwn(sequence: 4)
  #expect(bench.assess(0, .profile, epoch: 1, sequence: 4) == .ownEcho)
  #expect(bench.assess(0, .profile, epoch: 1, sequence: 3) == .ownEcho)
  #expect(bench.assess(0, .profile, epoch: 1, sequence: 5) == .ownFromElsewhere)
  #expect(bench.assess(0, .profile, epoch: 2, sequence: 1) == .ownFromElsewhere)
}

// MARK: Ageing

@Test func `an advertisement expires after its lifetime minus its age`() {
  let bench = Bench()
  bench.state(1, [], lifetime: 60, age: 20_000)
  #expect(bench.mesh.expiryDeadline == start + .seconds(40))
  let index = bench.mesh.index(of: bench.id(1))!
  #expect(bench.mesh.age(of: index, .topology, now: start + .seconds(5)) == 25_000)
}

@Test func `an advertisement as old as its lifetime is stale`() {
  let bench = Bench()
  #expect(bench.assess(1, epoch: 1, sequence: 1, age: 179_999) == .new)
  #expect(bench.assess(1, epoch: 1, sequence: 1, age: 180_000) == .stale)
  #expect(bench.assess(1, epoch: 1, sequence: 1, age: .max) == .stale)
}

@Test func `the node's own advertisement does not age`() {
  let bench = Bench()
  bench.makeOwn(sequence: 1)
  bench.mesh.expire(now: start + .seconds(10_000))
  #expect(bench.mesh.age(of: 0, .profile, now: start + .seconds(10_000)) == 0)
  bench.link(1, to: 1)
  #expect(bench.told(1) == ["0 profile"])
}

// MARK: Causes of route changes

@Test func `a mere renewal of an advertisement causes no computation of routes`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0)])
  bench.mesh.computeRoutes()
  bench.state(1, [.init(number: 0)], sequence: 2)
  #expect(!bench.mesh.needsRoutes)
  bench.state(1, [.init(number: 0)], epoch: 2)
  #expect(bench.mesh.needsRoutes)
}
