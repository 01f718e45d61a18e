import Frame
import Node
import Primitives
import TestSupport
import Testing

@Test func `a peer is found once when it has both a route and a profile`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]), on: slot)
  #expect(bench.peerEvents() == [])
  bench.receive(bench.profile(1, name: "bob"), on: slot)
  #expect(bench.peerEvents() == ["found bob 1"])
  bench.receive(bench.topology(1, [20], sequence: 2) + bench.profile(1, name: "bob"), on: slot)
  #expect(bench.peerEvents() == [])
}

@Test func `a node with a profile but without a route is no peer`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.profile(5, name: "eve"), on: slot)
  #expect(bench.peerEvents() == [] && bench.node.peers.isEmpty)
}

@Test func `a peer has its profile and its route`() throws {
  let bench = Bench()
  let slot = bench.neighbour(1, .wifi)
  bench.receive(bench.topology(1, [20, 3]) + bench.topology(3, [1], epoch: 4), on: slot)
  let body = profileBody(name: [UInt8]("carol".utf8), service: [UInt8]("chat".utf8), pairs: [[UInt8]("a=b".utf8)])
  bench.receive(bench.advertise(3, .profile, body, epoch: 4), on: slot)
  let peer = try #require(bench.node.peers.first)
  #expect(peer.id == bench.id(3) && peer.epoch == 4 && peer.name.text == "carol")
  #expect(peer.serviceType == [UInt8]("chat".utf8) && peer.info == [[UInt8]("a=b".utf8)])
  #expect(peer.hops == 2 && peer.bearer == .wifi && peer.firstHop == bench.id(1))
}

@Test func `peers with the same service type share its memory`() throws {
  let bench = Bench()
  for (person, type) in [(1, "chat"), (2, "chat"), (3, "drop")] {
    let slot = bench.neighbour(person)
    let body = profileBody(name: [UInt8]("someone".utf8), service: [UInt8](type.utf8))
    bench.receive(bench.topology(person, [20]) + bench.advertise(person, .profile, body), on: slot)
  }
  let types = try [1, 2, 3].map { try #require(bench.node.peer(bench.id($0))).serviceType }
  #expect(types == [[UInt8]("chat".utf8), [UInt8]("chat".utf8), [UInt8]("drop".utf8)])
  let addresses = types.map { type in type.withUnsafeBytes { $0.baseAddress } }
  #expect(addresses[0] == addresses[1] && addresses[1] != addresses[2])
}

@Test func `a peer without a route is lost once, after the grace period`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  _ = bench.peerEvents()
  bench.handle(.linkClosed(slot))
  bench.pass(.milliseconds(2999))
  #expect(bench.peerEvents() == [])
  bench.pass(.milliseconds(2))
  #expect(bench.peerEvents() == ["lost 1"])
  bench.pass(.seconds(300))
  #expect(bench.peerEvents() == [])
}

@Test func `other changes within the grace period do not lose the peer earlier`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let other = bench.neighbour(2)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  _ = bench.peerEvents()
  bench.handle(.linkClosed(slot))
  bench.pass(.seconds(1))
  bench.receive(bench.topology(2, [20, 5]), on: other)
  #expect(bench.peerEvents() == [])
}

@Test func `a change of bearer within the grace period loses no peer`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  _ = bench.peerEvents()
  bench.handle(.linkClosed(slot))
  bench.pass(.seconds(2))
  _ = bench.neighbour(1, .bluetoothLE)
  bench.pass(.seconds(6))
  #expect(bench.peerEvents() == ["changed bob 1"])
}

@Test func `a lost peer that returns is found again`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  bench.handle(.linkClosed(slot))
  bench.pass(.seconds(5))
  _ = bench.neighbour(1)
  #expect(bench.peerEvents() == ["found bob 1", "lost 1", "found bob 1"])
}

@Test func `a shorter route is reported as a change`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20, 3]) + bench.topology(3, [1, 20]) + bench.profile(3, name: "carol"), on: slot)
  #expect(bench.peerEvents() == ["found carol 2"])
  _ = bench.neighbour(3)
  #expect(bench.peerEvents() == ["changed carol 1"])
}

@Test func `a new name is reported as a change`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  bench.receive(bench.profile(1, name: "bobby", sequence: 2), on: slot)
  #expect(bench.peerEvents() == ["found bob 1", "changed bobby 1"])
}

@Test func `a renewed profile with the same content is not reported`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  bench.receive(bench.profile(1, name: "bob", sequence: 2), on: slot)
  #expect(bench.peerEvents() == ["found bob 1"])
}

@Test func `a restarted peer with a new name is reported as changed, not as lost`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob"), on: slot)
  _ = bench.peerEvents()
  // The topology of the restarted peer arrives before its new profile.
  bench.receive(bench.topology(1, [20], epoch: 2), on: slot)
  bench.receive(bench.profile(1, name: "rob", epoch: 2), on: slot)
  #expect(bench.peerEvents() == ["changed bob 1", "changed rob 1"])
}

@Test func `a peer that returns without its profile leaves no deadline in the past`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let others = bench.neighbour(2)
  bench.receive(bench.topology(1, [20]) + bench.profile(1, name: "bob", lifetimeSeconds: 4), on: slot)
  bench.receive(bench.topology(2, [20]), on: others)
  bench.pass(.seconds(2))
  bench.handle(.linkClosed(slot))
  bench.pass(.milliseconds(2500))
  // The profile expires 4 s after its arrival. The link is back at 4.5 s.
  _ = bench.neighbour(1)
  #expect(bench.pass(.seconds(4)) < 50)
}
