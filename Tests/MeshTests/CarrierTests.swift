import Frame
import Primitives
import TestSupport
import Testing

@testable import Mesh

@Test func `the only link to a neighbour is used at once`() {
  let bench = Bench()
  bench.link(3, to: 1, .bluetoothLE)
  #expect(bench.mesh.link(to: bench.id(1)) == 3 && bench.mesh.link(to: bench.id(2)) == nil)
}

@Test func `a better link is used only once it is proven`() {
  let bench = Bench()
  bench.link(0, to: 1, .bluetoothLE)
  bench.link(1, to: 1, .ethernet)
  #expect(bench.mesh.link(to: bench.id(1)) == 0)
  bench.mesh.proveLink(1)
  #expect(bench.mesh.link(to: bench.id(1)) == 1)
}

@Test func `a link that is only slightly cheaper does not replace the link in use`() {
  let bench = Bench()
  bench.link(0, to: 1, .wifi)
  bench.link(1, to: 1, .wifiDirect)
  bench.mesh.proveLink(0)
  bench.mesh.proveLink(1)
  bench.mesh.setCost(0, 100)
  bench.mesh.setCost(1, 89)
  #expect(bench.mesh.link(to: bench.id(1)) == 0)
  bench.mesh.setCost(1, 88)
  #expect(bench.mesh.link(to: bench.id(1)) == 1)
  // For a change back to link 0, the cost of link 0 plus an eighth must not exceed the cost of link 1.
  bench.mesh.setCost(0, 79)
  #expect(bench.mesh.link(to: bench.id(1)) == 1)
  bench.mesh.setCost(0, 78)
  #expect(bench.mesh.link(to: bench.id(1)) == 0)
}

@Test func `a removed link is replaced at once by the best remaining one`() {
  let bench = Bench()
  bench.link(0, to: 1, .ethernet)
  bench.link(1, to: 1, .bluetoothLE)
  bench.link(2, to: 1, .wifi)
  bench.mesh.proveLink(1)
  bench.mesh.removeLink(0)
  // A slow link that has answered a ping takes precedence over a fast link that has not.
  #expect(bench.mesh.link(to: bench.id(1)) == 1)
  bench.mesh.removeLink(1)
  #expect(bench.mesh.link(to: bench.id(1)) == 2)
  bench.mesh.removeLink(2)
  #expect(bench.mesh.link(to: bench.id(1)) == nil)
}

@Test func `the topology changes when another link to a neighbour is used`() {
  let bench = Bench()
  func change() -> Mesh.TopologyChange { bench.mesh.takeTopologyChange() }
  bench.link(0, to: 1, .wifi)
  #expect(change() == .newWay && change() == .none)
  bench.link(1, to: 1, .bluetoothLE)
  bench.mesh.setCost(1, 7000)
  bench.mesh.setCost(0, 100)
  #expect(change() == .none)
  bench.mesh.setCost(0, 200)
  #expect(change() == .routine)
  bench.mesh.removeLink(1)
  #expect(change() == .none)
  bench.mesh.removeLink(0)
  #expect(change() == .loss)
}

@Test func `the advertisement of a link to a node with a route may be delayed`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2)])
  bench.state(2, [.init(number: 1)])
  #expect(bench.route(to: 2) != nil)
  _ = bench.mesh.takeTopologyChange()
  bench.link(1, to: 2)
  #expect(bench.mesh.takeTopologyChange() == .routine)
}

@Test func `the frame length of several equal paths is that of the narrowest`() {
  // Node 1 reaches node 4 through node 2 or node 3 at the same cost. This node cannot know which of the two node 1
  // uses.
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2), .init(number: 3)])
  bench.state(2, [.init(number: 1), .init(number: 4)])
  bench.state(3, [.init(number: 1), .init(number: 4, payloadBytesMax: 3000)])
  bench.state(4, [.init(number: 2), .init(number: 3)])
  #expect(bench.route(to: 4)?.payloadBytesMax == 3000)
}
