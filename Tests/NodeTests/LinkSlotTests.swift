import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

// A machine can create many keys, so these limits apply to the machine's address.

/// Trusts the nodes that the test names.
final class Acquaintances: NodeTrust {
  /// `known` holds keys that the operator pinned, `firstUse` keys that were pinned on first use.
  var known: [NodeID] = []
  var firstUse: [NodeID] = []
  func refuses(_ node: NodeID) -> Bool { false }
  func refuses(_ node: NodeID, named name: DisplayName, proof: KeyProof?) -> Bool { false }
  func wouldRefuse(_ node: NodeID, named name: DisplayName) -> Bool { refuses(node) }
  func isKnown(_ node: NodeID) -> Bool { known.contains(node) || firstUse.contains(node) }
  func isPinnedByOperator(_ node: NodeID) -> Bool { known.contains(node) }
  func wantsDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool { false }
  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> DenyListAnswer { .notStored }
  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void) {}
}

private let attacker: UInt64 = 0xA77A
private func key(_ number: Int) -> NodeID { Identity(UInt64(20_000 + number)).id }

private extension Bench {
  /// Opens a link to the key `number` at the address `source`. Returns whether the node opened the link. The streams of
  /// refused and evicted links are closed.
  func comes(_ number: Int, from source: UInt64, over bearer: BearerKind = .ethernet, dialled: UInt32? = nil) -> Bool {
    guard
      let slot = node.openLink(peer: key(number), bearer: bearer, source: source, dialled: dialled, now: now)
    else { return false }
    let isOpen = node.link(slot).state == .opening
    drain()
    closeWhatIsToClose()
    return isOpen
  }

  func closeWhatIsToClose() {
    for command in takeCommands() {
      if case .close(let slot) = command { handle(.linkClosed(slot)) }
    }
  }

  /// Receives the hello of the key `number`, so that its link stays up.
  func settle(_ number: Int) {
    guard let slot = slot(of: number) else { return }
    receive(frame(.hello, from: key(number), helloPayload(key(number))), on: slot)
  }

  func slot(of number: Int) -> Int? {
    (0..<Limits.linksMax).first { node.link($0).peer == key(number) && node.link($0).state != .idle }
  }

  var openCount: Int { (0..<Limits.linksMax).count { node.link($0).state != .idle } }
}

@Test func `a link counts as wasted until it is proven`() throws {
  let bench = Bench()
  #expect(bench.comes(1, from: attacker))
  let slot = try #require(bench.slot(of: 1))
  #expect(bench.node.isLinkWasted(slot))
  bench.settle(1)
  #expect(bench.node.link(slot).state == .up && bench.node.isLinkWasted(slot))
  for ping in bench.sent(.ping, on: slot) { bench.receive(frame(.pong, from: key(1), ping.payload), on: slot) }
  bench.pass(.seconds(2))
  #expect(!bench.node.isLinkWasted(slot))
}

@Test func `nodes of this machine are not limited in new keys`() {
  let bench = Bench()
  #expect((0..<10).allSatisfy { bench.comes($0, from: 0xFFFF_7F00_0001, over: .loopback) })
}

@Test func `an address brings at most four new keys at once and then one per five seconds`() {
  let bench = Bench()
  #expect(
    (0..<10).map { bench.comes($0, from: attacker) } == [true, true, true, true] + Array(repeating: false, count: 6))
  // The limit does not apply to another address, to a key that the node knows already, or to this machine's own
  // address.
  #expect(
    bench.comes(50, from: 77) && bench.comes(0, from: attacker)
      && bench.comes(60, from: 0xFFFF_7F00_0001, over: .loopback) && !bench.comes(61, from: attacker, over: .loopback))
  bench.now = bench.now + .milliseconds(4_900)
  #expect(!bench.comes(11, from: attacker))
  bench.now = bench.now + .milliseconds(100)
  #expect(bench.comes(12, from: attacker) && !bench.comes(13, from: attacker))
}

@Test func `a refused new key receives the time until its next attempt`() throws {
  let bench = Bench()
  for number in 0..<4 { _ = bench.comes(number, from: attacker) }
  let slot = try #require(
    bench.node.openLink(peer: key(4), bearer: .wifi, source: attacker, dialled: nil, now: bench.now))
  bench.drain()
  let goodbye = try Goodbye(bytes: #require(bench.sent(.goodbye, on: slot).first).payload)
  #expect(goodbye == Goodbye(reason: .full, retryAfterSeconds: 5))
}

@Test func `all Bluetooth addresses together bring sixteen new keys at once and then one per second`() {
  let bench = Bench()
  #expect(
    (0..<20).map { bench.comes($0, from: UInt64($0), over: .bluetoothLE) }
      == Array(repeating: true, count: 16) + Array(repeating: false, count: 4))
  bench.now = bench.now + .milliseconds(999)
  #expect(!bench.comes(21, from: 21, over: .bluetoothLE))
  bench.now = bench.now + .milliseconds(1)
  #expect(bench.comes(22, from: 22, over: .bluetoothLE) && !bench.comes(23, from: 23, over: .bluetoothLE))
}

