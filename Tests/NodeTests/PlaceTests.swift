import Channel
import Frame
import Primitives
import Seal
import TestSupport
import Testing

@testable import Node

/// Places for handshakes and channels when ids behind one link want all of them.
@Suite struct PlaceTests {
  private let highest = 39

  /// Sixty ids behind one neighbour that begin a handshake, show that they receive, and stop.
  private func stoppedHandshakes(_ bench: Bench, behind person: Int = 1, _ count: Int = 60) -> Crowd {
    let crowd = Crowd(bench, Crowd.identities(count, below: bench), behind: person)
    for member in crowd.members { member.stops = true }
    crowd.open(crowd.members)
    return crowd
  }

  @Test func `handshakes that stop behind one link leave places for a neighbour`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = stoppedHandshakes(bench)
    #expect(bench.node.counters.handshakesTurnedAway > 0)
    for person in 2...7 {
      let honest = Crowd(bench, neighbour: person)
      honest.open(honest.members)
      #expect(honest.members[0].seal.isOpen, "neighbour \(person)")
    }
    #expect(!crowd.members.contains { $0.seal.isOpen })
  }

  @Test func `a handshake without progress gives its place to another one behind the same link after a second`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = stoppedHandshakes(bench)
    let honest = crowd.members[59]
    #expect(!honest.seal.isOpen)
    honest.stops = false
    crowd.pass(.milliseconds(800))
    #expect(!honest.seal.isOpen)
    crowd.pass(.milliseconds(1_400))
    #expect(honest.seal.isOpen)
  }

  @Test func `a pinned peer and one that proved its key before find the places that strangers do not get`() {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    trust.known = [bench.id(38)]
    let proven = Crowd(bench, neighbour: 37)
    proven.open(proven.members)
    bench.handle(.linkClosed(proven.slot))
    // Each of them has its own link and began just now.
    let strangers = (1...30).map { Crowd(bench, neighbour: $0) }
    for stranger in strangers {
      stranger.members[0].stops = true
      stranger.open(stranger.members)
    }
    #expect(bench.node.counters.handshakesTurnedAway == 30 - 24)
    let pinned = Crowd(bench, neighbour: 38)
    pinned.open(pinned.members)
    #expect(pinned.members[0].seal.isOpen)
    let again = Crowd(bench, neighbour: 37, life: 2)
    again.open(again.members)
    #expect(again.members[0].seal.isOpen)
    let stranger = Crowd(bench, neighbour: 31)
    stranger.open(stranger.members)
    #expect(!stranger.members[0].seal.isOpen)
  }

  @Test func `a peer without a place is told at once and comes back`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = stoppedHandshakes(bench)
    let honest = crowd.members[59]
    honest.stops = false
    crowd.pass(.milliseconds(600))
    #expect(honest.events.contains(.failed(.busy)))
    #expect(honest.seal.obstacle?.reason == .failed(.busy))
    crowd.pass(.seconds(3))
    #expect(honest.seal.isOpen && honest.seal.obstacle == nil)
  }

  @Test func `handshakes that this node begins are charged to the link of the route`() throws {
    let bench = Bench(0, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(60, below: bench, isBelow: false), behind: 1)
    for member in crowd.members { member.stops = true }
    let honest = Crowd(bench, neighbour: 2)
    let text: [UInt8] = [1]
    for member in crowd.members {
      _ = try bench.node.send(kind: 3, text.span.bytes, to: member.identity.id, lane: .bulk, now: bench.now)
    }
    bench.drain()
    let begun = bench.sent(.handshake, on: crowd.slot)
    #expect(begun.count < SealLimits.handshakesMax - SealLimits.handshakesReserved)
    try send("hello", bench, to: 2)
    #expect(!bench.sent(.handshake, on: honest.slot).isEmpty)
  }

  @Test func `requests in the names of others take the places of the link that brings them`() throws {
    let bench = Bench(0, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(60, below: bench, isBelow: false), behind: 1)
    let attacker = bench.neighbour(2)
    var epochs = [UInt8](repeating: 0, count: 16)
    (epochs[7], epochs[15]) = (7, 1)
    for (number, member) in crowd.members.enumerated() {
      bench.receive(
        frame(
          .handshake, ttl: 9, priority: .interactive, to: bench.identity.id, from: member.identity.id,
          identifier: UInt64(1_000 + number), epochs), on: attacker)
    }
    // None of these handshakes is answered. This node was named, too; now it is needed, and its own link has all places.
    let honest = crowd.members[59]
    let text: [UInt8] = [1]
    _ = try bench.node.send(kind: 3, text.span.bytes, to: honest.identity.id, lane: .bulk, now: bench.now)
    _ = bench.sent(on: crowd.slot)
    bench.pass(.milliseconds(600))
    #expect(bench.sent(.handshake, on: crowd.slot).contains { $0.header.destination == honest.identity.id })
  }

  // MARK: Channels

  private func channels(_ bench: Bench, behind person: Int = 1) -> Crowd {
    let crowd = Crowd(bench, Crowd.identities(Limits.channelsMax, below: bench), behind: person)
    for member in crowd.members { crowd.open([member]) }
    #expect(crowd.members.count { $0.seal.isOpen } == Limits.channelsMax)
    return crowd
  }

  @Test func `proven ids behind one link give way to a neighbour, and are told`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = channels(bench)
    for person in 2...9 {
      let honest = Crowd(bench, neighbour: person)
      honest.open(honest.members)
      #expect(honest.members[0].seal.isOpen, "neighbour \(person)")
    }
    crowd.settle()
    #expect(crowd.members.count { $0.seal.obstacle?.reason == .failed(.busy) } == 8)
    #expect(crowd.members.count { $0.seal.isOpen } == Limits.channelsMax - 8)
  }

  @Test func `the channel that was unused for longest goes first`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = channels(bench)
    bench.pass(.seconds(1))
    for member in crowd.members where member !== crowd.members[17] { crowd.use(member) }
    let honest = Crowd(bench, neighbour: 2)
    honest.open(honest.members)
    crowd.settle()
    #expect(honest.members[0].seal.isOpen)
    #expect(crowd.members.indices.filter { !crowd.members[$0].seal.isOpen } == [17])
  }

  @Test func `who gave way comes back when a channel of the link is idle`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = channels(bench)
    let honest = Crowd(bench, neighbour: 2)
    honest.open(honest.members)
    crowd.settle()
    guard let gone = crowd.members.first(where: { !$0.seal.isOpen }) else {
      Issue.record("nobody gave way")
      return
    }
    gone.seal.isWanted = true
    crowd.pass(.seconds(3), beside: [honest])
    #expect(!gone.seal.isOpen)
    crowd.pass(.seconds(12), beside: [honest])
    #expect(gone.seal.isOpen && honest.members[0].seal.isOpen)
  }

  @Test func `a pinned peer finds a place behind the same link, and keeps it while messages wait for it`() throws {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    let crowd = channels(bench)
    let pinned = crowd.members[5]
    trust.known = [pinned.identity.id]
    let text: [UInt8] = [1]
    _ = try bench.node.send(kind: 3, text.span.bytes, to: pinned.identity.id, lane: .bulk, now: bench.now)
    bench.drain()
    // All others are used after it.
    bench.pass(.seconds(1))
    for member in crowd.members where member !== pinned { crowd.use(member) }
    for person in 2...20 {
      let honest = Crowd(bench, neighbour: person)
      honest.open(honest.members)
      #expect(honest.members[0].seal.isOpen)
    }
    crowd.settle()
    #expect(pinned.seal.isOpen)
  }

  @Test func `a pinned peer's undelivered messages stay where another channel can give way`() throws {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    let identities = Crowd.identities(Limits.channelsMax, below: bench)
    let pinned = Crowd(bench, Array(identities[..<33]), behind: 1)
    let others = Crowd(bench, Array(identities[33...]), behind: 2)
    trust.known = pinned.members.map(\.identity.id)
    for member in pinned.members { pinned.open([member]) }
    for member in others.members { others.open([member]) }
    let text: [UInt8] = [1]
    for member in pinned.members {
      _ = try bench.node.send(kind: 3, text.span.bytes, to: member.identity.id, lane: .bulk, now: bench.now)
    }
    bench.drain()
    let honest = Crowd(bench, neighbour: 3)
    honest.open(honest.members)
    pinned.settle()
    others.settle()
    #expect(honest.members[0].seal.isOpen && pinned.members.allSatisfy { $0.seal.isOpen })
    #expect(others.members.count { $0.seal.isOpen } == 30)
  }

  @Test func `the results of sends to a peer that gives way are reported`() throws {
    let bench = Bench(highest, encryption: .required)
    let crowd = channels(bench)
    let text: [UInt8] = [1]
    for member in crowd.members {
      _ = try bench.node.send(kind: 3, text.span.bytes, to: member.identity.id, lane: .bulk, now: bench.now)
    }
    bench.drain()
    let honest = Crowd(bench, neighbour: 2)
    honest.open(honest.members)
    #expect(honest.members[0].seal.isOpen)
    let ended = bench.nextCompletion()
    #expect(ended?.completion.outcome == .failed(.closed) && bench.nextCompletion() == nil)
  }

  @Test func `frames in clear under many names leave places for a neighbour`() throws {
    let bench = Bench(20)
    let crowd = Crowd.identities(Limits.channelsMax, below: bench)
    let slot = bench.neighbour(1)
    bench.receivePaced(crowdTopologies(bench, crowd), on: slot)
    let nothing: [UInt8] = []
    for identity in crowd {
      _ = try bench.node.sendUnreliable(kind: 3, nothing.span.bytes, to: identity.id, now: bench.now)
    }
    var honest = Partner(bench, 2)
    try honest.say("hello")
    bench.receive(honest.frames(), on: honest.slot)
    // In clear the first answer says that the channel is a later one.
    _ = try honest.takeSent()
    try honest.say("hello")
    bench.receive(honest.frames(), on: honest.slot)
    #expect(read(bench) == ["hello"])
  }

  @Test func `a place moves to the link that brings the peer's frames, and back to the route when that closes`() {
    let bench = Bench(highest, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(1, below: bench), behind: 1)
    crowd.open(crowd.members)
    func ingress() -> Int? { bench.node.associations.association(with: crowd.members[0].identity.id)?.ingress }
    #expect(ingress() == crowd.slot)
    let other = bench.neighbour(2)
    crowd.use(crowd.members[0], over: other)
    #expect(ingress() == other)
    bench.handle(.linkClosed(other))
    #expect(ingress() == crowd.slot)
  }

  @Test func `a peer that proved its key is remembered until others of its link need the place`() {
    var peers = ProvenPeers()
    for number in 1...64 as ClosedRange<UInt64> { peers.note(NodeID(high: number, low: 0), on: number <= 4 ? 1 : 2) }
    for number in 65...100 as ClosedRange<UInt64> { peers.note(NodeID(high: number, low: 0), on: 2) }
    let known = (1...100).filter { peers.contains(NodeID(high: UInt64($0), low: 0)) }
    #expect(known == [1, 2, 3, 4] + (41...100))
    peers.linkClosed(1)
    #expect(peers.contains(NodeID(high: 1, low: 0)))
  }
}
