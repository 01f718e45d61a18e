import Primitives
import TestSupport
import Testing

@testable import Node
@testable import Session

@Test func `a service whose advertisement has expired is lost while its node stays`() throws {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let body = try #require(Service.advertisementBody([Service(endpoint: 5, type: [UInt8]("chat".utf8))]))
  bench.receive(bench.topology(1, [20]) + bench.profile(1), on: slot)
  bench.receive(bench.advertise(1, .services, body, lifetimeSeconds: 1), on: slot)
  #expect(bench.node.sessions.services.all.count == 1)
  bench.pass(.milliseconds(1500))
  #expect(bench.node.peers.count == 1)
  #expect(bench.node.sessions.services.all.isEmpty)
}

@Test func `the memory of a node's services is charged to the link that leads to it`() throws {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let body = try #require(Service.advertisementBody([Service(endpoint: 5, type: [UInt8]("chat".utf8))]))
  bench.receive(bench.topology(1, [20]) + bench.profile(1), on: slot)
  bench.receive(bench.advertise(1, .services, body), on: slot)
  #expect(bench.node.sessions.holder(bench.id(1)).ingress == bench.node.linkSlots.ingress(slot))
}
