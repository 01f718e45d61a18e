import Channel
import Frame
import Primitives
import Seal
import TestSupport
import Testing

@testable import Node

/// How slots for handshakes and channels are shared when many ids behind one link want all of them.
@Suite struct AssociationSlotsTests {
  private let highest = 39

  /// A crowd of ids behind one neighbour. Each id begins a handshake, returns the cookie, and then sends nothing more.
  private func stoppedHandshakes(
    _ bench: Bench, behind person: Int = 1, _ count: Int = 60, from first: UInt64 = 1_000
  ) -> Crowd {
    let crowd = Crowd(bench, Crowd.identities(count, below: bench, from: first), behind: person)
    for member in crowd.members { member.stops = true }
    crowd.open(crowd.members)
    return crowd
  }

  @Test func `the verification of a peer's chain is charged to the link that brings its frames`() throws {
    let row = Row(3) { number, settings in settings.asksApplication = number == 2 }
    row.say("canary", from: 0, to: 2)
    row.pass(.seconds(10))
    let node = row.boxes[2].node, slot = try #require(row.boxes[2].slots[1])
    func left(by holder: Int) -> Int {
      var rate = node.handshakes
      return rate.take(upTo: Limits.handshakesAtOnceMax, by: holder, now: row.now)
    }
    let before = left(by: slot)
    // A chain with two P-521 signatures, whose verification takes as long as 80 P-256 checks.
    node.decide(row.boxes[0].identity.id, isAccepted: true, checks: 80, now: row.now)
    #expect(left(by: slot) == before - 5)
    #expect(before > 100 && left(by: FairShare.ownHolder) > 100)
  }

