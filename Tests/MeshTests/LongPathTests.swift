import Frame
import Primitives
import Testing

@testable import Mesh

// Nodes 0 to 17 form a ring: cheap links from each node to the next, and one dear link between nodes 17 and 0. The
// cheapest path from 0 to 17 has 17 links, one more than a frame can travel.

private func ring() -> Bench {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.link(1, to: 17, .bluetoothLE, payloadBytesMax: 9000)
  for number in 1..<17 { bench.state(number, [.init(number: number - 1), .init(number: number + 1)]) }
  bench.state(17, [.init(number: 16), .init(number: 0, bearer: .bluetoothLE, payloadBytesMax: 9000)])
  bench.mesh.computeRoutes()
  return bench
}

@Test func `a node whose cheapest path is too long is reached over the fewest links`() throws {
  let bench = ring()
  let route = try #require(bench.mesh.route(to: bench.id(17)))
  #expect(route.link == 1 && route.hops == 1 && route.cost == 8000)
  #expect(bench.mesh.route(to: bench.id(16))?.link == 0, "the cheapest path of 16 links is taken")
}

@Test func `the payload limit on a path of the fewest links is one that every path accepts`() {
  let bench = ring()
  #expect(bench.mesh.route(to: bench.id(17))?.payloadBytesMax == Limits.framePayloadBytesFloor)
}

@Test func `a frame with too few hops left for the cheapest path uses the one with the fewest links`() {
  let bench = ring()
  #expect(bench.mesh.link(to: bench.id(15), within: 15) == 0)
  #expect(bench.mesh.link(to: bench.id(15), within: 14) == 1, "three links over the dear one")
  #expect(bench.mesh.link(to: bench.id(15), within: 3) == 1)
  #expect(bench.mesh.link(to: bench.id(15), within: 2) == nil)
}

@Test func `a node has a last hop on its route and one on the path with the fewest links`() {
  let bench = ring()
  #expect(bench.mesh.lastHop(to: bench.id(17), hops: 1)?.hop.bearer == .bluetoothLE)
  #expect(bench.mesh.lastHop(to: bench.id(16), hops: 16)?.from == bench.id(15))
  #expect(bench.mesh.lastHop(to: bench.id(16), hops: 2)?.from == bench.id(17))
}

@Test func `a node that reuses the record of another has no path before the next computation`() {
  let bench = ring()
  bench.mesh.expire(now: start + .seconds(200))
  let freed = bench.mesh.index(of: bench.id(17))
  bench.state(30, [.init(number: 1)], at: start + .seconds(200))
  #expect(freed == nil && bench.mesh.link(to: bench.id(30), within: 16) == nil)
}

@Test func `a cheapest path in a network of sixteen relays may exceed the hop limit`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.link(1, to: 17, .bluetoothLE)
  for number in 1..<17 { bench.state(number, [.init(number: number - 1), .init(number: number + 1)]) }
  bench.state(17, relays: false, [.init(number: 16), .init(number: 0, bearer: .bluetoothLE)])
  #expect(bench.route(to: 17)?.link == 1)
}

@Test func `the path with the fewest links is dropped when too few relays for a long path remain`() {
  let bench = ring()
  #expect(bench.mesh.link(to: bench.id(15), within: 3) == 1)
  for number in 1..<5 {
    bench.state(number, relays: false, [.init(number: number - 1), .init(number: number + 1)], sequence: 2)
  }
  bench.mesh.computeRoutes()
  #expect(bench.mesh.link(to: bench.id(15), within: 2) == nil && bench.mesh.route(to: bench.id(15))?.link == 1)
}

@Test func `a newcomer behind a relay with a long cheapest path gets a slot in a full table`() {
  let bench = ring()
  // The cheapest path to relay 16 has 16 links, the one with the fewest links two.
  bench.state(16, [.init(number: 15), .init(number: 17), .init(number: 30)], sequence: 2)
  bench.state(40, [])
  bench.mesh.computeRoutes()
  #expect(bench.mesh.replacement(for: bench.id(30)) { _ in false } != nil)
}
