import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

// The neighbours in these tests have proved their keys and then violate the protocol.

private func forged(_ bench: Bench, _ person: Int, sequence: UInt64 = 1) -> [UInt8] {
  bench.topology(person, [20], sequence: sequence).with { $0[$0.count - 1] ^= 1 }
}

/// A frame with the profile of a node that the bench does not know.
private func stranger(_ number: Int) -> [UInt8] {
  let identity = Identity(UInt64(7000 + number))
  return frame(.advertisement, from: identity.id, advertisement(of: identity, .profile, body: profileBody()))
}

private func strangerID(_ number: Int) -> NodeID { Identity(UInt64(7000 + number)).id }

/// The nodes that the bench's request on `slot` names. Nil if the bench did not send exactly one request.
private func asked(_ bench: Bench, on slot: Int) -> [NodeID]? {
  let sent = bench.sent(.request, on: slot)
  guard sent.count == 1, let payload = sent.first?.payload, let request = try? AdvertisementRequest(payload.span.bytes)
  else { return nil }
  return (0..<request.count).map { request.node($0) }
}

private func request(_ bench: Bench, _ person: Int, _ nodes: [NodeID]) -> [UInt8] {
  let payload = encoded { output in
    AdvertisementRequest.writeHead(count: nodes.count, to: &output)
    for node in nodes { output.append(node) }
  }
  return frame(.request, from: bench.id(person), payload)
}

// MARK: Wrong signatures

@Test func `the third wrong signature closes the link, and the key is refused for a minute`() throws {
  let bench = Bench()
  let slot = bench.neighbour(1)
  for person in 2...3 { bench.receive(forged(bench, person), on: slot) }
  #expect(bench.node.link(slot).state == .up)
  bench.receive(forged(bench, 4) + forged(bench, 5), on: slot)
  #expect(bench.node.link(slot).state == .closed(.protocolError) && bench.refusals(.wrongSignature) == 3)
  let goodbye = try Goodbye(bytes: #require(bench.sent(.goodbye, on: slot).first).payload)
  #expect(goodbye == Goodbye(reason: .protocolError, retryAfterSeconds: 60))
  bench.handle(.linkClosed(slot))
  // The neighbour returns before the minute is over.
  bench.pass(.milliseconds(20_500))
  let again = bench.open(1)
  let second = try Goodbye(bytes: #require(bench.sent(.goodbye, on: again).first).payload)
  #expect(second == Goodbye(reason: .protocolError, retryAfterSeconds: 40))
  bench.handle(.linkClosed(again))
  bench.pass(.milliseconds(39_500))
  #expect(bench.node.link(bench.neighbour(1)).state == .up)
}

@Test func `each further refusal of a key lasts twice as long, up to an hour`() throws {
  let bench = Bench()
  var seconds: [UInt16] = []
  for _ in 0..<8 {
    let slot = bench.neighbour(1)
    for person in 2...4 { bench.receive(forged(bench, person), on: slot) }
    let goodbye = try Goodbye(bytes: #require(bench.sent(.goodbye, on: slot).first).payload)
    seconds.append(goodbye.retryAfterSeconds)
    bench.handle(.linkClosed(slot))
    bench.pass(.seconds(UInt64(goodbye.retryAfterSeconds)))
  }
  #expect(seconds == [60, 120, 240, 480, 960, 1920, 3600, 3600])
}

@Test func `two wrong signatures in ten minutes are tolerated over any number of links`() {
  let bench = Bench()
  for round in 0..<6 {
    let slot = bench.neighbour(1)
    bench.receive(forged(bench, 2) + (round % 2 == 0 ? forged(bench, 3) : []), on: slot)
    #expect(bench.node.link(slot).state == .up, "\(round)")
    bench.handle(.linkClosed(slot))
    bench.pass(.seconds(601))
  }
  // Wrong signatures are counted for each neighbour, over any number of links.
  for round in 0..<3 {
    let slot = bench.neighbour(1)
    bench.receive(forged(bench, 2), on: slot)
    #expect((bench.node.link(slot).state == .up) == (round < 2))
    bench.handle(.linkClosed(slot))
  }
}

@Test func `a refused key is not dialled`() {
  let bench = Bench()
  bench.handle(.candidateFound(FoundCandidate(5, .ethernet, hint: bench.id(30).high)))
  let slot = bench.neighbour(30, dialled: 5)
  _ = bench.takeCommands()
  for person in 2...4 { bench.receive(forged(bench, person), on: slot) }
  bench.handle(.linkClosed(slot))
  bench.pass(.seconds(59))
  #expect(!bench.takeCommands().contains(.dial(5)))
  bench.pass(.seconds(2))
  #expect(bench.takeCommands().contains(.dial(5)))
}

/// More neighbours send a wrong signature than the table has entries. The entry that ends first is replaced, and the
/// entry of the refused key ends later.
@Test func `a refused key is not evicted by others that send a wrong signature`() {
  let bench = Bench(0)
  let slot = bench.neighbour(1)
  for person in 2...4 { bench.receive(forged(bench, person), on: slot) }
  bench.handle(.linkClosed(slot))
  for number in 0..<200 {
    let peer = Identity(UInt64(9000 + number)).id
    guard let slot = bench.node.openLink(peer: peer, bearer: .ethernet, dialled: nil, now: bench.now) else { continue }
    bench.receive(frame(.hello, from: peer, helloPayload(peer)) + forged(bench, 2), on: slot)
    bench.handle(.linkClosed(slot))
    bench.pass(.milliseconds(10))
  }
  #expect(bench.node.link(bench.open(1)).state == .closed(.protocolError))
}

// MARK: Too many to verify

@Test func `a flood of advertisements causes at most the permitted rate of verifications`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let before = bench.verifyCount
  for number in 0..<2000 {
    bench.receive(stranger(number % 250 + number / 250 * 1000), on: slot)
    bench.pass(.milliseconds(1))
  }
  // Once the node table is full, the search for an entry to evict is charged to the link, instead of a verification.
  let charged = bench.verifyCount - before + Int(bench.refusals(.overLength))
  #expect((300...335).contains(charged))
  #expect(bench.refusals(.tooMany) == UInt64(2000 - charged))
}

@Test func `advertisements of an honest neighbour are accepted beside a flooding one`() {
  let bench = Bench()
  let flooding = bench.neighbour(1)
  let honest = bench.neighbour(2)
  var number = 0
  func flood(_ count: Int) {
    for _ in 0..<count {
      bench.receive(stranger(1000 + number % 100), on: flooding)
      number += 1
    }
  }
  flood(1000)
  let before = bench.node.counters.advertisementsAccepted
  for number in 0..<8 { bench.receive(stranger(number), on: honest) }
  #expect(bench.node.counters.advertisementsAccepted == before + 8)
}

@Test func `an advertisement that was refused unverified is requested again`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  for number in 0..<20 { bench.receive(stranger(number), on: slot) }
  #expect(bench.node.counters.advertisementsAccepted == 16 && bench.refusals(.tooMany) == 4)
  #expect(asked(bench, on: slot) == nil)
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: slot) == (16..<20).map(strangerID))
  for number in 16..<20 { bench.receive(stranger(number), on: slot) }
  #expect(bench.node.counters.advertisementsAccepted == 20)
  bench.pass(.seconds(5))
  #expect(bench.sent(.request, on: slot).isEmpty)
}

