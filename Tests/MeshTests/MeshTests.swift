import Frame
import Primitives
import TestSupport
import Testing

@testable import Mesh

// MARK: Routes

@Test func `a neighbour that lists this node has a route`() {
  let bench = Bench()
  bench.link(3, to: 1, .wifi)
  bench.state(1, [.init(number: 0, bearer: .wifi)])
  #expect(
    bench.route(to: 1) == Route(link: 3, firstHop: bench.id(1), hops: 1, cost: 100, payloadBytesMax: 16_640))
}

@Test func `a link that only this node advertises is no route`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 2)])
  #expect(bench.route(to: 1) == nil)
}

@Test func `a distant link that only its near end advertises is no route`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2)])
  bench.state(2, [])
  #expect(bench.route(to: 2) == nil)
  bench.state(2, [.init(number: 1)], sequence: 2)
  #expect(bench.route(to: 2)?.hops == 2)
}

@Test func `a distant link that only its far end advertises is no route`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0)])
  bench.state(2, [.init(number: 1)])
  #expect(bench.route(to: 2) == nil)
}

@Test func `a node that does not relay is reachable but forwards nothing`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, relays: false, [.init(number: 0), .init(number: 2)])
  bench.state(2, [.init(number: 1)])
  #expect(bench.route(to: 1)?.hops == 1)
  #expect(bench.route(to: 2) == nil)
}

@Test func `a cheaper route is used even if it has more hops`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 2, .ethernet)
  bench.state(1, [.init(number: 0, bearer: .bluetoothLE), .init(number: 2, bearer: .wifi)])
  bench.state(2, [.init(number: 0), .init(number: 1, bearer: .wifi)])
  #expect(
    bench.route(to: 1) == Route(link: 1, firstHop: bench.id(2), hops: 2, cost: 110, payloadBytesMax: 16_640))
}

@Test func `the shortest one of equally cheap routes is used`() {
  let bench = Bench()
  // The two routes to node 10 cost 100: one Wi-Fi link, or ten Ethernet links.
  bench.link(0, to: 1)
  for number in 1..<10 { bench.state(number, [.init(number: number - 1), .init(number: number + 1)]) }
  bench.link(1, to: 10, .wifi)
  bench.state(10, [.init(number: 9), .init(number: 0, bearer: .wifi)])
  #expect(bench.route(to: 10)?.hops == 1 && bench.route(to: 10)?.cost == 100)
  #expect(bench.route(to: 9)?.hops == 9)
}

@Test func `the route over the neighbour with the lowest id is used among equal ones`() {
  for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
    let bench = Bench()
    for (slot, number) in order.enumerated() {
      bench.link(slot, to: number)
      bench.state(number, [.init(number: 0), .init(number: 4)])
    }
    bench.state(4, [.init(number: 1), .init(number: 2), .init(number: 3)])
    #expect(bench.route(to: 4)?.firstHop == [bench.id(1), bench.id(2), bench.id(3)].min())
  }
}

@Test func `the frame length of a route is that of its narrowest link`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2, payloadBytesMax: 4096)])
  bench.state(2, [.init(number: 1, payloadBytesMax: 5000), .init(number: 3)])
  bench.state(3, [.init(number: 2, payloadBytesMax: 3000)])
  #expect(bench.route(to: 1)?.payloadBytesMax == 16_640)
  #expect(bench.route(to: 2)?.payloadBytesMax == 4096)
  #expect(bench.route(to: 3)?.payloadBytesMax == 3000)
}

@Test func `a node is reachable over at most sixteen hops`() {
  let bench = Bench()
  bench.link(0, to: 1)
  for number in 1...17 { bench.state(number, [.init(number: number - 1), .init(number: number + 1)]) }
  #expect(bench.route(to: 16)?.hops == 16)
  #expect(bench.route(to: 17) == nil)
}

@Test func `removing a link removes its routes`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2)])
  bench.state(2, [.init(number: 1)])
  #expect(bench.route(to: 2) != nil)
  let wasThere = bench.mesh.removeLink(0)
  #expect(wasThere && bench.mesh.needsRoutes)
  #expect(bench.route(to: 1) == nil && bench.route(to: 2) == nil)
}

@Test func `removing an absent link changes nothing`() {
  let bench = Bench()
  bench.mesh.computeRoutes()
  let wasThere = bench.mesh.removeLink(5)
  #expect(!wasThere && !bench.mesh.needsRoutes)
}

// MARK: This node's own links

