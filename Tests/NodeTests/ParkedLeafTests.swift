import Frame
import Link
import Primitives
import TestSupport
import Testing

@testable import Node

@Test func `a leaf with two relays leaves the one that has parked it`() throws {
  let (box, slot) = try ParkingBox.leaf()
  box.hear(2, relays: true)
  box.link(2, capabilities: .relay)
  box.bench.receive(box.bench.topology(1, [20, 2], relays: true, sequence: 2), on: slot)
  box.bench.receive(box.bench.topology(2, [20, 1], relays: true, sequence: 2), on: box.slots[2] ?? 0)
  box.bench.receive(box.goodbye(of: 1), on: slot)
  box.bench.handle(.linkClosed(slot))
  box.pass(.seconds(7))
  #expect(box.state(1) == .parked && box.dials == [])
  box.pass(.seconds(2))
  #expect(box.state(1) == .idle && box.bench.node.route(to: box.bench.id(1)) != nil)
  // The relay is not dialled again while the other relay has a route to it.
  box.pass(.seconds(30))
  #expect(box.dials == [])
}

@Test func `a leaf keeps a relay that has parked it if no other node reaches that relay`() throws {
  let (box, slot) = try ParkingBox.leaf()
  box.hear(2, relays: true)
  box.link(2, capabilities: .relay)
  box.bench.receive(box.goodbye(of: 1), on: slot)
  box.bench.handle(.linkClosed(slot))
  box.pass(.seconds(30))
  #expect(box.state(1) == .parked)
}

