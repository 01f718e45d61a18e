import Channel
import Frame
import Node
import Primitives
import TestSupport
import Testing

@Test func `a message of a peer is delivered once and acknowledged`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try partner.say("hello")
  let frames = partner.frames()
  bench.receive(frames, on: partner.slot)
  #expect(read(bench) == ["hello"] && read(bench) == [])
  bench.pass(.milliseconds(100))
  _ = try partner.takeSent()
  #expect(partner.channel.nextCompletion()?.outcome == .delivered)
}

@Test func `a message to a peer is sent over its route and completes once`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try send("hello", bench, to: 1)
  let sent = try partner.takeSent().filter { $0.header.isRouted }
  #expect(sent.map(\.header.knownType) == [.segment] && sent.first?.header.destination == bench.id(1))
  #expect(sent.first?.header.source == bench.identity.id && sent.first?.header.ttl == Limits.hopsMax)
  #expect(partner.channel.nextMessage()?.bytes == [UInt8]("hello".utf8))
  #expect(bench.nextCompletion() == nil)
  bench.now = bench.now + .milliseconds(50)
  partner.channel.handleTimeout(now: bench.now)
  bench.receive(partner.frames(), on: partner.slot)
  #expect(bench.nextCompletion()?.completion.outcome == .delivered)
  #expect(bench.nextCompletion() == nil)
}

@Test func `a message to a peer without a route is refused`() {
  let bench = Bench()
  #expect(throws: AssociationError.unknownPeer) { try send("hello", bench, to: 5) }
  #expect(!bench.node.canSend(byteCount: 1, to: bench.id(5), lane: .bulk))
}

@Test func `a message to a peer whose link was just lost waits for the next one`() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  bench.handle(.linkClosed(first.slot))
  #expect(bench.node.canSend(byteCount: 5, to: bench.id(1), lane: .interactive))
  try send("hello", bench, to: 1)
  let again = bench.open(1)
  bench.hello(1, on: again)
  #expect(bench.sent(.segment, on: again).count == 1)
}

@Test func `a message to a lost peer is refused`() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  bench.handle(.linkClosed(first.slot))
  bench.pass(.seconds(3))
  #expect(throws: AssociationError.unknownPeer) { try send("hello", bench, to: 1) }
}

@Test func `a message for a former epoch is answered with a reset`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1, meaning: 6)
  try partner.say("hello")
  bench.receive(partner.frames(), on: partner.slot)
  #expect(read(bench) == [] && bench.refusals(.stale) == 1)
  let sent = try partner.takeSent()
  #expect(sent.map(\.header.knownType) == [.reset])
  #expect(partner.channel.remoteEpoch == 7)
  #expect(partner.channel.nextCompletion()?.outcome == .failed(.peerRestarted))
}

@Test func `a message of an announced length above the limit causes a reset, and the channel continues`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try partner.say("hello")
  var frames = partner.frames()
  frames.replaceSubrange(48 + 32..<48 + 36, with: [0, 1, 0, 1])
  bench.receive(frames, on: partner.slot)
  #expect(bench.refusals(.malformed) == 1)
  let sent = try partner.takeSent()
  #expect(sent.map(\.header.knownType) == [.reset])
  #expect(partner.channel.remoteEpoch == 8)
  #expect(partner.channel.nextCompletion()?.outcome == .failed(.peerRestarted))
  try partner.say("hello again")
  bench.receive(partner.frames(), on: partner.slot)
  #expect(read(bench) == ["hello again"])
}

@Test func `a message of a later epoch is delivered before the advertisement of that epoch`() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  var later = Partner(bench, 1, on: first.slot)
  try send("to the first life", bench, to: 1)
  // A `Partner` has a fixed epoch. To play the restarted partner, the test writes a greater epoch into the bytes of a
  // segment.
  try later.say("hello")
  let bytes = later.frames().with { $0.replaceSubrange(48 + 8..<48 + 16, with: [0, 0, 0, 0, 0, 0, 0, 2]) }
  bench.receive(bytes, on: first.slot)
  #expect(read(bench) == ["hello"])
  #expect(bench.nextCompletion()?.completion.outcome == .failed(.peerRestarted))
}

@Test func `a link that accepts no bytes is given two frames, and the rest waits`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.carriesOutTransmit = false
  for _ in 0..<4 { try send(String(repeating: "x", count: 60_000), bench, to: 1, .bulk) }
  #expect(bench.node.link(partner.slot).queuedByteCount(.bulk) <= 3 * Limits.frameBytesMax)
  #expect(bench.pass(.seconds(2)) < 50)
}