@Test func `the node's own topology lists each neighbour once, over the link in use`() throws {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE, payloadBytesMax: 4096)
  bench.link(1, to: 1, .wifi)
  bench.mesh.proveLink(1)
  bench.link(7, to: 2, .bluetoothLE, payloadBytesMax: 4096)
  let body = encoded { output in
    bench.mesh.writeTopology(flags: TopologyFlags(relays: true, encryption: .required), to: &output)
  }
  #expect(
    body
      == topologyBody([
        Neighbour(node: bench.id(1), cost: 100, payloadBytesMax: 16_640, bearer: .wifi),
        Neighbour(node: bench.id(2), cost: 8000, payloadBytesMax: 4096, bearer: .bluetoothLE),
      ]))
}

@Test func `the node's own topology states whether this node relays`() {
  let bench = Bench()
  #expect(
    encoded { output in bench.mesh.writeTopology(flags: TopologyFlags(relays: true, encryption: .required), to: &output)
    } == [1, 0, 0, 0])
  #expect(
    encoded { output in
      bench.mesh.writeTopology(flags: TopologyFlags(relays: false, encryption: .required), to: &output)
    } == [0, 0, 0, 0])
}

// MARK: The database

@Test func `an advertisement is newer by epoch, then by sequence number`() {
  let bench = Bench()
  bench.state(1, [], epoch: 5, sequence: 7)
  #expect(bench.assess(1, epoch: 5, sequence: 7) == .duplicate)
  #expect(bench.assess(1, epoch: 5, sequence: 6) == .stale)
  #expect(bench.assess(1, epoch: 4, sequence: 99) == .stale)
  #expect(bench.assess(1, epoch: 5, sequence: 8) == .new)
  #expect(bench.assess(1, epoch: 6, sequence: 1) == .new)
}

@Test func `topology and profile have separate sequences`() {
  let bench = Bench()
  bench.state(1, [], epoch: 5, sequence: 7)
  #expect(bench.assess(1, .profile, epoch: 1, sequence: 1) == .new)
}

@Test func `an unknown advertisement in this node's own name is recognised`() {
  #expect(Bench().assess(0, epoch: 1, sequence: 1) == .ownFromElsewhere)
}

@Test func `a database full of reachable nodes accepts updates but no further node`() {
  let bench = Bench()
  let others = Limits.nodesMax - 1
  bench.link(0, to: 1)
  // Neighbour 1 lists 63 other nodes, each with three or four nodes behind it. So the database is full.
  bench.state(1, [.init(number: 0)] + (2...64).map { .init(number: $0) })
  for number in 2...64 {
    let behind = stride(from: number + 63, through: others, by: 63)
    bench.state(number, [.init(number: 1)] + behind.map { .init(number: $0) })
    for leaf in behind { bench.state(leaf, [.init(number: number)]) }
  }
  #expect(bench.route(to: others)?.hops == 3)
  #expect(bench.mesh.nodeCount == others)
  #expect(bench.assess(others + 1, epoch: 1, sequence: 1) == .full)
  #expect(bench.assess(1, epoch: 1, sequence: 2) == .new)
}

