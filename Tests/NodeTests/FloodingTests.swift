import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

private func advertisements(_ sent: [(header: FrameHeader, payload: [UInt8])], of id: NodeID) -> [(
  ttl: UInt8, kind: UInt8
)] {
  sent.filter { $0.header.knownType == .advertisement && $0.header.source == id }
    .map { ($0.header.ttl, $0.payload[0]) }
}

@Test func `a new advertisement is forwarded to every other neighbour`() {
  let bench = Bench()
  let slots = [bench.neighbour(1), bench.neighbour(2), bench.neighbour(3)]
  let opening = bench.open(4)
  bench.receive(bench.profile(1), on: slots[0])
  #expect(advertisements(bench.sent(on: slots[0]), of: bench.id(1)).isEmpty)
  #expect(advertisements(bench.sent(on: slots[1]), of: bench.id(1)).map(\.ttl) == [16])
  #expect(advertisements(bench.sent(on: slots[2]), of: bench.id(1)).map(\.ttl) == [16])
  #expect(advertisements(bench.sent(on: opening), of: bench.id(1)).isEmpty)
}

@Test func `a new advertisement is forwarded whatever its hop limit`() {
  let bench = Bench()
  let slots = [bench.neighbour(1), bench.neighbour(2)]
  bench.receive(bench.topology(1, [20], ttl: 1), on: slots[0])
  #expect(advertisements(bench.sent(on: slots[1]), of: bench.id(1)).count == 1)
}

@Test func `a new neighbour receives all known advertisements`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.receive(bench.topology(1, [20, 3]) + bench.profile(1) + bench.topology(3, [1]) + bench.profile(3), on: first)
  bench.pass(.seconds(1))
  let second = bench.open(2)
  _ = bench.sent(on: second)
  bench.hello(2, on: second)
  bench.pass(.milliseconds(200))
  let sent = bench.sent(on: second)
  for person in [1, 3, 20] {
    #expect(Set(advertisements(sent, of: bench.id(person)).map(\.kind)) == [1, 2], "\(person)")
  }
}

/// The number of neighbours and the sequence number in the bench's latest topology advertisement.
private func ownTopology(_ bench: Bench, on slot: Int) throws -> (count: Int, sequence: UInt64) {
  let sent = bench.sent(.advertisement, on: slot).filter { $0.header.source == bench.identity.id && $0.payload[0] == 1 }
  let payload = try #require(sent.last).payload
  let view = try AdvertisementView(payload.span.bytes)
  return (try TopologyView(view.body).count, view.sequence)
}

@Test func `the node's own topology follows its links`() throws {
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.pass(.seconds(1))
  _ = bench.sent(on: first)
  let second = bench.neighbour(2)
  bench.pass(.milliseconds(100))
  let withBoth = try ownTopology(bench, on: first)
  bench.handle(.linkClosed(second))
  bench.pass(.milliseconds(100))
  let withOne = try ownTopology(bench, on: first)
  #expect(withBoth.count == 2 && withOne.count == 1 && withOne.sequence > withBoth.sequence)
}

@Test func `a burst of new links costs one signature per tenth of a second`() {
  let bench = Bench()
  _ = bench.neighbour(0)
  bench.pass(.seconds(1))
  let before = bench.signCount
  for person in 1..<16 { _ = bench.neighbour(person) }
  bench.pass(.milliseconds(100))
  #expect(bench.signCount - before <= 2)
}

/// The topology of another node changes routes, but not the links of this node. So this node has nothing new to sign.
@Test func `the topology of another node causes no advertisement of this node`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.pass(.seconds(1))
  let before = bench.signCount
  for sequence in 1...20 {
    bench.receive(bench.topology(1, [20], sequence: UInt64(sequence)), on: slot)
    bench.pass(.milliseconds(150))
  }
  #expect(bench.signCount == before)
}

@Test func `in a mesh at rest each advertisement is renewed every two hundred seconds`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20], lifetimeSeconds: 3600), on: slot)
  bench.pass(.seconds(2))
  _ = bench.sent(on: slot)
  let before = bench.signCount
  for second in 1...600 {
    bench.pass(.seconds(1))
    bench.receive(frame(.ping, from: bench.id(1), [0, 0, 0, 0, 0, 0, 0, UInt8(second & 0xff)]), on: slot)
  }
  #expect(bench.signCount - before == 6)
}

@Test func `a neighbour that sends an advertisement first does not receive it`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  let second = bench.neighbour(2)
  bench.pass(.seconds(1))
  _ = bench.sent(on: second)
  bench.drains = false
  bench.receive(bench.topology(3, [1, 2]), on: first)
  bench.receive(bench.topology(3, [1, 2]), on: second)
  bench.drains = true
  #expect(bench.sent(.advertisement, on: second).allSatisfy { $0.header.source != bench.id(3) })
}

@Test func `a forwarded advertisement contains its age`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.receive(
    bench.topology(3, [1]).with { $0.replaceSubrange(40..<48, with: [0, 0, 0, 0, 0, 0, 0x27, 0x10]) }, on: first)
  bench.pass(.milliseconds(2500))
  let second = bench.open(2)
  bench.hello(2, on: second)
  let told = bench.sent(.advertisement, on: second).first { $0.header.source == bench.id(3) }
  #expect(told?.header.identifier == 12_500)
}

