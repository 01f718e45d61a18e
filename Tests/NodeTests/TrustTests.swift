import Frame
import Node
import Primitives
import TestSupport
import Testing

/// Refuses the nodes that the test names.
private final class Doorkeeper: NodeTrust {
  var denied: [NodeID] = []
  var names: [String: NodeID] = [:]
  /// The nodes whose names were checked, and whether each node had proved its key.
  var asked: [(node: NodeID, isProven: Bool)] = []
  var lists: [(issuer: NodeID, bytes: [UInt8])] = []
  var operators: [NodeID] = []

  func refuses(_ node: NodeID) -> Bool { denied.contains(node) }
  func refuses(_ node: NodeID, named name: DisplayName, proof: KeyProof?) -> Bool {
    asked.append((node, proof != nil))
    if let owner = names[name.text], owner != node { return true }
    return denied.contains(node)
  }
  func wouldRefuse(_ node: NodeID, named name: DisplayName) -> Bool {
    denied.contains(node) || (names[name.text].map { $0 != node } ?? false)
  }
  func isKnown(_ node: NodeID) -> Bool { false }
  func isPinnedByOperator(_ node: NodeID) -> Bool { false }
  /// The number of deny-list signatures that were verified.
  var verifyCount = 0

  func wantsDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool {
    operators.contains(issuer) && !lists.contains { $0.bytes == payload.array }
  }
  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> DenyListAnswer {
    verifyCount += 1
    guard let view = try? DenyListView(payload),
      view.signature.array == Identity.signature(view.signed, view.point).span.bytes.array
    else { return .wrongSignature }
    lists.append((issuer, payload.array))
    return .accepted
  }
  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void) {
    for list in lists { body(list.issuer, list.bytes.span.bytes) }
  }
}

private func denyList(_ bench: Bench, by person: Int) -> [UInt8] {
  let identity = Bench.people[person]
  let point = identity.point
  let head = encoded { output in
    DenyListView.writeHead(count: 0, serial: 1, issuedSeconds: 0, point: point.span.bytes, to: &output)
  }
  let signature = identity.sign(head.span.bytes)
  return head + (0..<64).map { signature[$0] }
}

@Test func `a name that belongs to another key closes the link before any other exchange`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  trust.names["peer"] = bench.id(5)
  let slot = bench.open(1)
  _ = bench.sent(on: slot)
  bench.hello(1, on: slot)
  let sent = bench.sent(on: slot)
  #expect(sent.map { $0.header.knownType } == [.goodbye])
  #expect(sent.first?.payload == [9, 0, 0, 60])
  #expect(bench.takeCommands() == [.close(slot)])
  bench.receive(bench.profile(1, name: "other"), on: slot)
  #expect(bench.node.counters.advertisementsAccepted == 0)
}

@Test func `a key is proven only by a link, not by an advertisement`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  let slot = bench.neighbour(1)
  #expect(trust.asked.map { $0.node } == [bench.id(1)])
  #expect(trust.asked.allSatisfy { $0.isProven })
  trust.asked = []
  bench.receive(bench.profile(1, name: "peer"), on: slot)
  bench.receive(bench.profile(2, name: "ghost"), on: slot)
  #expect(trust.asked.map { $0.node } == [bench.id(1), bench.id(2)])
  #expect(!trust.asked.contains { $0.isProven })
}

/// Three nodes in a line. The first node asks `trust`, and its application decides on certificates.
private func row(_ trust: Doorkeeper) -> Row {
  Row(3, trust: [0: trust]) { number, settings in settings.asksApplication = number == 0 }
}

@Test func `a name that is refused in an advertisement is known when its node proves its key`() {
  let trust = Doorkeeper()
  trust.names["n2"] = Bench.people[30].id
  let row = row(trust)
  let node = row.boxes[0].node, other = row.boxes[2].identity.id
  #expect(node.peer(other) == nil && node.claimedName(of: other)?.text == "n2")
  #expect(node.claimedName(of: row.boxes[1].identity.id)?.text == "n1")
  row.say("hello", from: 2, to: 0)
  row.pass(.seconds(1))
  // The decision on the certificate includes the decision on the name.
  #expect(row.boxes[0].asked.map { $0.peer } == [other])
  node.decide(other, isAccepted: false, now: row.now)
  row.pass(.seconds(1))
  #expect(row.boxes[0].texts == [] && !node.hasSession(with: other))
}

@Test func `a session proves the name in a profile that arrives during the session`() {
  let trust = Doorkeeper()
  let row = row(trust)
  let node = row.boxes[0].node, other = row.boxes[2].identity.id
  row.say("hello", from: 2, to: 0)
  row.pass(.seconds(1))
  node.decide(other, isAccepted: true, now: row.now)
  row.pass(.seconds(5))
  #expect(row.boxes[0].texts == ["hello"] && node.hasSession(with: other))
  trust.asked = []
  trust.names["n2"] = Bench.people[30].id
  // Profiles are renewed every 200 s.
  row.pass(.seconds(210))
  #expect(trust.asked.contains { $0.node == other && $0.isProven })
  #expect(!trust.asked.contains { $0.node != other && $0.isProven }, "there is no session with the other node")
  #expect(!node.hasSession(with: other))
  row.pass(.seconds(5))
  let obstacle = row.boxes[2].node.sealObstacle(with: row.boxes[0].identity.id, now: row.now)
  #expect(obstacle?.reason == .refused(.rejected, byPeer: true))
}