@Test func `an unreachable node is evicted from a full database`() throws {
  let bench = Bench()
  for number in 1..<Limits.nodesMax { bench.state(number, [], lifetime: number == 7 ? 100 : 180) }
  #expect(bench.assess(Limits.nodesMax, epoch: 1, sequence: 1) == .full)
  bench.link(0, to: Limits.nodesMax)
  let newcomer = bench.id(Limits.nodesMax)
  bench.mesh.take(try #require(bench.mesh.replacement(for: newcomer) { _ in false }), for: newcomer, from: 0)
  bench.state(Limits.nodesMax, [])
  #expect(bench.mesh.nodeCount == Limits.nodesMax - 1)
  #expect(bench.mesh.index(of: bench.id(7)) == nil && bench.mesh.index(of: bench.id(Limits.nodesMax)) != nil)
}

@Test func `the stored advertisement is the latest one, byte for byte`() {
  let bench = Bench()
  bench.state(1, [.init(number: 0)])
  bench.state(1, [.init(number: 0), .init(number: 2)], sequence: 2)
  bench.introduce(1)
  let links = [0, 2].map {
    Neighbour(node: bench.id($0), cost: 10, payloadBytesMax: 16_640, bearer: .ethernet)
  }
  let one = Bench.identities[1]
  #expect(bench.bytes(of: 1, .topology) == advertisement(of: one, .topology, sequence: 2, body: topologyBody(links)))
  #expect(bench.bytes(of: 1, .profile) == advertisement(of: one, .profile, body: profileBody()))
  #expect(bench.bytes(of: 2, .topology) == nil)
}

@Test func `an advertisement expires after its lifetime`() {
  let bench = Bench()
  bench.state(1, [], lifetime: 60)
  #expect(bench.mesh.expiryDeadline == start + .seconds(60))
  bench.mesh.expire(now: start + .milliseconds(59_999))
  #expect(bench.mesh.nodeCount == 1)
  bench.mesh.expire(now: start + .seconds(60))
  #expect(bench.mesh.nodeCount == 0 && bench.mesh.expiryDeadline == .never)
}

@Test func `an advertisement is not sent in its last millisecond, because its age would be its lifetime`() {
  let bench = Bench()
  bench.state(1, [], lifetime: 60)
  let end = start + .seconds(60)
  #expect(bench.mesh.maySend(1, .topology, now: start + .milliseconds(59_999)))
  let last = start + TimeSpan(nanoseconds: 59_999_000_001)
  #expect(!bench.mesh.maySend(1, .topology, now: last) && bench.mesh.age(of: 1, .topology, now: last) == 60_000)
  #expect(!bench.mesh.maySend(1, .topology, now: end + .seconds(1)))
}

@Test func `an expired topology is not used for routes`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0)], lifetime: 60)
  bench.introduce(1, lifetime: 600)
  #expect(bench.route(to: 1) != nil)
  bench.mesh.expire(now: start + .seconds(60))
  #expect(bench.mesh.needsRoutes)
  #expect(bench.route(to: 1) == nil)
  #expect(bench.bytes(of: 1, .topology) == nil && bench.bytes(of: 1, .profile) != nil)
}

@Test func `the deadline is that of the first advertisement to expire`() {
  let bench = Bench()
  bench.state(1, [], lifetime: 90)
  bench.introduce(1, lifetime: 70)
  bench.state(2, [], lifetime: 80)
  #expect(bench.mesh.expiryDeadline == start + .seconds(70))
}

@Test func `a node that is removed does not affect the others`() {
  let bench = Bench()
  bench.link(0, to: 2)
  bench.state(1, [], lifetime: 10)
  bench.state(2, [.init(number: 0), .init(number: 3)])
  bench.introduce(2)
  bench.state(3, [.init(number: 2)])
  bench.introduce(3)
  let before = (2...3).flatMap { number in AdvertisementKind.both.map { bench.bytes(of: number, $0) } }
  bench.mesh.expire(now: start + .seconds(10))
  #expect(bench.mesh.nodeCount == 2)
  #expect((2...3).flatMap { number in AdvertisementKind.both.map { bench.bytes(of: number, $0) } } == before)
  #expect(bench.route(to: 2)?.hops == 1 && bench.route(to: 3)?.hops == 2)
  #expect(bench.assess(3, epoch: 1, sequence: 1) == .duplicate)
  #expect(bench.assess(1, epoch: 1, sequence: 1) == .new)
}

@Test func `the epoch of a node is the higher one of its advertisements`() {
  let bench = Bench()
  #expect(bench.mesh.epoch(of: bench.id(1)) == nil)
  bench.introduce(1, epoch: 4)
  #expect(bench.mesh.epoch(of: bench.id(1)) == 4)
  bench.state(1, [], epoch: 6)
  #expect(bench.mesh.epoch(of: bench.id(1)) == 6)
  bench.introduce(1, epoch: 9)
  #expect(bench.mesh.epoch(of: bench.id(1)) == 9)
}

extension AdvertisementKind {
  fileprivate static let both: [AdvertisementKind] = [.topology, .profile]
}

@Test func `the neighbour that brought most of the unreachable nodes loses them first`() throws {
  let bench = Bench()
  bench.state(1, [], lifetime: 60, from: 3)
  for number in 2..<Limits.nodesMax { bench.state(number, [], lifetime: 3600, from: 4) }
  for number in Limits.nodesMax..<Limits.nodesMax + 40 {
    bench.link(number - Limits.nodesMax, to: number)
    let replacement = try #require(bench.mesh.replacement(for: bench.id(number)) { _ in false })
    bench.mesh.take(replacement, for: bench.id(number), from: 4)
  }
  #expect(bench.mesh.index(of: bench.id(1)) != nil && bench.mesh.nodeCount == Limits.nodesMax - 1)
}
