import Frame
import Primitives
import Seal
import TestSupport
import NodeSupport
import SealSupport
import Testing

@testable import Node

/// A handshake frame in the name of `source`, whose epoch is 1. Without a datagram, the frame asks the bench for a
/// session.
func request(_ bench: Bench, from source: NodeID, _ number: Int, _ datagram: [UInt8] = []) -> [UInt8] {
  var epochs = [UInt8](repeating: 0, count: 16)
  (epochs[7], epochs[15]) = (7, 1)
  return frame(
    .handshake, ttl: 9, priority: .interactive, to: bench.identity.id, from: source,
    identifier: UInt64(10_000 + number), epochs + datagram)
}

/// A sealed frame that nobody can open.
func nonsense(_ bench: Bench, from source: NodeID, _ number: Int) -> [UInt8] {
  frame(
    .sealed, flags: FrameHeader.sealed, ttl: 9, priority: .interactive, to: bench.identity.id, from: source,
    identifier: UInt64(10_000 + number), [UInt8](repeating: 0x5a, count: 60))
}

/// Answers to frames that anybody can forge. The node keeps no state for these answers.
@Suite struct ReplyTests {
  private let highest = 39

  @Test(arguments: [false, true])
  func `stateless replies to frames that anyone can forge are charged to the link that brings them`(isRecord: Bool) {
    let bench = Bench(highest, encryption: .required)
    let crowd = Crowd(bench, Crowd.identities(1, below: bench), behind: 1)
    let peer = crowd.members[0].identity.id
    let attacker = bench.neighbour(3)
    var number = 0
    // Receives a record for which no session exists, or a hello without a cookie. The bench is the server of the
    // handshake.
    func receive(on slot: Int) {
      number += 1
      bench.receive(
        isRecord
          ? nonsense(bench, from: peer, number)
          : request(bench, from: peer, number, StandInSession.hello(random: UInt64(number))), on: slot)
    }
    for _ in 0..<1_000 { receive(on: attacker) }
    #expect(bench.sent(.handshake, on: crowd.slot).count == Limits.repliesAtOnceMax / 2)
    #expect(bench.refusals(.tooMany) == UInt64(1_000 - Limits.repliesAtOnceMax / 2))
    // The link to the peer itself has its own share of the answers.
    receive(on: crowd.slot)
    #expect(bench.sent(.handshake, on: crowd.slot).count == 1)
    bench.pass(.seconds(1))
    _ = bench.sent(on: crowd.slot)
    for _ in 0..<1_000 { receive(on: attacker) }
    #expect(bench.sent(.handshake, on: crowd.slot).count <= Int(Limits.repliesPerSecond) + 2)
    #expect(bench.node.associations.all.isEmpty)
  }

  @Test func `refusals of hellos are charged to the link that brings the hellos`() throws {
    let bench = Bench(highest, encryption: .required)
    let slot = bench.neighbour(1)
    bench.receivePaced(bench.topology(1, [highest], encryption: .required), on: slot)
    let name = SessionName(local: bench.id(1), peer: bench.identity.id, localEpoch: 1, peerEpoch: 7)
    let client = try #require(StandInCryptography(Bench.people[1]).beginSession(name, now: bench.now))
    var buffer = [UInt8](repeating: 0, count: 2_048)
    func hello() -> [UInt8] {
      let count = buffer.withUnsafeMutableBytes { client.nextHandshake(into: $0) }
      return [UInt8](buffer[..<count])
    }
    bench.receive(request(bench, from: bench.id(1), 0, hello()), on: slot)
    let verify = try #require(bench.sent(.handshake, on: slot).first)
    client.receiveHandshake(Array(verify.payload.dropFirst(16)).span.bytes, now: bench.now)
    let proven = hello()
    while bench.node.handshakes.take(by: slot, now: bench.now) {}
    for number in 1...1_000 { bench.receive(request(bench, from: bench.id(1), number, proven), on: slot) }
    #expect(bench.node.counters.handshakesTurnedAway == 1_000)
    #expect(bench.sent(.handshake, on: slot).count == Limits.repliesAtOnceMax / 2 - 1)
  }

  @Test func `unencrypted resets are charged to the link that causes them`() {
    let bench = Bench(20)
    let identity = Crowd.identities(1, below: bench)[0]
    let slot = bench.neighbour(1)
    bench.receivePaced(crowdTopologies(bench, [identity], behind: 1), on: slot)
    let attacker = bench.neighbour(3)
    _ = bench.sent(on: slot)
    // The segments name a former epoch of this node.
    let segment: [UInt8] =
      [0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
      + [0, 0, 0, 0, 3]
    for number in 0..<1_000 {
      bench.receive(
        frame(
          .segment, ttl: 9, priority: .interactive, to: bench.identity.id, from: identity.id,
          identifier: UInt64(20_000 + number), segment), on: attacker)
    }
    #expect(bench.sent(.reset, on: slot).count == Limits.repliesAtOnceMax / 2)
  }
}
