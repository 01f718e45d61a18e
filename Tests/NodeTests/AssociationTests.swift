import Channel
import Frame
import Node
import Primitives
import TestSupport
import Testing

@Test func aMessageOfAPeerIsReadOnceAndAcknowledged() throws {
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

@Test func aMessageToAPeerLeavesOverItsRouteAndCompletesOnce() throws {
  let bench = Bench()
  var partner = Partner(bench, 1)
  try send("hello", bench, to: 1)
  let sent = try partner.takeSent().filter { $0.header.isRouted }
  #expect(sent.map(\.header.knownType) == [.segment] && sent.first?.header.destination == bench.id(1))
  #expect(sent.first?.header.source == bench.identity.id && sent.first?.header.ttl == Limits.hopsMax)
  #expect(partner.channel.nextMessage()?.bytes == [UInt8]("hello".utf8))
  #expect(bench.node.nextCompletion() == nil)
  bench.now = bench.now + .milliseconds(50)
  partner.channel.handleTimeout(now: bench.now)
  bench.receive(partner.frames(), on: partner.slot)
  #expect(bench.node.nextCompletion()?.1.outcome == .delivered)
  #expect(bench.node.nextCompletion() == nil)
}

@Test func aMessageToSomebodyWithoutAWayIsRefused() {
  let bench = Bench()
  #expect(throws: AssociationRefusal.unknownPeer) { try send("hello", bench, to: 5) }
  #expect(!bench.node.canSend(byteCount: 1, to: bench.id(5), lane: .bulk))
}

@Test func aMessageToAPeerWhoseLinkWasJustLostWaitsForTheNextOne() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  bench.handle(.linkClosed(first.slot))
  #expect(bench.node.canSend(byteCount: 5, to: bench.id(1), lane: .interactive))
  try send("hello", bench, to: 1)
  let again = bench.open(1)
  bench.hello(1, on: again)
  #expect(bench.sent(.segment, on: again).count == 1)
}

@Test func aMessageToAPeerThatIsLostIsRefused() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  bench.handle(.linkClosed(first.slot))
  bench.pass(.seconds(3))
  #expect(throws: AssociationRefusal.unknownPeer) { try send("hello", bench, to: 1) }
}

@Test func aMessageForAFormerLifeIsAnsweredWithAReset() throws {
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

@Test func aMessageAnnouncedLongerThanAnyIsAnsweredWithAResetAndThenAllGoesOn() throws {
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

@Test func aMessageOfALaterLifeIsReadBeforeItsAdvertisementComes() throws {
  let bench = Bench()
  let first = Partner(bench, 1)
  var later = Partner(bench, 1, on: first.slot)
  try send("to the first life", bench, to: 1)
  // Epochs of a partner are fixed: the later life is one with a greater epoch on the wire.
  try later.say("hello")
  let bytes = later.frames().with { $0.replaceSubrange(48 + 8..<48 + 16, with: [0, 0, 0, 0, 0, 0, 0, 2]) }
  bench.receive(bytes, on: first.slot)
  #expect(read(bench) == ["hello"])
  #expect(bench.node.nextCompletion()?.1.outcome == .failed(.peerRestarted))
}

@Test func aLinkThatTakesNothingIsGivenTwoFramesAndTheRestWaits() throws {
  let bench = Bench()
  let partner = Partner(bench, 1)
  bench.carriesOutTransmit = false
  for _ in 0..<4 { try send(String(repeating: "x", count: 60_000), bench, to: 1, .bulk) }
  #expect(bench.node.link(partner.slot).queuedByteCount(.bulk) <= 3 * Limits.frameBytesMax)
  #expect(bench.pass(.seconds(2)) < 50)
}

@Test func messagesThatNobodyReadAreNotForgottenWhenPlacesRunOut() throws {
  // Everybody is behind neighbour 1; then they are all gone, and somebody new has something to say.
  let bench = Bench(20)
  let crowd = Array(0..<Limits.channelsMax).map { Identity(UInt64(1000 + $0)) }
  let slot = bench.neighbour(1)
  bench.receive(crowdTopologies(bench, crowd), on: slot)
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

@Test func anUnreliableMessageIsOneRealtimeFrameAtOnceAndReadOnce() throws {
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

@Test func anUnreliableMessageOfAPeerIsHandedUpToWhoWantsItAndNotTwice() throws {
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
  #expect(bench.node.nextUnreliableMessage { _, kind, _ in kind == 8 } == nil)
  let got = try #require(bench.node.nextUnreliableMessage { _, kind, count in kind == 9 && count == 2 })
  #expect(got.from == bench.id(1) && got.1.kind == 9 && got.1.bytes == message)
  #expect(bench.node.nextUnreliableMessage { _, _, _ in true } == nil)
}

@Test func anUnreliableMessageThatNoFrameCarriesOrThatHasNoWayIsRefused() {
  let bench = Bench()
  let partner = Partner(bench, 1)
  let longest = bench.node.datagramBytesMax(to: bench.id(1)) ?? 0
  #expect(longest == bench.node.link(partner.slot).payloadBytesMax - Datagram.headerBytes)
  let bytes = [UInt8](repeating: 0, count: longest + 1)
  #expect(throws: AssociationRefusal.channel(.tooLong)) {
    try bench.node.sendUnreliable(kind: 9, bytes.span.bytes, to: bench.id(1), now: bench.now)
  }
  #expect(throws: AssociationRefusal.unknownPeer) {
    try bench.node.sendUnreliable(kind: 9, bytes.span.bytes, to: bench.id(5), now: bench.now)
  }
  #expect(bench.node.datagramBytesMax(to: bench.id(5)) == nil)
}