@Test func `known and dialled keys do not count as new`() {
  let trust = Acquaintances()
  trust.known = (10..<30).map { key($0) }
  let bench = Bench(trust: trust)
  #expect((10..<30).allSatisfy { bench.comes($0, from: attacker) })
  #expect((30..<40).allSatisfy { bench.comes($0, from: attacker, dialled: UInt32($0)) })
  #expect((0..<4).allSatisfy { bench.comes($0, from: attacker) } && !bench.comes(5, from: attacker))
}

/// Opens links to `keys` keys from one address, one every five seconds. The default number is greater than the number
/// of link slots.
private func fill(_ bench: Bench, from number: Int = 0, keys: Int = 70) {
  for person in number..<number + keys {
    _ = bench.comes(person, from: attacker)
    bench.settle(person)
    bench.now = bench.now + .seconds(5)
    // A ping on every link keeps all links alive.
    for number in number..<number + keys {
      if let slot = bench.slot(of: number) {
        bench.receive(frame(.ping, from: key(number), [0, 0, 0, 0, 0, 0, 0, 1]), on: slot)
      }
    }
  }
}

@Test func `an address that holds all slots loses one to a newcomer`() {
  let bench = Bench()
  fill(bench)
  #expect(bench.openCount == Limits.linksMax - 1)
  for number in 100..<110 {
    #expect(bench.comes(number, from: UInt64(number)))
    bench.settle(number)
  }
  #expect(bench.openCount == Limits.linksMax - 1 && (100..<110).allSatisfy { bench.slot(of: $0) != nil })
  // The node closed the attacker's youngest links.
  #expect((0..<53).allSatisfy { bench.slot(of: $0) != nil } && (53..<63).allSatisfy { bench.slot(of: $0) == nil })
}

@Test func `a full table of addresses with equally many links evicts none`() {
  let bench = Bench()
  for number in 0..<Limits.linksMax { #expect(bench.comes(number, from: UInt64(1000 + number))) }
  #expect(bench.openCount == Limits.linksMax)
  #expect(bench.node.openLink(peer: key(99), bearer: .ethernet, source: 9, dialled: nil, now: bench.now) == nil)
}

@Test func `a peer of the operator gets a slot in a full table, and a stranger does not`() {
  let trust = Acquaintances()
  trust.known = [key(900), key(901)]
  let bench = Bench(trust: trust)
  for number in 0..<Limits.linksMax { _ = bench.comes(number, from: UInt64(1000 + number)) }
  #expect(bench.openCount == Limits.linksMax - 1 && bench.slot(of: Limits.linksMax - 1) == nil)
  #expect(bench.comes(900, from: 1) && bench.comes(901, from: 2))
  #expect(bench.slot(of: 900) != nil && bench.slot(of: 901) != nil && bench.openCount == Limits.linksMax - 1)
  // The node closed the two youngest links.
  #expect((0..<61).allSatisfy { bench.slot(of: $0) != nil } && (61..<63).allSatisfy { bench.slot(of: $0) == nil })
  #expect(!bench.comes(902, from: 3) && bench.openCount == Limits.linksMax - 1)
}

@Test func `keys pinned on first use count for their address and protect no link`() {
  let trust = Acquaintances()
  trust.firstUse = (200..<208).map { key($0) }
  trust.known = [key(300)]
  let bench = Bench(trust: trust)
  for number in 200..<208 {
    #expect(bench.comes(number, from: attacker))
    bench.settle(number)
  }
  // The node that the operator pinned has the youngest link of this address.
  #expect(bench.comes(300, from: attacker))
  bench.settle(300)
  for number in 400..<454 {
    _ = bench.comes(number, from: UInt64(number))
    bench.settle(number)
  }
  #expect(bench.openCount == Limits.linksMax - 1)
  for number in 500..<507 { #expect(bench.comes(number, from: UInt64(number))) }
  #expect(bench.slot(of: 300) != nil && bench.slot(of: 200) != nil)
  #expect((201..<208).allSatisfy { bench.slot(of: $0) == nil })
  #expect((500..<507).allSatisfy { bench.slot(of: $0) != nil })
}

@Test func `eight dialled and eight known links of an address are kept`() {
  let trust = Acquaintances()
  trust.known = (200..<210).map { key($0) }
  let bench = Bench(trust: trust)
  for number in 200..<210 {
    _ = bench.comes(number, from: attacker)
    bench.settle(number)
  }
  for number in 300..<310 {
    _ = bench.comes(number, from: attacker, dialled: UInt32(number))
    bench.settle(number)
  }
  for number in 400..<443 {
    _ = bench.comes(number, from: UInt64(number))
    bench.settle(number)
  }
  #expect(bench.openCount == Limits.linksMax - 1)
  for number in 500..<560 { _ = bench.comes(number, from: UInt64(number)) }
  #expect((200..<208).allSatisfy { bench.slot(of: $0) != nil } && (300..<308).allSatisfy { bench.slot(of: $0) != nil })
  #expect((208..<210).allSatisfy { bench.slot(of: $0) == nil } && (308..<310).allSatisfy { bench.slot(of: $0) == nil })
}
