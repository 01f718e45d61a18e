import Frame
import Node
import Primitives
import TestSupport
import Testing

/// A segment from node 1 to node 2 that the bench forwards.
private func segment(_ bench: Bench, ttl: UInt8 = 5, identifier: UInt64 = 1) -> [UInt8] {
  frame(.segment, ttl: ttl, priority: .bulk, to: bench.id(2), from: bench.id(1), identifier: identifier, [1, 2, 3])
}

/// Expects that a frame is refused for `reason`, once, and that the link stays up.
private func expectRefused(
  _ reason: FrameError, _ bench: Bench, _ slot: Int, _ bytes: [UInt8],
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let before = bench.refusals(reason)
  bench.receive(bytes, on: slot)
  #expect(bench.refusals(reason) == before + 1, sourceLocation: sourceLocation)
  #expect(bench.node.link(slot).state == .up, sourceLocation: sourceLocation)
  bench.receive(frame(.ping, from: bench.id(1), [0, 0, 0, 0, 0, 0, 0, 9]), on: slot)
  #expect(bench.sent(.pong, on: slot).count == 1, sourceLocation: sourceLocation)
}

@Test func `a frame of zero length is counted and skipped`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(
    .zeroLength, bench, slot, [UInt8](segment(bench).prefix(48)).with { $0.replaceSubrange(6...7, with: [0, 0]) })
}

@Test func `a frame with a hop limit of zero is counted and skipped`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.ttlZero, bench, slot, segment(bench).with { $0[3] = 0 })
}

@Test func `a frame on its last hop is not forwarded`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.ttlZero, bench, slot, segment(bench, ttl: 1))
}

@Test func `a malformed header is counted and skipped`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.malformed, bench, slot, segment(bench).with { $0[5] = 1 })
}

@Test(arguments: [6, 15, 18, 31] as [UInt8]) func `a link-local frame of an unknown type is skipped by its length`(
  type: UInt8
) {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.unknownType, bench, slot, segment(bench).with { $0[1] = type })
}

@Test func `a frame of an unknown type for this node is skipped by its length`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let bytes = frame(.segment, to: bench.identity.id, from: bench.id(1), identifier: 1, [1]).with { $0[1] = 200 }
  expectRefused(.unknownType, bench, slot, bytes)
}

@Test func `a routed frame with this node's own id as its source is a loop`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let bytes = frame(.segment, ttl: 5, to: bench.id(2), from: bench.identity.id, identifier: 1, [1])
  expectRefused(.loopedSource, bench, slot, bytes)
}

@Test func `an advertisement in this node's own name is a loop`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.loopedSource, bench, slot, bench.topology(20, [1]))
}

@Test func `an advertisement of a former epoch of this node causes no alarm`() {
  let bench = Bench()
  let slot = bench.open(1)
  let hello = helloPayload(bench.id(1), epoch: 1, payloadBytesMax: Limits.framePayloadBytesMax)
  // The advertisement arrives together with the hello. The bench has not advertised anything in its present epoch yet.
  bench.receive(frame(.hello, from: bench.id(1), hello) + bench.topology(20, [1], epoch: 6, sequence: 9), on: slot)
  #expect(bench.refusals(.loopedSource) == 1 && bench.told(.identityDuplicated) == 0)
}

@Test func `an advertisement that this node has not made yet is a loop`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.loopedSource, bench, slot, bench.topology(20, [1], epoch: 7, sequence: 9))
}

@Test func `an advertisement with any byte changed is refused`() {
  // Each round changes one byte of the sequence number, the key, a cost, or the signature.
  for offset in [48 + 19, 48 + 50, 48 + 85 + 4 + 17, -1] {
    let bench = Bench()
    let slot = bench.neighbour(1)
    let good = bench.topology(1, [20])
    expectRefused(.wrongSignature, bench, slot, good.with { $0[offset < 0 ? good.count - 1 : offset] ^= 0x40 })
    #expect(bench.node.counters.advertisementsAccepted == 0)
  }
}

@Test func `an advertisement in the name of another node is refused`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let payload = advertisement(of: Bench.people[1], .topology, body: topologyBody([]))
  expectRefused(.wrongSignature, bench, slot, frame(.advertisement, from: bench.id(2), payload))
}

