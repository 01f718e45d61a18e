import Primitives
import Testing

@testable import Mesh

@Test func `a way names the bearer and the cost of each link`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.state(1, [.init(number: 0, bearer: .bluetoothLE), .init(number: 2, bearer: .wifiDirect)])
  bench.state(2, [.init(number: 1, bearer: .wifiDirect), .init(number: 3)])
  bench.state(3, [.init(number: 2)])
  bench.mesh.computeRoutes()
  let way = bench.way(to: 3)
  #expect(way.map(\.node) == [1, 2, 3].map { bench.id($0) })
  #expect(way.map(\.bearer) == [.bluetoothLE, .wifiDirect, .ethernet] && way.map(\.cost) == [8000, 120, 10])
}

@Test func `there is no way to a node without a route`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 2)])
  bench.mesh.computeRoutes()
  for number in [0, 1, 9] { #expect(bench.way(to: number).isEmpty) }
}

@Test func `the way to a neighbour is the link in use`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  bench.mesh.proveLink(1)
  bench.state(1, [.init(number: 0, bearer: .wifi)])
  bench.mesh.computeRoutes()
  #expect(bench.way(to: 1).map(\.bearer) == [.wifi])
}