@Test func `an advertisement that is too old is refused`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  // The age field is set to 180 s, the complete lifetime of the advertisement.
  bench.receive(
    bench.topology(3, [1]).with { $0.replaceSubrange(40..<48, with: [0, 0, 0, 0, 0, 2, 0xBF, 0x20]) }, on: first)
  #expect(bench.refusals(.stale) == 1 && bench.node.counters.advertisementsAccepted == 0)
}

/// 254 other nodes have a profile of maximum length each.
@Test func `a new neighbour in a large mesh receives everything, although its link accepts one frame at a time`() throws
{
  let bench = Bench()
  let first = bench.neighbour(1)
  let crowd = (0..<Limits.nodesMax - 2).map { Identity(UInt64(5000 + $0)) }
  let body = profileBody(pairs: (0..<5).map { [UInt8]("\($0)=".utf8) + [UInt8](repeating: 0x78, count: 250) })
  for identity in crowd {
    bench.receivePaced(
      frame(.advertisement, from: identity.id, advertisement(of: identity, .profile, body: body)), on: first)
  }
  bench.carriesOutTransmit = false
  let second = bench.open(2)
  bench.hello(2, on: second)
  var heard: Set<NodeID> = []
  // The node sends a neighbour at most 150 advertisements a second.
  let end = bench.now + .seconds(2)
  var buffer = [UInt8](repeating: 0, count: Limits.frameBytesMax)
  var longestQueue = 0
  while true {
    let count = buffer.withUnsafeMutableBytes { bench.node.pop(second, into: $0) }
    if count == 0 {
      if heard.count == crowd.count || bench.now > end { break }
      bench.pass(.milliseconds(10))
    }
    bench.drain()
    longestQueue = max(longestQueue, bench.node.link(second).queuedByteCount(.control))
    for frame in frames(in: Array(buffer[..<count]))
    where frame.header.knownType == .advertisement && frame.header.source != bench.identity.id {
      #expect(heard.insert(frame.header.source).inserted)
    }
  }
  #expect(heard.isSuperset(of: crowd.map(\.id)) && bench.node.queueDrops.sum == 0 && longestQueue < 4000)
}

@Test func `a neighbour that stalls receives only the newest advertisements afterwards`() throws {
  let bench = Bench()
  let first = bench.neighbour(1)
  let second = bench.neighbour(2)
  bench.carriesOutTransmit = false
  for sequence in 1...100 as ClosedRange<UInt64> {
    for person in 3...9 {
      bench.receive(bench.topology(person, [1], sequence: sequence, lifetimeSeconds: 3600), on: first)
    }
    bench.pass(.seconds(1))
    // The pong of node 2 keeps its link alive.
    bench.receive(frame(.pong, from: bench.id(2), [0, 0, 0, 0, 0, 0, 0, 1]), on: second)
  }
  let told = bench.sent(.advertisement, on: second)
  for person in 3...9 {
    let sequences = try told.filter { $0.header.source == bench.id(person) }.map { frame in
      try AdvertisementView(frame.payload.span.bytes).sequence
    }
    #expect(sequences.last == 100 && sequences.count < 5)
  }
  #expect(bench.node.queueDrops.sum == 0)
}

@Test func `a node that lost its epoch receives it from its neighbours`() {
  // Node 2 returns with epoch 1, although the bench knows epoch 9. So the bench sends node 2 its own advertisement of
  // epoch 9.
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.receive(bench.profile(2, epoch: 9), on: first)
  let second = bench.open(2)
  bench.hello(2, on: second)
  #expect(advertisements(bench.sent(on: second), of: bench.id(2)).map(\.kind) == [2])
}

/// Node 2 is already reachable through node 1. So the new link to node 2 is a change that can wait.
@Test func `a change that is not urgent is advertised five seconds after the last advertisement`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.receive(bench.topology(1, [20, 2]) + bench.topology(2, [1]), on: first)
  bench.pass(.seconds(1))
  let before = bench.signCount
  _ = bench.neighbour(2)
  // The pings of node 1 keep its link alive.
  for _ in 0..<7 {
    bench.pass(.milliseconds(500))
    bench.receive(frame(.ping, from: bench.id(1), [0, 0, 0, 0, 0, 0, 0, 1]), on: first)
  }
  #expect(bench.signCount == before)
  bench.pass(.seconds(1))
  #expect(bench.signCount == before + 1)
}

@Test func `losses of links one after the other are advertised at growing intervals`() {
  let bench = Bench()
  let slots = (0..<16).map { bench.neighbour($0) }
  bench.pass(.milliseconds(6000))
  for slot in slots { bench.receive(frame(.ping, from: bench.id(slot), [0, 0, 0, 0, 0, 0, 0, 1]), on: slot) }
  let before = bench.signCount
  for slot in slots {
    bench.handle(.linkClosed(slot))
    bench.pass(.milliseconds(100))
  }
  // The first loss is advertised at once, and the later ones together 0.1, 0.3, 0.7 and 1.5 s after the first.
  #expect(bench.signCount - before == 5)
}