@Test func `a refused advertisement is not forwarded`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let other = bench.neighbour(2)
  bench.receive(bench.topology(1, [20]).with { $0[$0.count - 1] ^= 1 }, on: slot)
  #expect(bench.sent(.advertisement, on: other).filter { $0.header.source == bench.id(1) }.isEmpty)
}

@Test func `a repeated advertisement is a duplicate`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20]), on: slot)
  expectRefused(.duplicate, bench, slot, bench.topology(1, [20]))
}

@Test func `an older advertisement is stale`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(bench.topology(1, [20], epoch: 3, sequence: 5), on: slot)
  expectRefused(.stale, bench, slot, bench.topology(1, [20], epoch: 3, sequence: 4))
  expectRefused(.stale, bench, slot, bench.topology(1, [20], epoch: 2, sequence: 9))
}

@Test func `an advertisement that is too long or too short is counted`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.overLength, bench, slot, frame(.advertisement, from: bench.id(1), [UInt8](repeating: 1, count: 2049)))
  expectRefused(.truncated, bench, slot, frame(.advertisement, from: bench.id(1), [1, 0, 0]))
}

@Test func `a second hello is unexpected`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.unexpected, bench, slot, frame(.hello, from: bench.id(1), helloPayload(bench.id(1))))
}

@Test func `data before hello is unexpected`() {
  let bench = Bench()
  let slot = bench.open(1)
  bench.receive(segment(bench) + bench.topology(1, []), on: slot)
  #expect(bench.refusals(.unexpected) == 2)
  #expect(bench.node.link(slot).state == .opening)
}

@Test func `a message frame of an unknown source is unexpected`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  expectRefused(.unexpected, bench, slot, frame(.segment, to: bench.identity.id, from: bench.id(5), identifier: 1, [1]))
}

@Test func `a stream that loses its framing is closed with a goodbye`() throws {
  for (bytes, reason) in [(hex("8120000100004101"), FrameError.overLength), ([0x17], .unknownVersion)] {
    let bench = Bench()
    let slot = bench.neighbour(1)
    bench.receive(bytes, on: slot)
    #expect(bench.refusals(reason) == 1)
    #expect(bench.node.link(slot).state == .closed(.protocolError))
    #expect(bench.takeCommands() == [.close(slot)])
    let goodbye = try Goodbye(bytes: #require(bench.sent(.goodbye, on: slot).first).payload)
    #expect(goodbye.reason == .protocolError)
  }
}

@Test func `bytes after a goodbye are ignored`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  bench.receive(frame(.goodbye, from: bench.id(1), [1, 0, 0, 0]) + bench.topology(1, [20]), on: slot)
  bench.receive(bench.topology(1, [20]), on: slot)
  #expect(bench.node.counters.advertisementsAccepted == 0)
}

@Test func `a hello with an id that the certificate does not prove closes the link`() {
  let bench = Bench()
  let slot = bench.open(1)
  bench.hello(2, on: slot)
  #expect(bench.refusals(.wrongSignature) == 1)
  #expect(bench.node.link(slot).state == .closed(.identityMismatch))
  #expect(bench.takeCommands() == [.close(slot)])
}

@Test func `a sealed frame must be complete, routed and flagged`() {
  let bench = Bench(bypass: true)
  let slot = bench.neighbour(1)
  func receive(_ bytes: [UInt8], cutBy missing: Int = 0) {
    bytes.withUnsafeBytes { bytes in
      bench.node.receiveSealed(
        UnsafeRawBufferPointer(rebasing: bytes[..<48]),
        UnsafeRawBufferPointer(rebasing: bytes[48..<bytes.count - missing]),
        on: slot, now: bench.now)
    }
  }
  let sealed = segment(bench).with { $0[2] = FrameHeader.sealed }
  receive(segment(bench))
  #expect(bench.refusals(.unexpected) == 1)
  receive(sealed, cutBy: 1)
  #expect(bench.refusals(.unexpected) == 2)
  receive(frame(.goodbye, flags: FrameHeader.sealed, from: bench.id(1), [1, 0, 0, 0]))
  #expect(bench.refusals(.unexpected) == 3)
  #expect(bench.node.link(slot).state == .up)
  receive(sealed)
  #expect(bench.refusals(.unexpected) == 3 && bench.node.counters.dropsNoRoute == 1)
}
