import Frame
import Primitives
import Testing

@testable import Mesh

@Test func `the last hop of a route names its bearer and its nearer end`() throws {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.state(1, [.init(number: 0, bearer: .bluetoothLE), .init(number: 2, bearer: .wifiDirect)])
  bench.state(2, [.init(number: 1, bearer: .wifiDirect), .init(number: 3)])
  bench.state(3, [.init(number: 2)])
  bench.mesh.computeRoutes()
  for (number, nearer, bearer, cost) in [
    (3, 2, BearerKind.ethernet, UInt16(10)), (2, 1, .wifiDirect, 120), (1, 0, .bluetoothLE, 8000),
  ] {
    let (hop, from) = try #require(bench.mesh.lastHop(to: bench.id(number), hops: UInt8(number)))
    #expect(hop.node == bench.id(number) && hop.bearer == bearer && hop.cost == cost && from == bench.id(nearer))
  }
}

@Test func `a node without a route has no last hop`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 2)])
  bench.mesh.computeRoutes()
  for number in [0, 1, 9] { #expect(bench.mesh.lastHop(to: bench.id(number), hops: 1) == nil) }
}

@Test func `the last hop to a neighbour is the link in use`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  bench.mesh.proveLink(1)
  bench.state(1, [.init(number: 0, bearer: .wifi)])
  bench.mesh.computeRoutes()
  #expect(bench.mesh.lastHop(to: bench.id(1), hops: 1)?.hop.bearer == .wifi)
}