@Test func `a channel with unread messages is not evicted`() throws {
  // Peers behind neighbour 1 take all channels, each with a message that nobody reads. After that, the link to
  // neighbour 1 closes, and a new peer sends a message.
  let bench = Bench(20)
  let crowd = Array(0..<Limits.channelsMax).map { Identity(UInt64(1000 + $0)) }
  let slot = bench.neighbour(1)
  bench.receivePaced(crowdTopologies(bench, crowd), on: slot)
  for identity in crowd {
    let channel = Channel(localEpoch: 1, remoteEpoch: 7)
    channel.routeChanged(pathMTU: 16_640, now: bench.now)
    _ = try channel.send(kind: 3, [UInt8]("unread".utf8).span.bytes, lane: .interactive, now: bench.now)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_640, alignment: 16)
    defer { buffer.deallocate() }
    let payload = try #require(channel.nextFrame(into: buffer, now: bench.now))
    let bytes = [UInt8](buffer[..<payload.byteCount])
    bench.receive(
      frame(.segment, ttl: 9, priority: .interactive, to: bench.identity.id, from: identity.id, identifier: 1, bytes),
      on: slot)
  }
  bench.handle(.linkClosed(slot))
  var stranger = Partner(bench, 2)
  try stranger.say("me too")
  bench.receive(stranger.frames(), on: stranger.slot)
  #expect(read(bench).count { $0 == "unread" } == Limits.channelsMax)
}

@Test func `an unreliable message is one realtime frame and is delivered once`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  let bytes: [UInt8] = [1, 2, 3]
  let isSent = try bench.node.sendUnreliable(kind: 9, bytes.span.bytes, to: bench.id(1), now: bench.now)
  bench.drain()
  let sent = bench.sent(on: partner.slot).filter { $0.header.isRouted }
  #expect(isSent && sent.map(\.header.knownType) == [.datagram] && sent.first?.header.priority == .realtime)
  let payload = try #require(sent.first).payload
  try partner.channel.receiveDatagram(payload.span.bytes, now: bench.now)
  let got = try #require(partner.channel.nextDatagram())
  #expect(got.kind == 9 && got.bytes == bytes)
}

@Test func `a duplicate of an unreliable message is not delivered`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  let message: [UInt8] = [4, 5]
  var payload = [UInt8](repeating: 0, count: 16_640)
  let count = payload.withUnsafeMutableBytes {
    partner.channel.writeDatagram(kind: 9, message.span.bytes, into: $0)
  }
  for identifier: UInt64 in [1 << 32 | 77, 1 << 32 | 78] {
    bench.receive(
      frame(
        .datagram, ttl: 16, priority: .realtime, to: bench.identity.id, from: bench.id(1), identifier: identifier,
        [UInt8](payload[..<count])), on: partner.slot)
  }
  #expect(bench.refusals(.duplicate) == 1)
  let got = try #require(bench.nextDatagram())
  #expect(got.from == bench.id(1) && got.datagram.kind == 9 && got.datagram.bytes == message)
  #expect(bench.nextDatagram() == nil)
}

@Test func `a message is reported once and stays until it is taken`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try partner.say("first")
  try partner.say("second")
  bench.receive(partner.frames(), on: partner.slot)
  let waiting = try #require(bench.nextWaiting())
  #expect(waiting.from == bench.id(1) && waiting.pending.byteCount == 5 && bench.nextWaiting() == nil)
  bench.pass(.seconds(1))
  #expect(bench.nextWaiting() == nil)
  #expect(bench.node.takeMessage(from: bench.id(1), .interactive, now: bench.now)?.bytes == [UInt8]("first".utf8))
  #expect(bench.nextMessage()?.message.bytes == [UInt8]("second".utf8))
  #expect(bench.nextWaiting() == nil)
  #expect(bench.node.takeMessage(from: bench.id(1), .interactive, now: bench.now) == nil)
}

@Test func `a message of one lane is reported while one of the other lane waits`() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try partner.say("a file", .bulk)
  bench.receive(partner.frames(), on: partner.slot)
  #expect(bench.nextWaiting()?.pending.lane == .bulk)
  try partner.say("a word")
  bench.receive(partner.frames(), on: partner.slot)
  #expect(bench.nextWaiting()?.pending.lane == .interactive)
}

/// Links a neighbour for each number in `people`, and adds a peer behind each neighbour. Then stops draining the node,
/// and sends 60 000 bytes to each neighbour and to each peer. The two messages of a link exceed what its queue accepts
/// from this node at once. Returns the link slots.
private func busyLinks(_ bench: Bench, _ people: [Int]) throws -> [Int] {
  let slots = people.map { person in
    let slot = bench.neighbour(person)
    bench.receive(bench.topology(person, [20, 10 + person]) + bench.profile(person), on: slot)
    bench.receive(bench.topology(10 + person, [person]) + bench.profile(10 + person), on: slot)
    return slot
  }
  bench.drains = false
  let bytes = [UInt8](repeating: 1, count: 60_000)
  for peer in people + people.map({ 10 + $0 }) {
    _ = try bench.node.send(kind: 3, bytes.span.bytes, to: bench.id(peer), lane: .bulk, now: bench.now)
  }
  return slots
}

