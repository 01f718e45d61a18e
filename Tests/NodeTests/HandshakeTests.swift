import Frame
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import Testing
import TestSupport

/// Handshakes with neighbours that the test plays. The neighbours have epoch 1, the bench has epoch 7.
@Suite struct HandshakeTests {
  private let strangersMax = SealLimits.handshakesMax - SealLimits.handshakesReserved

  private func neighbour(_ bench: Bench, _ here: Int, _ person: Int) -> Int {
    let slot = bench.neighbour(person)
    bench.receivePaced(
      bench.topology(person, [here], encryption: .required) + bench.profile(person), on: slot)
    _ = bench.sent(on: slot)
    return slot
  }

  private func handshake(_ bench: Bench, from person: Int, epoch: UInt64 = 1, _ datagram: [UInt8]) -> [UInt8] {
    let epochs =
      [UInt8](repeating: 0, count: 7) + [7] + (0..<8).map { UInt8(truncatingIfNeeded: epoch >> UInt64(56 - 8 * $0)) }
    return frame(
      .handshake, ttl: 9, priority: .interactive, to: bench.identity.id, from: bench.id(person), identifier: 1 << 50,
      epochs + datagram)
  }

  @Test func `a hello of an epoch without a signed advertisement is not answered`() {
    let bench = Bench(39, encryption: .required)
    let slot = neighbour(bench, 39, 1)
    bench.receive(handshake(bench, from: 1, epoch: 2, StandInSession.hello(random: 5)), on: slot)
    #expect(bench.refusals(.stale) == 1 && bench.sent(.handshake, on: slot).isEmpty)
    bench.receive(handshake(bench, from: 1, StandInSession.hello(random: 5)), on: slot)
    #expect(bench.sent(.handshake, on: slot).count == 1)
  }

  @Test func `the encryption flags of a former epoch are not used`() {
    let bench = Bench(encryption: .none)
    let slot = bench.neighbour(1)
    bench.receivePaced(bench.topology(1, [20], encryption: .none), on: slot)
    #expect(bench.node.isClear(with: bench.id(1)) == true)
    bench.receivePaced(bench.profile(1, epoch: 2), on: slot)
    #expect(bench.node.isClear(with: bench.id(1)) == nil)
  }

  @Test func `a handshake uses the lower epoch of a peer whose former advertisements have expired`() {
    let bench = Bench(0, encryption: .required)
    func meet(epoch: UInt64) -> [UInt8] {
      let slot = bench.neighbour(1, epoch: epoch)
      bench.receivePaced(
        bench.topology(1, [0], epoch: epoch, lifetimeSeconds: 30, encryption: .required)
          + bench.profile(1, epoch: epoch, lifetimeSeconds: 30), on: slot)
      try? send("hello", bench, to: 1)
      let meant = bench.sent(.handshake, on: slot).map { $0.payload[7] }
      bench.handle(.linkClosed(slot))
      return meant
    }
    #expect(meet(epoch: 5).last == 5)
    // After 60 s the peer's advertisements of epoch 5 have expired.
    bench.pass(.seconds(60))
    #expect(meet(epoch: 3).last == 3)
  }

  @Test func `a node begins at most 24 handshakes with strangers at once`() {
    let bench = Bench(0, encryption: .required)
    let slots = (1...36).map { neighbour(bench, 0, $0) }
    for person in 1...36 { try? send("hello", bench, to: person) }
    #expect(slots.count { !bench.sent(.handshake, on: $0).isEmpty } == strangersMax)
  }

  @Test func `a node accepts at most 24 handshakes of strangers at once`() throws {
    let bench = Bench(39, encryption: .required)
    var buffer = [UInt8](repeating: 0, count: 2_048)
    for person in 1...36 {
      let slot = neighbour(bench, 39, person)
      let name = SessionName(local: bench.id(person), peer: bench.identity.id, localEpoch: 1, peerEpoch: 7)
      let client = try #require(StandInCryptography(Bench.people[person]).beginSession(name, now: bench.now))
      // The client's first hello gets a cookie, which the second hello carries.
      for _ in 0..<2 {
        let count = buffer.withUnsafeMutableBytes { client.nextHandshake(into: $0) }
        bench.receive(handshake(bench, from: person, [UInt8](buffer[..<count])), on: slot)
        for answer in bench.sent(.handshake, on: slot) {
          client.receiveHandshake(Array(answer.payload.dropFirst(16)).span.bytes, now: bench.now)
        }
      }
    }
    #expect(bench.node.counters.handshakesTurnedAway == UInt64(36 - strangersMax))
  }

  @Test func `a link-local frame type is refused inside an encrypted session`() throws {
    let bench = Bench(encryption: .required)
    let slot = neighbour(bench, 20, 1)
    let flags = TopologyFlags(relays: true, encryption: .required)
    let seal = Seal(
      local: bench.id(1), peer: bench.identity.id, localEpoch: 1, peerEpoch: 7, ownFlags: flags, peerFlags: flags)
    seal.isWanted = true
    seal.begin(StandInCryptography(Bench.people[1]).beginSession(seal.sessionName, now: bench.now), now: bench.now)
    var buffer = [UInt8](repeating: 0, count: 20_000)
    func sealed(_ count: Int) -> [UInt8] {
      frame(
        .sealed, flags: FrameHeader.sealed, ttl: 9, priority: .interactive, to: bench.identity.id, from: bench.id(1),
        identifier: 1 << 51, [UInt8](buffer[..<count]))
    }
    for _ in 0..<8 {
      while let next = buffer.withUnsafeMutableBytes({ seal.nextFrame(into: $0, now: bench.now) }) {
        switch next {
        case .handshake(let count): bench.receive(handshake(bench, from: 1, Array(buffer[16..<count])), on: slot)
        case .sealed(let count): bench.receive(sealed(count), on: slot)
        }
      }
      for (header, payload) in bench.sent(on: slot) {
        if header.knownType == .handshake {
          seal.receiveHandshake(Array(payload.dropFirst(16)).span.bytes, now: bench.now)
        } else if header.knownType == .sealed {
          _ = buffer.withUnsafeMutableBytes { seal.open(payload.span.bytes, into: $0, now: bench.now) }
        }
      }
    }
    #expect(seal.isOpen)
    let before = bench.refusals(.unexpected)
    let ping = [FrameType.ping.rawValue] + [UInt8](repeating: 7, count: 8)
    let count = ping.withUnsafeBytes { ping in buffer.withUnsafeMutableBytes { seal.seal(ping, into: $0) } }
    bench.receive(sealed(count), on: slot)
    #expect(count > 0 && bench.refusals(.unexpected) == before + 1)
  }
}