@Test func `a name that the operator pins to another key ends sessions and links at once`() {
  for isNeighbour in [true, false] {
    let trust = Doorkeeper()
    let row = row(trust)
    let number = isNeighbour ? 1 : 2
    let node = row.boxes[0].node, other = row.boxes[number].identity.id
    row.say("hello", from: number, to: 0)
    row.pass(.seconds(1))
    node.decide(other, isAccepted: true, now: row.now)
    row.pass(.seconds(5))
    #expect(node.hasSession(with: other) && node.isLinked)
    trust.names["n\(number)"] = Bench.people[30].id
    node.pinsChanged(now: row.now)
    row.settle()
    #expect(!node.hasSession(with: other) && node.isLinked == !isNeighbour)
  }
}

@Test func `a profile is requested when its name is no longer refused`() {
  let trust = Doorkeeper()
  trust.names["n2"] = Bench.people[30].id
  let row = row(trust)
  let node = row.boxes[0].node, other = row.boxes[2].identity.id
  #expect(node.peer(other) == nil)
  trust.names = [:]
  node.pinsChanged(now: row.now)
  row.pass(.seconds(2))
  #expect(node.peer(other)?.name.text == "n2" && node.claimedName(of: other)?.text == "n2")
}

@Test func `a revoked key loses its links at once`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  let revoked = bench.neighbour(1), other = bench.neighbour(2)
  trust.denied = [bench.id(1)]
  trust.lists = [(bench.identity.id, denyList(bench, by: 20))]
  bench.node.trustChanged(now: bench.now)
  bench.drain()
  #expect(bench.sent(.goodbye, on: revoked).count == 1)
  #expect(bench.node.link(other).state == .up)
  // The neighbour that is not revoked receives the deny-list.
  #expect(bench.sent(.denyList, on: other).map { $0.payload } == [trust.lists[0].bytes])
}

@Test func `advertisements of a revoked key, or with another key's name, are not forwarded`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  let slot = bench.neighbour(1), other = bench.neighbour(2)
  trust.denied = [bench.id(3)]
  trust.names["bob"] = bench.id(5)
  bench.receive(bench.topology(3, [1]), on: slot)
  bench.receive(bench.profile(4, name: "bob"), on: slot)
  #expect(bench.refusals(.notTrusted) == 2)
  bench.receive(bench.profile(5, name: "bob"), on: slot)
  bench.receive(bench.topology(4, [1]), on: slot)
  #expect(bench.refusals(.notTrusted) == 2)
  bench.pass(.milliseconds(500))
  let passedOn = bench.sent(.advertisement, on: other).map { $0.header.source }
  #expect(!passedOn.contains(bench.id(3)))
  #expect(passedOn.contains(bench.id(5)))
}

@Test func `a deny-list of an operator is forwarded once and sent to new neighbours`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  trust.operators = [bench.id(7)]
  let from = bench.neighbour(1), to = bench.neighbour(2)
  let list = denyList(bench, by: 7)
  bench.receive(frame(.denyList, ttl: 9, from: bench.id(7), list), on: from)
  #expect(bench.sent(.denyList, on: to).map { $0.payload } == [list])
  bench.receive(frame(.denyList, ttl: 9, from: bench.id(7), list), on: from)
  #expect(bench.sent(.denyList, on: to).isEmpty)
  #expect(bench.refusals(.duplicate) == 1)
  let late = bench.open(3)
  bench.hello(3, on: late)
  let told = bench.sent(.denyList, on: late)
  #expect(told.map { $0.header.source } == [bench.id(7)])
}

@Test func `the third wrong deny-list in an operator's name closes the link`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  trust.operators = [bench.id(7)]
  let from = bench.neighbour(1)
  let list = denyList(bench, by: 7)
  for index in 1...20 {
    bench.receive(frame(.denyList, from: bench.id(7), list.with { $0[list.count - index] ^= 1 }), on: from)
  }
  #expect(bench.node.link(from).state == .closed(.protocolError) && trust.verifyCount == 3)
}

@Test func `a malformed deny-list, or one of another issuer, is dropped`() {
  let trust = Doorkeeper()
  let bench = Bench(trust: trust)
  let from = bench.neighbour(1), to = bench.neighbour(2)
  bench.receive(frame(.denyList, from: bench.id(7), denyList(bench, by: 7)), on: from)
  #expect(bench.refusals(.duplicate) == 1)
  bench.receive(frame(.denyList, from: bench.id(7), [0, 0, 0]), on: from)
  #expect(bench.refusals(.truncated) == 1)
  #expect(bench.sent(.denyList, on: to).isEmpty)
  let without = Bench()
  let slot = without.neighbour(1)
  without.receive(frame(.denyList, from: bench.id(7), denyList(bench, by: 7)), on: slot)
  #expect(without.refusals(.notTrusted) == 1)
}

@Test func `a link to this node itself is not opened`() {
  let bench = Bench()
  #expect(bench.node.openLink(peer: bench.identity.id, bearer: .ethernet, dialled: nil, now: bench.now) == nil)
  #expect(bench.node.openLink(peer: bench.identity.id, bearer: .ethernet, dialled: 5, now: bench.now) == nil)
}
