import Frame
import Link
import Primitives
import TestSupport
import Testing

@testable import Node

@Test func `a relay parks the idlest leaf when its last connection is used`() throws {
  let box = ParkingBox()
  for person in 1...3 { box.link(person) }
  box.pass(.seconds(3))
  #expect(box.parking == [])
  box.say(1, to: 2)
  box.link(4)
  box.pass(.milliseconds(1_500))
  #expect(box.parking == [3])
  let goodbye = try Goodbye(bytes: #require(box.bench.sent(.goodbye, on: box.slots[3] ?? 0).last).payload)
  #expect(goodbye == Goodbye(reason: .parked, retryAfterSeconds: 0))
}

@Test func `an active leaf keeps its connection for three seconds if no leaf is idle`() {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  for _ in 0..<5 {
    for person in 1...4 { box.say(person, to: person % 4 + 1) }
    box.pass(.milliseconds(500))
  }
  #expect(box.parking == [])
  for _ in 0..<4 {
    for person in 1...4 { box.say(person, to: person % 4 + 1) }
    box.pass(.milliseconds(500))
  }
  #expect(box.parking.count == 1)
  let sent = box.bench.sent(.goodbye, on: box.slots[box.parking.first ?? 0] ?? 0)
  #expect(sent.map(\.payload) == [encoded { Goodbye(reason: .parked, retryAfterSeconds: 3).write(to: &$0) }])
}

@Test func `a leaf that had its turn is asked to wait for the turns of all waiting leaves`() throws {
  let box = ParkingBox(slots: 3)
  for person in 1...6 {
    box.hear(person)
    box.link(person)
    box.settle()
  }
  let present = (1...6).filter { box.state($0) == .up }
  let absent = (1...6).filter { !present.contains($0) }
  for turn in 0..<8 {
    for person in present where box.state(person) == .up { box.say(person, to: absent[0]) }
    if turn == 0 { for person in absent { try box.send(to: person) } }
    box.pass(.milliseconds(500))
  }
  let parked = try #require(present.first { box.state($0) == .parking })
  let goodbye = try Goodbye(bytes: #require(box.bench.sent(.goodbye, on: box.slots[parked] ?? 0).last).payload)
  // The waiting leaves take turns of 3 s at two connections. The third connection is reserved for inbound links.
  #expect(goodbye == Goodbye(reason: .parked, retryAfterSeconds: UInt16((3 * absent.count + 1) / 2)))
  #expect(absent.count > 2)
}

@Test func `a parked leaf whose dial failed for lack of a connection keeps its turn`() throws {
  let (box, parked) = ParkingBox.full()
  try box.send(to: parked)
  box.link(5)
  for _ in 0..<4 {
    box.pass(.milliseconds(1_500))
    let idle = box.parking
    for person in idle { box.agree(person) }
    #expect(box.dials.contains(UInt32(parked)))
    // Each leaf that was parked takes the free connection at once, so the relay's dial fails.
    for person in idle { box.link(person) }
    #expect(box.bench.node.bluetoothSlots.taken == 4)
    box.bench.handle(.dialFailed(UInt32(parked)))
  }
}

@Test func `a leaf that has just begun to send keeps its connection before one that becomes idle`() throws {
  let box = ParkingBox(slots: 3)
  for person in 1...3 {
    box.hear(person)
    box.link(person)
  }
  box.settle()
  let parked = try #require(box.parked.first)
  let speaker = box.other(than: parked)
  let third = 6 - parked - speaker
  box.say(speaker, to: parked)
  box.pass(.milliseconds(500))
  #expect(box.parking == [third])
  box.agree(third)
  box.pass(.milliseconds(500))
  #expect(box.dials == [UInt32(parked)])
  // The speaker waits for an answer, so it keeps its connection. The third leaf only came for advertisements.
  box.link(third)
  box.pass(.milliseconds(1_500))
  #expect(box.parking == [third])
}

@Test func `a parked leaf with frames from a connected neighbour has priority for ten seconds`() throws {
  let box = ParkingBox()
  for person in 1...6 {
    box.hear(person)
    box.link(person)
    box.settle()
  }
  let present = (1...6).filter { box.state($0) == .up }
  let absent = (1...6).filter { box.state($0) == .parked }
  try #require(!present.isEmpty && !absent.isEmpty)
  let (sender, first) = (present[0], absent[0])
  func call(_ person: Int) -> Connector.Standing {
    box.bench.node.standing(box.bench.id(person).high, .bluetoothLE)
  }
  box.say(sender, to: first)
  #expect(call(first) == .called(.answers))
  // The frames for the parked leaf still wait, but their sender is no longer connected.
  box.bench.receive(box.goodbye(of: sender), on: box.slots[sender] ?? 0)
  box.bench.handle(.linkClosed(box.slots[sender] ?? 0))
  box.bench.drain()
  #expect(call(first) == .called(.frames))
  box.pass(.seconds(10))
  #expect(call(first) == .called(.meeting))
}

@Test(arguments: [(4, Connector.Call.answers), (5, .meeting)])
func `a leaf with frames from a new communication partner has the highest priority`(
  _ sender: Int, _ call: Connector.Call
) throws {
  let box = ParkingBox()
  for person in 1...6 {
    box.hear(person)
    box.link(person)
    box.settle()
  }
  // Leaf 1 came back while leaf 4 was here, and was parked again before leaf 5 came.
  try #require(box.state(1) == .parked && box.state(4) == .up && box.state(5) == .up)
  box.say(sender, to: 1)
  #expect(box.bench.node.standing(box.bench.id(1).high, .bluetoothLE) == .called(call))
}

@Test func `the turn of a leaf with a frame every two seconds begins with the first frame`() {
  var turn = Parking.Turn()
  for second in [10, 12, 14, 16] as [UInt64] { turn.talk(.zero + .seconds(second)) }
  #expect(turn.turnAt == .zero + .seconds(10))
  turn.talk(.zero + .seconds(20))
  #expect(turn.turnAt == .zero + .seconds(20))
}

@Test func `a new leaf in the slot of another one has no communication partners`() {
  var parking = Parking()
  parking.resumed(1, connected: 0b100, waiting: 0)
  parking.forget(2)
  #expect(parking.turns[1].met == 0)
}

@Test func `a leaf that has met all waiting partners starts a new round`() {
  var parking = Parking()
  parking.resumed(1, connected: 0b1100, waiting: 0)
  #expect(parking.turns[1].met == 0b1100 && parking.turns[2].met == 0b10)
  parking.resumed(1, connected: 0b10000, waiting: 0b10000)
  #expect(parking.turns[1].met == 0b11100)
  parking.resumed(1, connected: 0b100, waiting: 0b100)
  #expect(parking.turns[1].met == 0b100)
}

@Test func `a leaf that may not be parked keeps its connection`() {
  let box = ParkingBox()
  for person in 1...4 { box.link(person, capabilities: .none) }
  box.pass(.seconds(10))
  #expect(box.parking == [])
}

@Test func `a parked leaf remains a peer, and no topology is advertised`() {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.pass(.seconds(2))
  let before = box.bench.signCount
  let parked = box.parking
  for person in parked { box.agree(person) }
  box.pass(.seconds(10))
  #expect(parked.count == 1 && parked.allSatisfy { box.state($0) == .parked })
  #expect(box.bench.node.peers.count == 4 && box.bench.signCount == before)
}

@Test func `a frame for a parked leaf waits and causes a dial`() throws {
  let (box, leaf) = ParkingBox.full()
  box.say(box.other(than: leaf), to: leaf)
  box.pass(.milliseconds(500))
  // The last connection is reserved for inbound links, so the relay must park another leaf before dialling.
  #expect(box.dials == [] && box.parking.count == 1)
  for person in box.parking { box.agree(person) }
  box.pass(.milliseconds(500))
  #expect(box.dials == [UInt32(leaf)])
  box.link(leaf, isOwn: true)
  let slot = try #require(box.slots[leaf])
  #expect(box.bench.sent(.segment, on: slot).map(\.payload) == [[1, 2, 3, 4, 5]])
  #expect(box.state(leaf) == .up)
}

@Test func `a parked leaf that dials gets its own slot and the waiting frames`() throws {
  let (box, leaf) = ParkingBox.full()
  let slot = try #require(box.slots[leaf])
  box.say(box.other(than: leaf), to: leaf)
  box.link(leaf)
  #expect(box.slots[leaf] == slot && box.state(leaf) == .up)
  let sent = box.bench.sent(on: slot)
  #expect(sent.first?.header.knownType == .hello)
  #expect(sent.contains { $0.header.knownType == .segment })
}

@Test func `news wait a second, and renewals wait until the next visit`() {
  let (box, leaf) = ParkingBox.full()
  let other = box.other(than: leaf)
  // A renewed profile with the same content is no update for the parked leaf.
  box.bench.receive(box.bench.profile(other, sequence: 2), on: box.slots[other] ?? 0)
  box.pass(.seconds(30))
  #expect(box.dials == [] && box.parking == [])
  box.bench.receive(box.bench.profile(other, name: "other", sequence: 3), on: box.slots[other] ?? 0)
  box.pass(.milliseconds(500))
  #expect(box.parking == [])
  box.pass(.seconds(1))
  #expect(box.parking.count == 1)
}

@Test func `another route to a node is no news for a parked leaf`() {
  let (box, leaf) = ParkingBox.full()
  let other = box.other(than: leaf)
  let last = box.slots.keys.filter { $0 != leaf && $0 != other }.max() ?? 0
  let slot = box.slots[other] ?? 0
  box.bench.receive(box.bench.topology(other, [20, last], relays: false, sequence: 2), on: slot)
  box.pass(.seconds(30))
  #expect(box.dials == [] && box.parking == [])
  // A new node behind the neighbour is an update for the parked leaf.
  box.bench.receive(box.bench.topology(other, [20, 9], relays: true, sequence: 3), on: slot)
  box.bench.receive(box.bench.topology(9, [other], relays: false), on: slot)
  box.bench.receive(box.bench.profile(9), on: slot)
  box.pass(.milliseconds(1_500))
  #expect(box.parking.count == 1)
}

@Test func `the loss of a node is news for a parked leaf`() throws {
  let (box, leaf) = ParkingBox.full()
  let other = box.other(than: leaf)
  let slot = box.slots[other] ?? 0
  box.bench.receive(box.bench.topology(other, [20, 9], relays: true, sequence: 2), on: slot)
  box.bench.receive(box.bench.topology(9, [other], relays: false), on: slot)
  box.bench.receive(box.bench.profile(9), on: slot)
  box.settle()
  box.pass(.seconds(10))
  #expect(box.parked != [] && box.parking == [] && box.dials == [] && box.bench.node.peers.count == 5)
  let teller = try #require(box.slots.first { box.state($0.key) == .up })
  box.bench.receive(box.bench.topology(other, [20], relays: true, sequence: 3), on: teller.value)
  box.pass(.milliseconds(1_500))
  #expect(box.parking != [] || box.dials != [])
}

@Test func `a parked leaf that cannot be reached is lost half a minute after the first dial`() {
  let (box, leaf) = ParkingBox.full()
  box.pass(.seconds(120))
  #expect(box.state(leaf) == .parked && box.dials == [])
  var dials = 0
  var called = box.bench.now
  for _ in 0..<200 where box.state(leaf) == .parked {
    for person in box.parking { box.agree(person) }
    for handle in box.dials {
      if dials == 0 { called = box.bench.now }
      dials += 1
      box.bench.handle(.dialFailed(handle))
    }
    box.pass(.milliseconds(500))
  }
  #expect(dials >= 3 && box.state(leaf) == .idle && box.bench.now - called <= .seconds(31))
  box.pass(.seconds(4))
  #expect(!box.bench.node.peers.contains { $0.id == box.bench.id(leaf) })
}

@Test func `a parked leaf lost by discovery is lost half a minute later if it does not dial`() {
  let (box, leaf) = ParkingBox.full()
  box.bench.handle(.candidateLost(UInt32(leaf)))
  box.pass(.seconds(29))
  #expect(box.state(leaf) == .parked)
  box.pass(.seconds(2))
  #expect(box.state(leaf) == .idle)
}

@Test func `a parked leaf that discovery never found is kept`() {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.settle()
  let leaf = box.parked.first ?? 1
  box.pass(.seconds(250))
  #expect(box.parked == [leaf])
}

@Test func `parked leaves are visited one at a time`() {
  let box = ParkingBox(slots: 3)
  for person in 1...6 {
    box.hear(person)
    box.link(person)
    box.settle()
  }
  #expect(box.parked.count == 5)
  var calledTogether = 0
  var visited: Set<Int> = []
  for _ in 0..<500 {
    calledTogether = max(calledTogether, box.parked.count { box.bench.node.parking.isCalled(box.slots[$0] ?? 0) })
    for person in box.parking { box.agree(person) }
    for handle in box.dials {
      visited.insert(Int(handle))
      box.link(Int(handle), isOwn: true)
    }
    box.pass(.milliseconds(500))
  }
  #expect(calledTogether == 1 && visited.count >= 4)
}

@Test func `after a lost goodbye the returning leaf receives all advertisements again`() throws {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.pass(.seconds(2))
  let leaf = try #require(box.parking.first)
  // The stream ends before the leaf has confirmed that its link is parked.
  box.bench.handle(.linkClosed(box.slots[leaf] ?? 0))
  #expect(box.state(leaf) == .parked)
  _ = box.bench.sent(on: box.slots[leaf] ?? 0)
  box.link(leaf)
  box.pass(.milliseconds(500))
  let sent = box.bench.sent(on: box.slots[leaf] ?? 0)
  // The relay sends two advertisements of each other node. The relay also requests everything that the leaf may have
  // advertised.
  #expect(sent.count { $0.header.knownType == .advertisement } >= 8)
  #expect(sent.contains { $0.header.knownType == .request })
}

@Test func `a restarted leaf receives all advertisements`() {
  let (box, leaf) = ParkingBox.full()
  let slot = box.bench.open(leaf, .bluetoothLE)
  box.bench.hello(leaf, on: slot, epoch: 2)
  box.pass(.milliseconds(500))
  #expect(box.bench.sent(.advertisement, on: slot).count >= 7)
}

@Test func `a parked leaf whose advertisement has a later epoch is lost`() {
  let (box, leaf) = ParkingBox.full()
  let other = box.other(than: leaf)
  box.bench.receive(box.bench.profile(leaf, epoch: 1, sequence: 2), on: box.slots[other] ?? 0)
  box.pass(.milliseconds(500))
  #expect(box.state(leaf) == .parked)
  box.bench.receive(box.bench.profile(leaf, epoch: 2, sequence: 1), on: box.slots[other] ?? 0)
  box.pass(.milliseconds(500))
  #expect(box.state(leaf) == .idle)
}

@Test func `a parked leaf that no longer lists the relay is lost`() {
  let (box, leaf) = ParkingBox.full()
  let other = box.slots[box.other(than: leaf)] ?? 0
  box.bench.receive(box.bench.topology(leaf, [20], relays: false, sequence: 2), on: other)
  box.pass(.milliseconds(500))
  #expect(box.state(leaf) == .parked)
  box.bench.receive(box.bench.topology(leaf, [5], relays: false, sequence: 3), on: other)
  box.pass(.milliseconds(500))
  #expect(box.state(leaf) == .idle)
}

@Test func `news wait while other nodes connect, but for at most five seconds`() {
  let (box, leaf) = ParkingBox.full()
  let other = box.other(than: leaf)
  box.bench.receive(box.bench.profile(other, name: "other", sequence: 3), on: box.slots[other] ?? 0)
  var calledAfter = 0
  for step in 0..<20 where !box.bench.node.parking.isCalled(box.slots[leaf] ?? 0) {
    _ = box.bench.open(30 + step % 4, .bluetoothLE)
    box.pass(.milliseconds(500))
    calledAfter = (step + 1) * 500
  }
  #expect(calledAfter == 5_000)
}

@Test func `a relay is never parked`() throws {
  let box = ParkingBox()
  box.link(1, capabilities: .relay)
  let slot = try #require(box.slots[1])
  box.bench.receive(box.goodbye(of: 1), on: slot)
  #expect(box.state(1) == .closed(.parked))
}

@Test func `a link whose parking is not confirmed in time is lost`() throws {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.pass(.seconds(2))
  let leaf = try #require(box.parking.first)
  box.pass(.seconds(6))
  #expect(box.state(leaf) == .closed(.timedOut))
}

@Test func `a parked link whose stream ends before its hello stays parked`() throws {
  let (box, leaf) = ParkingBox.full()
  let slot = box.bench.open(leaf, .bluetoothLE)
  #expect(slot == box.slots[leaf] && box.state(leaf) == .opening)
  box.bench.handle(.linkClosed(slot))
  #expect(box.state(leaf) == .parked && box.bench.node.route(to: box.bench.id(leaf)) != nil)
  box.link(leaf)
  #expect(box.state(leaf) == .up && box.slots[leaf] == slot)
}

@Test func `a parked link whose new stream brings no hello stays parked`() throws {
  let (box, leaf) = ParkingBox.full()
  let slot = box.bench.open(leaf, .bluetoothLE)
  _ = box.bench.takeCommands()
  box.pass(.seconds(6))
  let closes = box.bench.takeCommands().count { if case .close(slot) = $0 { true } else { false } }
  #expect(closes == 1 && box.state(leaf) == .parking)
  box.bench.handle(.linkClosed(slot))
  #expect(box.state(leaf) == .parked && box.bench.node.route(to: box.bench.id(leaf)) != nil)
}

@Test func `streams that end early do not keep a parked link for ever`() throws {
  let (box, leaf) = ParkingBox.full()
  for _ in 0..<40 where box.state(leaf) == .parked {
    box.bench.handle(.linkClosed(box.bench.open(leaf, .bluetoothLE)))
    box.pass(.seconds(10))
  }
  #expect(box.state(leaf) == .idle && box.bench.node.route(to: box.bench.id(leaf)) == nil)
}

@Test func `a link about to be parked is closed when another one comes up`() throws {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.pass(.seconds(2))
  let leaf = try #require(box.parking.first)
  let first = box.slots[leaf] ?? 0
  box.link(leaf)
  #expect(box.bench.node.link(first).state == .closed(.duplicate))
  #expect(box.state(leaf) == .up && box.bench.node.carrier(to: box.bench.id(leaf))?.slot == box.slots[leaf])
}

@Test func `a link that was parked while another one began is closed`() throws {
  let box = ParkingBox()
  for person in 1...4 { box.link(person) }
  box.pass(.seconds(2))
  let leaf = try #require(box.parking.first)
  let second = box.bench.open(leaf, .bluetoothLE)
  box.agree(leaf)
  #expect(box.state(leaf) == .parked)
  let hello = helloPayload(box.bench.id(leaf), capabilities: .parks)
  box.bench.receive(frame(.hello, from: box.bench.id(leaf), hello), on: second)
  #expect(box.bench.node.link(second).state == .up && box.state(leaf) == .idle)
  #expect(box.bench.node.route(to: box.bench.id(leaf)) != nil)
}

@Test func `a leaf with a route over another bearer is not dialled over Bluetooth`() {
  let box = ParkingBox(relays: false)
  box.hear(1, relays: true)
  box.link(1, capabilities: .relay, isOwn: true)
  box.link(2, .ethernet)
  box.hear(2)
  _ = box.dials
  box.pass(.seconds(60))
  #expect(box.dials == [])
}
