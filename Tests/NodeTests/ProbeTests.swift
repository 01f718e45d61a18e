import Channel
import Node
import Primitives
import TestSupport
import Testing

@Test func `a probe of a peer is acknowledged but not reported`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try partner.say("", kind: 28)
  try partner.say("hello")
  bench.receive(partner.frames(), on: partner.slot)
  // The application reads the message behind the probe, and not the probe.
  #expect(read(bench) == ["hello"])
  bench.pass(.milliseconds(100))
  _ = try partner.takeSent()
  #expect(partner.channel.nextCompletion()?.outcome == .delivered)
}

@Test func `a probe to a peer completes when its node has received it`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  let probe = try bench.node.probe(bench.id(1), now: bench.now)
  bench.drain()
  _ = try partner.takeSent()
  #expect(partner.channel.nextMessage()?.kind == 28)
  #expect(bench.nextCompletion() == nil)
  bench.now = bench.now + .milliseconds(50)
  partner.channel.handleTimeout(now: bench.now)
  bench.receive(partner.frames(), on: partner.slot)
  let end = bench.nextCompletion()
  #expect(end?.completion.message == probe && end?.completion.outcome == .delivered)
}

@Test func `a probe to a node without a route is refused`() {
  let bench = Bench()
  #expect(throws: AssociationError.unknownPeer) { try bench.node.probe(bench.id(5), now: bench.now) }
}

@Test func `a path lists each link, the nearest first`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20, 2]) + bench.topology(2, [1, 3]) + bench.topology(3, [2]), on: slot)
  #expect(bench.node.way(to: bench.id(3)).map(\.node) == [1, 2, 3].map { bench.id($0) })
  #expect(bench.node.way(to: bench.id(9)).isEmpty && bench.node.way(to: bench.identity.id).isEmpty)
}