@Test func `the room of sent frames is refilled only when the outputs are drained`() throws {
  let bench = Bench()
  let slot = try busyLinks(bench, [1])[0]
  #expect(bench.node.nextOutput(now: bench.now) == .transmit(slot))
  let queued = bench.node.link(slot).queuedByteCount
  var buffer = [UInt8](repeating: 0, count: Limits.frameBytesMax)
  let taken = buffer.withUnsafeMutableBytes { bench.node.pop(slot, into: $0) }
  #expect(taken > 0 && bench.node.link(slot).queuedByteCount == queued - taken)
  #expect(bench.node.nextOutput(now: bench.now) == .transmit(slot))
  #expect(bench.node.link(slot).queuedByteCount == queued)
}

@Test func `every link is asked to send before one is asked again`() throws {
  let bench = Bench()
  let links = try busyLinks(bench, [1, 2])
  var slots: [Int] = []
  var buffer = [UInt8](repeating: 0, count: Limits.frameBytesMax)
  while slots.count < 4, case .transmit(let slot)? = bench.node.nextOutput(now: bench.now) {
    slots.append(slot)
    while buffer.withUnsafeMutableBytes({ bench.node.pop(slot, into: $0) }) > 0 {}
  }
  #expect(slots == links + links)
}

@Test func `a send that failed by a revocation is reported even if the revocation has ended`() throws {
  let trust = Revocation()
  let bench = Bench(trust: trust)
  let relay = bench.neighbour(2)
  bench.receive(bench.topology(2, [20, 1]) + bench.topology(1, [2]) + bench.profile(1), on: relay)
  bench.receive(bench.profile(2), on: relay)
  try send("hello", bench, to: 1)
  bench.drains = false
  trust.revoked = bench.id(1)
  bench.node.trustChanged(now: bench.now)
  // The peer restarts and is accepted again before the node reports that the message failed.
  trust.revoked = nil
  bench.receive(bench.topology(1, [2], epoch: 2), on: relay)
  bench.drains = true
  #expect(bench.nextCompletion()?.completion.outcome == .failed(.closed) && bench.nextCompletion() == nil)
}

@Test func `an unreliable message that is too long or has no route is refused`() {
  let bench = Bench()
  let partner = Partner(bench, 1)
  let longest = bench.node.datagramBytesMax(to: bench.id(1)) ?? 0
  #expect(longest == bench.node.link(partner.slot).payloadBytesMax - Datagram.headerBytes)
  let bytes = [UInt8](repeating: 0, count: longest + 1)
  #expect(throws: AssociationError.channel(.tooLong)) {
    try bench.node.sendUnreliable(kind: 9, bytes.span.bytes, to: bench.id(1), now: bench.now)
  }
  #expect(throws: AssociationError.unknownPeer) {
    try bench.node.sendUnreliable(kind: 9, bytes.span.bytes, to: bench.id(5), now: bench.now)
  }
  #expect(bench.node.datagramBytesMax(to: bench.id(5)) == nil)
}

/// The number of data bytes in each segment that the node has sent through `slot` since the last call.
private func segmentSizes(_ bench: Bench, on slot: Int) -> [Int] {
  bench.sent(.segment, on: slot).map { $0.payload.count - 32 }
}

@Test func `messages of one wake-up share a segment`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.drains = false
  for _ in 0..<100 { try send("0123456789", bench, to: 1) }
  bench.drains = true
  #expect(segmentSizes(bench, on: partner.slot) == [100 * 15])
}

@Test func `messages are combined while segments wait in the link's queue`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.carriesOutTransmit = false
  for _ in 0..<100 { try send("0123456789", bench, to: 1) }
  #expect(segmentSizes(bench, on: partner.slot) == [15, 99 * 15])
}

@Test func `a segment of maximum length does not wait for the link's queue`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.carriesOutTransmit = false
  try send("0123456789", bench, to: 1)
  let before = bench.node.link(partner.slot).queuedByteCount
  try send(String(repeating: "x", count: 17_000), bench, to: 1)
  #expect(bench.node.link(partner.slot).queuedByteCount > before + 16_000)
}

@Test func `an interactive message is not combined with bulk data`() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.carriesOutTransmit = false
  try send("0123456789", bench, to: 1, .bulk)
  try send("0123456789", bench, to: 1)
  #expect(bench.node.link(partner.slot).queuedByteCount(.interactive) > 0)
}