  @Test func `stalled handshakes behind one link leave slots for a neighbour`() {
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

  @Test func `a stalled handshake is evicted after a second for another one behind the same link`() {
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

  @Test func `a pinned peer and a previously proven peer get slots that strangers do not get`() {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    trust.known = [bench.id(38)]
    let proven = Crowd(bench, neighbour: 37)
    proven.open(proven.members)
    bench.handle(.linkClosed(proven.slot))
    // Each stranger has a link of its own and has just begun its handshake, but does not complete it.
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

  @Test func `a peer without a slot is notified at once, and retries`() {
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

  @Test func `requests in the names of others use the slots of the link that brings them`() throws {
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
    // No handshake of the crowd is answered, and one of these handshakes is in the name of the honest node. A message
    // to the honest node still begins a handshake. All slots of the link that leads to the honest node are free.
    let honest = crowd.members[59]
    let text: [UInt8] = [1]
    _ = try bench.node.send(kind: 3, text.span.bytes, to: honest.identity.id, lane: .bulk, now: bench.now)
    _ = bench.sent(on: crowd.slot)
    bench.pass(.milliseconds(600))
    #expect(bench.sent(.handshake, on: crowd.slot).contains { $0.header.destination == honest.identity.id })
  }

  @Test(arguments: [false, true])
  func `a flood of requests in many names is charged to its link before any state is created`(isRecord: Bool) {
    let bench = Bench(0, encryption: .required)
    let identities = Crowd.identities(120, below: bench, isBelow: false)
    let crowds = [
      Crowd(bench, Array(identities[..<60]), behind: 1), Crowd(bench, Array(identities[60...]), behind: 2),
    ]
    let attacker = bench.neighbour(3)
    var made: [Association] = []
    var number = 0
    func flood() {
      for member in crowds.flatMap(\.members) {
        number += 1
        let source = member.identity.id
        bench.receive(
          isRecord ? nonsense(bench, from: source, number) : request(bench, from: source, number), on: attacker)
        for association in bench.node.associations.all where !made.contains(where: { $0 === association }) {
          made.append(association)
        }
      }
    }
    for _ in 0..<5 { flood() }
    #expect(made.count <= Limits.handshakesAtOnceMax / 2)
    #expect(bench.refusals(.tooMany) > 0)
    // The request of an honest neighbour is not charged to the attacker.
    let honest = bench.neighbour(30)
    bench.receivePaced(bench.topology(30, [0], encryption: .required), on: honest)
    bench.receive(request(bench, from: bench.id(30), 0), on: honest)
    #expect(!bench.sent(.handshake, on: honest).isEmpty)
    bench.pass(.seconds(1))
    let before = made.count
    for _ in 0..<5 { flood() }
    #expect(made.count - before <= Int(Limits.handshakesPerSecond) + 2)
  }

  @Test func `a link that has used its share of handshakes causes none by requests, but another link does`() {
    let bench = Bench(0, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(1, below: bench, isBelow: false), behind: 1)
    let attacker = bench.neighbour(3)
    var taken = 0
    while bench.node.handshakes.take(by: attacker, now: bench.now) { taken += 1 }
    bench.receive(request(bench, from: crowd.members[0].identity.id, 0), on: attacker)
    #expect(taken == Limits.handshakesAtOnceMax / 2 && bench.refusals(.tooMany) == 1)
    #expect(bench.node.associations.all.isEmpty)
    bench.receive(request(bench, from: crowd.members[0].identity.id, 1), on: crowd.slot)
    #expect(bench.node.associations.all.count == 1)
  }

  @Test func `a handshake with a known peer is also charged to the link that brings the request`() {
    let bench = Bench(0, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(1, below: bench, isBelow: false), behind: 1)
    let peer = crowd.members[0].identity.id
    bench.receive(request(bench, from: peer, 0), on: crowd.slot)
    // The handshake with the peer makes no progress and fails.
    crowd.pass(SealLimits.stallTime + .seconds(1))
    _ = bench.sent(on: crowd.slot)
    let attacker = bench.neighbour(3)
    while bench.node.handshakes.take(by: attacker, now: bench.now) {}
    bench.receive(request(bench, from: peer, 1), on: attacker)
    #expect(bench.refusals(.tooMany) == 1 && bench.sent(.handshake, on: crowd.slot).isEmpty)
    bench.receive(request(bench, from: peer, 2), on: crowd.slot)
    #expect(!bench.sent(.handshake, on: crowd.slot).isEmpty)
  }

  @Test func `proven ids and ids pinned on first use leave handshakes for a stranger`() {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    let identities = Crowd.identities(32, below: bench)
    let parts = [Array(identities[..<16]), Array(identities[16...])]
    for (number, part) in parts.enumerated() {
      let crowd = Crowd(bench, part, behind: number + 1)
      for member in crowd.members { crowd.open([member]) }
      #expect(crowd.members.allSatisfy { $0.seal.isOpen })
      bench.handle(.linkClosed(crowd.slot))
    }
    trust.firstUse = identities.map(\.id)
    for (number, part) in parts.enumerated() {
      let crowd = Crowd(bench, part, behind: number + 1, life: 2)
      for member in crowd.members { member.stops = true }
      crowd.open(crowd.members)
    }
    for person in 3...6 {
      let honest = Crowd(bench, neighbour: person)
      honest.open(honest.members)
      #expect(honest.members[0].seal.isOpen, "neighbour \(person)")
    }
  }

  @Test func `a stalled handshake is evicted after a second, even that of a proven peer`() {
    let bench = Bench(highest, encryption: .required)
    for person in 1...32 {
      let proven = Crowd(bench, neighbour: person)
      proven.open(proven.members)
      bench.handle(.linkClosed(proven.slot))
    }
    let stopped = (1...32).map { Crowd(bench, neighbour: $0, life: 2) }
    for crowd in stopped {
      crowd.members[0].stops = true
      crowd.open(crowd.members)
    }
    let stranger = Crowd(bench, neighbour: 33)
    stranger.open(stranger.members)
    #expect(!stranger.members[0].seal.isOpen)
    stranger.pass(.milliseconds(2_200), beside: stopped)
    #expect(stranger.members[0].seal.isOpen)
  }

  @Test func `a handshake with a peer of the operator is not evicted for strangers`() {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    let pinned = Crowd(bench, Crowd.identities(8, below: bench), behind: 1)
    trust.known = pinned.members.map(\.identity.id)
    for member in pinned.members { member.stops = true }
    pinned.open(pinned.members)
    for person in 2...31 {
      let stranger = Crowd(bench, neighbour: person)
      stranger.members[0].stops = true
      stranger.open(stranger.members)
    }
    #expect(bench.node.associations.all.count { $0.ingress == pinned.slot && $0.handshakeProgressAt != nil } == 8)
  }

  @Test func `handshakes of a closed link are evicted first and at once`() {
    let bench = Bench(highest, encryption: .required)
    func inProgress(_ crowd: Crowd) -> Int {
      bench.node.associations.all.count { $0.ingress == crowd.slot && $0.handshakeProgressAt != nil }
    }
    let stays = stoppedHandshakes(bench, behind: 1, 12)
    let leaves = stoppedHandshakes(bench, behind: 2, 12, from: 10_000)
    let before = inProgress(stays)
    #expect(before == 9 && inProgress(leaves) == 9)
    bench.handle(.linkClosed(leaves.slot))
    let newcomers = stoppedHandshakes(bench, behind: 3, 12, from: 20_000)
    #expect(inProgress(newcomers) == 12 && inProgress(stays) == before)
  }

  // MARK: Channels

  @Test func `a request that anyone can forge evicts no channel in use, but that of the neighbour itself does`() {
    let bench = Bench(20, encryption: .required)
    let identities = Crowd.identities(Limits.channelsMax, below: bench)
    let crowds = [
      Crowd(bench, Array(identities[..<32]), behind: 1), Crowd(bench, Array(identities[32...]), behind: 2),
    ]
    for crowd in crowds {
      for member in crowd.members { crowd.open([member]) }
    }
    let far = Crowd(bench, Crowd.identities(5, below: bench, isBelow: false), behind: 30)
    for (number, member) in far.members.enumerated() {
      bench.receive(request(bench, from: member.identity.id, number), on: far.slot)
    }
    for crowd in crowds { crowd.settle() }
    #expect(crowds.allSatisfy { $0.members.allSatisfy { $0.seal.isOpen } })
    bench.receive(request(bench, from: bench.id(30), 99), on: far.slot)
    #expect(bench.node.associations.association(with: bench.id(30)) != nil)
  }

  @Test func `a distant node's request evicts a channel of a link that holds more than half of them`() {
    let bench = Bench(20, encryption: .required)
    _ = channels(bench)
    let far = Crowd(bench, Crowd.identities(1, below: bench, isBelow: false), behind: 30)
    let peer = far.members[0].identity.id
    bench.receive(request(bench, from: peer, 0), on: far.slot)
    #expect(bench.node.associations.association(with: peer) != nil)
  }

  @Test func `unencrypted frames in many names are charged to their link, and replies create no channel`() {
    let bench = Bench(20)
    let identities = Crowd.identities(120, below: bench)
    let parts = [Array(identities[..<60]), Array(identities[60...])]
    for (number, part) in parts.enumerated() {
      bench.receivePaced(
        crowdTopologies(bench, part, behind: number + 1), on: bench.neighbour(number + 1))
    }
    let attacker = bench.neighbour(3)
    var number = 0
    func send(_ type: FrameType, _ payload: [UInt8]) {
      for identity in identities {
        number += 1
        bench.receive(
          frame(
            type, ttl: 9, priority: .interactive, to: bench.identity.id, from: identity.id,
            identifier: UInt64(20_000 + number), payload), on: attacker)
      }
    }
    let epochs: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]
    send(.acknowledgement, epochs + [UInt8](repeating: 0, count: 24))
    send(.reset, epochs)
    #expect(bench.node.associations.all.isEmpty && bench.refusals(.tooMany) == 0)
    let segment = epochs + [0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
    for _ in 0..<3 { send(.segment, segment + [0, 0, 0, 0, 3]) }
    #expect(bench.node.associations.all.count == Limits.channelsMax)
    #expect(bench.refusals(.tooMany) > 0)
  }

  private func channels(_ bench: Bench, behind person: Int = 1) -> Crowd {
    let crowd = Crowd(bench, Crowd.identities(Limits.channelsMax, below: bench), behind: person)
    for member in crowd.members { crowd.open([member]) }
    #expect(crowd.members.count { $0.seal.isOpen } == Limits.channelsMax)
    return crowd
  }

  @Test func `proven peers behind one link are evicted for a neighbour and notified`() {
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

  @Test func `the channel that was unused for the longest time is evicted first`() {
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

  @Test func `an evicted peer returns when a channel of its link is idle`() {
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

  @Test func `a pinned peer gets a slot behind the same link, and keeps it while messages wait`() throws {
    let trust = Acquaintances()
    let bench = Bench(highest, trust: trust, encryption: .required)
    let crowd = channels(bench)
    let pinned = crowd.members[5]
    trust.known = [pinned.identity.id]
    let text: [UInt8] = [1]
    _ = try bench.node.send(kind: 3, text.span.bytes, to: pinned.identity.id, lane: .bulk, now: bench.now)
    bench.drain()
    // Every other channel is used later than the channel of the pinned peer.
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

  @Test func `undelivered messages of a pinned peer are kept if another channel can be evicted`() throws {
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

  @Test func `the results of sends to an evicted peer are reported`() throws {
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

  @Test func `unencrypted frames in many names leave slots for a neighbour`() throws {
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
    // In clear, the bench's first answer says that the bench has a later channel epoch. The partner adopts that epoch
    // and sends again.
    _ = try honest.takeSent()
    try honest.say("hello")
    bench.receive(honest.frames(), on: honest.slot)
    #expect(read(bench) == ["hello"])
  }

  @Test func `a slot moves to the link that brings the peer's frames, and back to the route`() {
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

  @Test func `a proven peer is remembered until other peers of its link need the slot`() {
    var peers = ProvenPeers()
    for number in 1...64 as ClosedRange<UInt64> { peers.note(NodeID(high: number, low: 0), on: number <= 4 ? 1 : 2) }
    for number in 65...100 as ClosedRange<UInt64> { peers.note(NodeID(high: number, low: 0), on: 2) }
    let known = (1...100).filter { peers.contains(NodeID(high: UInt64($0), low: 0)) }
    #expect(known == [1, 2, 3, 4] + (41...100))
    peers.linkClosed(1)
    #expect(peers.contains(NodeID(high: 1, low: 0)))
  }
}