@Test func `a flooding neighbour receives at most one request per second`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  var requests = 0
  for round in 1...100 {
    for number in 0..<50 { bench.receive(stranger(round * 50 + number), on: slot) }
    bench.pass(.milliseconds(50))
    requests += bench.sent(.request, on: slot).count
  }
  #expect((4...5).contains(requests))
}

@Test func `a request for more nodes than fit requests everything`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  for number in 0..<81 { bench.receive(stranger(number), on: slot) }
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: slot) == [])
}

@Test func `a node that renews too often is requested again later`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let verified = bench.verifyCount
  for sequence in 1...800 as ClosedRange<UInt64> {
    bench.receive(bench.topology(1, [20], sequence: sequence), on: slot)
  }
  #expect(bench.verifyCount - verified == 4 && bench.refusals(.tooMany) == 796)
  bench.pass(.seconds(1))
  #expect(asked(bench, on: slot) == [bench.id(1)])
  bench.receive(bench.topology(1, [20], sequence: 800), on: slot)
  #expect(bench.node.counters.advertisementsAccepted == 5)
}

// MARK: Requests of neighbours

@Test func `a requested advertisement is sent again`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  let second = bench.neighbour(2)
  bench.receive(bench.topology(1, [20]) + bench.profile(1) + bench.profile(3), on: first)
  bench.pass(.milliseconds(200))
  _ = bench.sent(on: second)
  bench.receive(request(bench, 2, [bench.id(1), bench.id(9)]), on: second)
  let sent = bench.sent(.advertisement, on: second)
  #expect(sent.map(\.header.source) == [bench.id(1), bench.id(1)])
  bench.receive(request(bench, 2, []), on: second)
  #expect(Set(bench.sent(.advertisement, on: second).map(\.header.source)) == [bench.id(1), bench.id(3), bench.id(20)])
}

@Test func `a neighbour that floods requests is answered once per second`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  let second = bench.neighbour(2)
  bench.receive(bench.profile(3), on: first)
  bench.pass(.milliseconds(200))
  _ = bench.sent(on: second)
  for _ in 0..<1000 {
    bench.receive(request(bench, 2, [bench.id(3)]), on: second)
    bench.pass(.milliseconds(10))
  }
  let told = bench.sent(.advertisement, on: second).count { $0.header.source == bench.id(3) }
  #expect((11...12).contains(told), "\(told)")
  #expect(bench.refusals(.tooMany) >= 988)
}

@Test func `a request before hello is unexpected`() {
  let bench = Bench()
  let slot = bench.open(1)
  bench.receive(request(bench, 1, []), on: slot)
  #expect(bench.refusals(.unexpected) == 1)
}

