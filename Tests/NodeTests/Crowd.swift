import Frame
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import Testing
import TestSupport

/// Nodes behind one neighbour of the bench, with the nodes' ends of the sealed sessions. The nodes of the crowd have
/// epoch 1, the bench has epoch 7.
final class Crowd {
  /// A node of the crowd.
  final class Member {
    let identity: Identity
    let seal: Seal
    fileprivate let cryptography: StandInCryptography
    /// Whether the member falls silent in a handshake. A silent member begins the handshake, returns the cookie, and
    /// then sends nothing more.
    var stops = false
    var events: [SealEvent] = []

    fileprivate init(_ identity: Identity, _ bench: Bench) {
      self.identity = identity
      cryptography = StandInCryptography(identity)
      let flags = TopologyFlags(relays: true, encryption: .required)
      seal = Seal(
        local: identity.id, peer: bench.identity.id, localEpoch: 1, peerEpoch: 7, ownFlags: flags, peerFlags: flags)
    }
  }

  let bench: Bench
  let slot: Int
  let members: [Member]
  private let neighbour: NodeID
  private var identifier: UInt64 = 1 << 50

  /// Returns `count` identities with ids below the bench's id, so that these nodes begin the handshakes. If `isBelow`
  /// is false, their ids are above.
  static func identities(_ count: Int, below bench: Bench, isBelow: Bool = true, from first: UInt64 = 1_000)
    -> [Identity]
  {
    var found: [Identity] = []
    var number = first
    while found.count < count {
      let identity = Identity(number)
      if (identity.id < bench.identity.id) == isBelow { found.append(identity) }
      number += 1
    }
    return found
  }

  /// Links the neighbour `person` and makes `identities` known to the bench as nodes behind that neighbour. `life` is
  /// the number of this start of the nodes. Each start draws other random numbers.
  init(_ bench: Bench, _ identities: [Identity], behind person: Int, life: Int = 1) {
    self.bench = bench
    neighbour = bench.id(person)
    slot = bench.neighbour(person)
    members = identities.map { Member($0, bench) }
    for member in members {
      for _ in 1..<life { _ = member.cryptography.beginSession(member.seal.sessionName, now: bench.now) }
    }
    bench.receivePaced(crowdTopologies(bench, identities, behind: person, encryption: .required), on: slot)
    _ = bench.sent(on: slot)
  }

  /// Creates a crowd whose only member is the neighbour `person` itself. `life` is the number of this start of the
  /// member. Each start draws other random numbers.
  init(_ bench: Bench, neighbour person: Int, life: Int = 1) {
    self.bench = bench
    neighbour = bench.id(person)
    slot = bench.neighbour(person)
    members = [Member(Bench.people[person], bench)]
    for _ in 1..<life { _ = members[0].cryptography.beginSession(members[0].seal.sessionName, now: bench.now) }
    bench.receivePaced(
      bench.topology(person, [Bench.people.firstIndex { $0.id == bench.identity.id } ?? 0], encryption: .required),
      on: slot)
    _ = bench.sent(on: slot)
  }

  /// Lets each member in `chosen` open a session, and delivers frames until none is left.
  func open(_ chosen: [Member]) {
    for member in chosen { member.seal.isWanted = true }
    settle()
  }

  func settle() {
    for _ in 0..<20 {
      var hasMoved = false
      for member in members where drain(member) { hasMoved = true }
      for (header, payload) in bench.sent(on: slot) {
        if header.knownType == .ping { bench.receive(frame(.pong, from: neighbour, payload), on: slot) }
        guard let member = members.first(where: { $0.identity.id == header.destination }) else { continue }
        receive(header, payload, member)
        hasMoved = true
      }
      if !hasMoved { return }
    }
    Issue.record("the crowd and the bench keep each other busy")
  }

  /// Sends a sealed record whose plaintext is no legal segment. The record only shows the bench that the session is in
  /// use.
  func use(_ member: Member, over slot: Int? = nil) {
    var record = [UInt8](repeating: 0, count: 100)
    let plaintext: [UInt8] = [FrameType.segment.rawValue, 0]
    let count = plaintext.withUnsafeBytes { bytes in record.withUnsafeMutableBytes { member.seal.seal(bytes, into: $0) }
    }
    send(.sealed, [UInt8](record[..<count]), from: member, over: slot)
  }

  /// Lets time pass for the bench, this crowd and `others`.
  func pass(_ span: TimeSpan, beside others: [Crowd] = []) {
    let end = bench.now + span
    while bench.now < end {
      bench.pass(min(.milliseconds(100), end - bench.now))
      for crowd in [self] + others {
        for member in crowd.members { member.seal.handleTimeout(now: bench.now) }
        crowd.settle()
      }
    }
  }

  private func drain(_ member: Member) -> Bool {
    let seal = member.seal
    if seal.needsSession(now: bench.now) {
      seal.begin(member.cryptography.beginSession(seal.sessionName, now: bench.now), now: bench.now)
    }
    var buffer = [UInt8](repeating: 0, count: 2_048)
    var hasMoved = false
    while let frame = buffer.withUnsafeMutableBytes({ seal.nextFrame(into: $0, now: bench.now) }) {
      hasMoved = true
      switch frame {
      case .handshake(let count): send(.handshake, [UInt8](buffer[..<count]), from: member)
      case .sealed(let count): send(.sealed, [UInt8](buffer[..<count]), from: member)
      }
    }
    while let event = seal.nextEvent() { member.events.append(event) }
    return hasMoved
  }

  private func receive(_ header: FrameHeader, _ payload: [UInt8], _ member: Member) {
    switch header.knownType {
    case .handshake:
      let datagram = Array(payload.dropFirst(SealLimits.handshakeHeaderBytes))
      if datagram.isEmpty { return member.seal.noteUndecryptable(now: bench.now) }
      // A member that stops still handles the stand-in's cookie message (kind 2), but no later message.
      if member.stops && datagram[0] != 2 { return }
      member.seal.receiveHandshake(datagram.span.bytes, now: bench.now)
    case .sealed:
      var plaintext = [UInt8](repeating: 0, count: payload.count)
      _ = plaintext.withUnsafeMutableBytes { member.seal.open(payload.span.bytes, into: $0, now: bench.now) }
    case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .segment, .acknowledgement, .datagram,
      .reset, .joined, nil:
      break
    }
  }

  private func send(_ type: FrameType, _ payload: [UInt8], from member: Member, over slot: Int? = nil) {
    identifier += 1
    bench.receive(
      frame(
        type, flags: type == .sealed ? FrameHeader.sealed : 0, ttl: 9, priority: .interactive, to: bench.identity.id,
        from: member.identity.id, identifier: identifier, payload), on: slot ?? self.slot)
  }
}
