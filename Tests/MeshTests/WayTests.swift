import Testing

@testable import Mesh

@Test func aWayNamesEachLinkWithItsBearerTheNearestFirst() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.state(1, [.init(number: 0, bearer: .bluetoothLE), .init(number: 2, bearer: .wifiDirect)])
  bench.state(2, [.init(number: 1, bearer: .wifiDirect), .init(number: 3)])
  bench.state(3, [.init(number: 2)])
  bench.mesh.computeRoutes()
  #expect(
    bench.mesh.way(to: bench.id(3)) == [
      Hop(node: bench.id(1), bearer: .bluetoothLE, cost: 8000), Hop(node: bench.id(2), bearer: .wifiDirect, cost: 120),
      Hop(node: bench.id(3), bearer: .ethernet, cost: 10),
    ])
}

@Test func aNodeWithoutARouteHasNoWay() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 2)])
  bench.mesh.computeRoutes()
  #expect(bench.mesh.way(to: bench.id(1)).isEmpty)
  #expect(bench.mesh.way(to: bench.id(9)).isEmpty)
  #expect(bench.mesh.way(to: bench.id(0)).isEmpty)
}

@Test func theFirstLinkOfAWayIsTheOneInUse() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .wifi)
  bench.mesh.proveLink(1)
  bench.state(1, [.init(number: 0, bearer: .wifi)])
  bench.mesh.computeRoutes()
  #expect(bench.mesh.way(to: bench.id(1)) == [Hop(node: bench.id(1), bearer: .wifi, cost: 100)])
}
