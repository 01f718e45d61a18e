import LocalAPI
import DaemonClient
import Primitives
import Session
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func sighting(_ node: UInt64, _ name: String, chosen: String? = nil, endpoint: UInt32 = 1) -> Sighting {
  Sighting(
    NodeID(high: node, low: 0), LocalPeer(name: bytes(name), hops: 1, isVerified: false),
    Service(endpoint: endpoint, type: bytes("chat"), info: chosen.map { [bytes("x=1"), bytes("name=" + $0)] } ?? []))
}

private let bob = NodeID(high: 0xb0b0_1234_0000_0000, low: 0)
private nonisolated(unsafe) let sightings = [
  sighting(0xb0b0_1234_0000_0000, "bob"), sighting(0xca01_0000_0000_0000, "Carol", chosen: "anna"),
  sighting(0xca02_0000_0000_0000, "björn"),
]

@Suite struct NameTests {
  @Test func `a node is found by its name or the beginning of its id`() {
    for word in ["bob", "BOB", "b0b0", "B0B01234"] {
      #expect(NameMatch(bytes(word), in: sightings) == .one(NamedPeer(bob)), "\(word)")
    }
    let carol = NamedPeer(sightings[1].address.node), bjoern = NamedPeer(sightings[2].address.node)
    for word in ["carol", "ca01"] { #expect(NameMatch(bytes(word), in: sightings) == .one(carol), "\(word)") }
    #expect(NameMatch(bytes("BJÖRN"), in: sightings) == .one(bjoern))
  }

  @Test func `a chosen name matches only the application that chose it`() {
    let two = sightings + [sighting(0xca01_0000_0000_0000, "Carol", endpoint: 2)]
    guard case .one(let anna) = NameMatch(bytes("Anna"), in: two) else {
      Issue.record("anna is not found")
      return
    }
    #expect(anna.includes(sightings[1].address) && !anna.includes(two[3].address))
    guard case .one(let carol) = NameMatch(bytes("carol"), in: two) else {
      Issue.record("carol is not found")
      return
    }
    #expect(carol.includes(sightings[1].address) && carol.includes(two[3].address))
  }

  @Test func `an exact match precedes a match that ignores case`() {
    let two = sightings + [sighting(9 << 56, "Bob")]
    #expect(NameMatch(bytes("bob"), in: two) == .one(NamedPeer(bob)))
    #expect(
      NameMatch(bytes("BOB"), in: two) == .several([NamedPeer(bob), NamedPeer(NodeID(high: 9 << 56, low: 0))]))
  }

  @Test func `a name that looks like an id does not match that id`() {
    let two = sightings + [sighting(9 << 56, "b0b01234")]
    #expect(NameMatch(bytes("b0b01234"), in: two) == .one(NamedPeer(bob)))
    #expect(NameMatch(bytes("b0b0999a"), in: two) == .nobody(suggestion: nil))
  }

  @Test func `several services of one node count as one node`() {
    let two = sightings + [sighting(0xb0b0_1234_0000_0000, "bob", chosen: "bob", endpoint: 2)]
    #expect(NameMatch(bytes("bob"), in: two) == .one(NamedPeer(bob)))
  }

  @Test func `a mistyped name yields a suggestion`() {
    for (word, meant) in [("bbo", "bob"), ("bo", "bob"), ("carlo", "Carol"), ("bjorn", "björn"), ("ana", "anna")] {
      #expect(NameMatch(bytes(word), in: sightings) == .nobody(suggestion: bytes(meant)), "\(word)")
    }
    for word in ["dave", "b", "", "x\u{301}y", String(repeating: "b", count: 500)] {
      #expect(NameMatch(bytes(word), in: sightings) == .nobody(suggestion: nil), "\(word)")
    }
  }

  @Test func `a browse reports differences, even if a node moves to another slot`() {
    var browse = Sightings()
    let peer = LocalPeer(name: bytes("bob"), hops: 1, isVerified: false)
    func hear(_ reference: UInt16, _ node: NodeID, _ endpoints: [UInt32]) -> [Sightings.Change] {
      browse.update(reference: reference, node, peer, endpoints.map { Service(endpoint: $0, type: bytes("chat")) })
    }
    func seen(_ endpoint: UInt32) -> Sighting { Sighting(bob, peer, Service(endpoint: endpoint, type: bytes("chat"))) }
    #expect(hear(3, bob, [1, 2]) == [.found(seen(1)), .found(seen(2))])
    #expect(hear(3, bob, [2]) == [.lost(seen(1))])
    #expect(hear(5, bob, [2]) == [])
    #expect(hear(3, .none, []) == [])
    #expect(hear(5, .none, []) == [.lost(seen(2))])
    #expect(browse.all.isEmpty)
  }
}