@Test func `a new neighbour receives advertisements at a rate that it can verify`() {
  let bench = Bench()
  let first = bench.neighbour(1)
  bench.receivePaced((0..<200).flatMap { stranger($0) }, on: first)
  let second = bench.neighbour(2)
  bench.pass(.seconds(1))
  let told = bench.sent(.advertisement, on: second).count
  #expect((130...150).contains(told), "\(told)")
  bench.pass(.seconds(1))
  #expect(bench.sent(.advertisement, on: second).count >= 30)
}

// MARK: A full table of nodes

/// A bench whose node table is full. All its nodes are reachable through neighbour 1. Neighbour 2 has sent no
/// advertisement yet.
private struct FullTable {
  let bench = Bench()
  let first: Int
  let second: Int
  let nodes = (0..<Limits.nodesMax - 2).map { Identity(UInt64(5000 + $0)) }

  init() {
    first = bench.neighbour(1)
    second = bench.neighbour(2)
    let root = advertisement(
      of: Bench.people[1], .topology, lifetimeSeconds: 3600,
      body: topologyBody(encryption: .none, [link(bench.identity.id), link(nodes[0].id)]))
    bench.receivePaced(frame(.advertisement, from: bench.id(1), root), on: first)
    for number in nodes.indices { bench.receivePaced(topology(number), on: first) }
    bench.pass(.seconds(1))
  }

  /// The topology of one node of a tree, which has up to four child nodes.
  func topology(_ number: Int, sequence: UInt64 = 1, without lost: Int? = nil) -> [UInt8] {
    let children = (number * 4 + 1...number * 4 + 4).filter { $0 < nodes.count && $0 != lost }
    let parent = number == 0 ? bench.id(1) : nodes[(number - 1) / 4].id
    let payload = advertisement(
      of: nodes[number], .topology, sequence: sequence, lifetimeSeconds: 3600,
      body: topologyBody(encryption: .none, [link(parent)] + children.map { link(nodes[$0].id) }))
    return frame(.advertisement, from: nodes[number].id, payload)
  }

  private func link(_ id: NodeID) -> Neighbour {
    Neighbour(node: id, cost: 10, payloadBytesMax: 16_640, bearer: .ethernet)
  }
}

@Test func `a node that found no slot is requested when a slot is free`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(bench.topology(30, [31]), on: table.second)
  #expect(bench.refusals(.overLength) == 1 && bench.told(.nodesFull) == 1)
  bench.pass(.seconds(1))
  #expect(bench.sent(.request, on: table.second).isEmpty)
  // The last node of the tree becomes unreachable, so its entry in the node table becomes free.
  let last = table.nodes.count - 1
  bench.receive(table.topology((last - 1) / 4, sequence: 2, without: last), on: table.first)
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: table.second) == [])
}

@Test func `a node that found no slot is requested from another neighbour after the link closed`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(bench.topology(30, [31]), on: table.second)
  bench.handle(.linkClosed(table.second))
  bench.pass(.seconds(1))
  #expect(bench.sent(.request, on: table.first).isEmpty)
  let last = table.nodes.count - 1
  bench.receive(table.topology((last - 1) / 4, sequence: 2, without: last), on: table.first)
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: table.first) == [])
}

@Test func `an evicted node is requested when a slot is free`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(bench.topology(2, [20]), on: table.second)
  let evicted = table.nodes.filter { bench.node.route(to: $0.id) == nil }
  #expect(evicted.count == 1)
  bench.pass(.seconds(1))
  #expect(bench.sent(.request, on: table.first).isEmpty)
  // Another leaf becomes unreachable, so its entry in the node table becomes free.
  let lost = table.nodes.count - (evicted[0].id == table.nodes[table.nodes.count - 1].id ? 6 : 1)
  bench.receive(table.topology((lost - 1) / 4, sequence: 2, without: lost), on: table.first)
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: table.first) == [])
}

@Test func `a new neighbour and the nodes behind it get slots in a full table`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(bench.topology(2, [20, 30]), on: table.second)
  #expect(bench.node.route(to: bench.id(2)) != nil && bench.refusals(.overLength) == 0)
  // The topology of node 2 lists node 30, which the bench does not know. So the bench requests the advertisements of
  // node 30.
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: table.second) == [bench.id(30)])
  bench.receive(bench.topology(30, [2]), on: table.second)
  #expect(bench.node.route(to: bench.id(30)) != nil)
  #expect(bench.node.route(to: bench.id(1)) != nil, "the neighbour of most nodes stays")
}

@Test func `nodes behind a neighbour are requested from it, whichever link delivered its topology`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(bench.topology(2, [20]), on: table.second)
  bench.pass(.seconds(2))
  _ = bench.sent(on: table.first)
  _ = bench.sent(on: table.second)
  bench.receive(bench.topology(2, [20, 31], sequence: 2), on: table.first)
  bench.pass(.milliseconds(200))
  #expect(asked(bench, on: table.second) == [bench.id(31)])
  #expect(bench.sent(.request, on: table.first).isEmpty)
}

@Test func `a forged advertisement evicts no node`() {
  let table = FullTable()
  let bench = table.bench
  bench.receive(forged(bench, 2), on: table.second)
  #expect(bench.refusals(.wrongSignature) == 1)
  #expect(table.nodes.allSatisfy { bench.node.route(to: $0.id) != nil })
}
