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

@Test func `a frame on a path of the fewest links has the payload that every path accepts`() {
  let bench = ring()
  #expect(bench.mesh.route(to: bench.id(17))?.payloadBytesMax == Limits.framePayloadBytesFloor)
}

@Test func `a frame with too few hops for the cheapest path takes the one with the fewest links`() {
  let bench = ring()
  #expect(bench.mesh.link(to: bench.id(15), within: 15) == 0)
  #expect(bench.mesh.link(to: bench.id(15), within: 14) == 1, "three links over the dear one")
  #expect(bench.mesh.link(to: bench.id(15), within: 3) == 1)
  #expect(bench.mesh.link(to: bench.id(15), within: 2) == nil)
}

@Test func `the way over the fewest links has as many links as its route`() {
  let bench = ring()
  #expect(bench.mesh.way(to: bench.id(17)).map(\.bearer) == [.bluetoothLE])
  #expect(bench.mesh.way(to: bench.id(16)).count == 16)
}

@Test func `a node that takes the record of another has no path before the next computation`() {
  let bench = ring()
  bench.mesh.expire(now: start + .seconds(200))
  let freed = bench.mesh.index(of: bench.id(17))
  bench.state(30, [.init(number: 1)], at: start + .seconds(200))
  #expect(freed == nil && bench.mesh.link(to: bench.id(30), within: 16) == nil)
}