@Test func `a leaf that agreed to be parked dials its relay when it has data to send`() throws {
  let (box, slot) = try ParkingBox.leaf()
  box.bench.receive(box.goodbye(of: 1), on: slot)
  #expect(box.bench.takeCommands().contains(.close(slot)))
  let goodbye = try Goodbye(bytes: #require(box.bench.sent(.goodbye, on: slot).last).payload)
  #expect(goodbye.reason == .parked)
  box.bench.handle(.linkClosed(slot))
  #expect(box.state(1) == .parked && box.dials == [])
  try box.send(to: 1)
  box.pass(.milliseconds(500))
  #expect(box.dials == [1])
}

@Test func `a leaf whose parked link is up again begins a session without the usual pause`() throws {
  let (box, slot) = try leafWithPeer()
  let bench = box.bench
  try box.send(to: 30)
  #expect(!bench.sent(.handshake, on: slot).isEmpty)
  // Nobody answers. The fourth attempt ends after 51.5 s, and a pause of 4 s follows.
  box.pass(.seconds(52))
  _ = bench.sent(on: slot)
  bench.receive(box.goodbye(of: 1), on: slot)
  bench.handle(.linkClosed(slot))
  box.pass(.seconds(1))
  box.link(1, capabilities: .relay, isOwn: true)
  #expect(!bench.sent(.handshake, on: slot).isEmpty)
}

/// A leaf behind relay 1, which discovery finds, with peer 30 beyond the relay.
private func leafWithPeer() throws -> (box: ParkingBox, slot: Int) {
  let (box, slot) = try ParkingBox.leaf(encryption: .optional)
  let bench = box.bench
  bench.receive(
    bench.topology(1, [20, 30], sequence: 2) + bench.topology(30, [1], encryption: .optional) + bench.profile(1)
      + bench.profile(30), on: slot)
  return (box, slot)
}

@Test(arguments: [true, false])
func `a handshake of a leaf does not fail while its link is parked`(_ beginsBefore: Bool) throws {
  let (box, slot) = try leafWithPeer()
  if beginsBefore { try box.send(to: 30) }
  box.bench.receive(box.goodbye(of: 1), on: slot)
  box.bench.handle(.linkClosed(slot))
  if !beginsBefore { try box.send(to: 30) }
  box.pass(.seconds(14))
  #expect(box.state(1) == .parked && box.bench.node.counters.sessionsFailed == 0)
  box.link(1, capabilities: .relay, isOwn: true)
  // Nobody answers. Half a second of the twelve had passed when the link was parked.
  box.pass(.seconds(11))
  #expect(box.bench.node.counters.sessionsFailed == 0)
  box.pass(.seconds(2))
  #expect(box.bench.node.counters.sessionsFailed == 1)
}

@Test func `a handshake of a parked leaf fails when the leaf loses its relay`() throws {
  let (box, slot) = try leafWithPeer()
  box.bench.receive(box.goodbye(of: 1), on: slot)
  box.bench.handle(.linkClosed(slot))
  try box.send(to: 30)
  box.bench.handle(.candidateLost(1))
  box.pass(.seconds(31))
  #expect(box.state(1) == .idle && box.bench.node.counters.sessionsFailed == 0)
  box.pass(.seconds(13))
  #expect(box.bench.node.counters.sessionsFailed == 1)
}

@Test func `a parked leaf that waits for a handshake message dials its relay`() throws {
  let (box, slot) = try leafWithPeer()
  try box.send(to: 30)
  #expect(!box.bench.sent(.handshake, on: slot).isEmpty)
  box.bench.receive(box.goodbye(of: 1), on: slot)
  box.bench.handle(.linkClosed(slot))
  _ = box.dials
  box.pass(.seconds(1))
  #expect(box.dials == [1])
}

/// A leaf whose relay has parked it two seconds after losing peer 3.
private func parkedAfterLoss() throws -> (box: ParkingBox, slot: Int) {
  let (box, slot) = try ParkingBox.leaf()
  let bench = box.bench
  bench.receive(
    bench.topology(1, [20, 3], sequence: 2) + bench.topology(3, [1]) + bench.profile(1) + bench.profile(3), on: slot)
  #expect(bench.node.peer(bench.id(3)) != nil)
  bench.receive(bench.topology(1, [20], sequence: 3), on: slot)
  box.pass(.seconds(2))
  bench.receive(box.goodbye(of: 1), on: slot)
  bench.handle(.linkClosed(slot))
  return (box, slot)
}

@Test func `a parked leaf keeps a peer without a route for twenty seconds`() throws {
  let (box, _) = try parkedAfterLoss()
  box.pass(.seconds(17))
  #expect(box.bench.node.peer(box.bench.id(3)) != nil)
  box.pass(.seconds(2))
  #expect(box.bench.node.peer(box.bench.id(3)) == nil)
}

@Test func `a leaf whose parked link is up again waits for news of a lost peer`() throws {
  let (box, slot) = try parkedAfterLoss()
  let bench = box.bench
  box.pass(.seconds(15))
  box.link(1, capabilities: .relay, isOwn: true)
  box.pass(.milliseconds(2_500))
  #expect(bench.node.peer(bench.id(3)) != nil)
  bench.receive(bench.topology(1, [20, 3], sequence: 5), on: slot)
  box.pass(.seconds(10))
  #expect(bench.node.peer(bench.id(3)) != nil)
}

@Test func `a leaf waits for news of a lost peer once`() throws {
  let (box, slot) = try parkedAfterLoss()
  for _ in 0..<3 {
    box.pass(.seconds(8))
    box.link(1, capabilities: .relay, isOwn: true)
    box.pass(.seconds(1))
    box.bench.receive(box.goodbye(of: 1), on: slot)
    box.bench.handle(.linkClosed(slot))
  }
  box.pass(.seconds(3))
  #expect(box.bench.node.peer(box.bench.id(3)) == nil)
}

@Test func `a parked leaf waits for the time in the goodbye, but for at most ten seconds`() throws {
  let (box, slot) = try ParkingBox.leaf()
  box.bench.receive(box.goodbye(of: 1, retryAfterSeconds: 60), on: slot)
  box.bench.handle(.linkClosed(slot))
  _ = box.bench.takeCommands()
  try box.send(to: 1)
  box.pass(.milliseconds(9_500))
  #expect(box.dials == [])
  box.pass(.seconds(1))
  #expect(box.dials == [1])
}

@Test func `a parked leaf dials its relay to request what it refused before it was parked`() throws {
  let (box, slot) = try ParkingBox.leaf()
  // More renewals than are accepted in one second.
  for sequence in UInt64(2)...8 {
    box.bench.receive(box.bench.profile(1, name: "name\(sequence)", sequence: sequence), on: slot)
  }
  box.bench.receive(box.goodbye(of: 1), on: slot)
  _ = box.bench.takeCommands()
  box.bench.handle(.linkClosed(slot))
  #expect(box.state(1) == .parked && box.dials == [])
  box.pass(.milliseconds(1_500))
  #expect(box.dials == [1])
  box.link(1, capabilities: .relay, isOwn: true)
  box.pass(.seconds(1))
  #expect(box.bench.sent(.request, on: slot).count == 1)
}
