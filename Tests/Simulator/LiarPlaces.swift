import Channel
import Frame
import Link
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import Session
import SessionSupport
import TestSupport

/// The places that a hostile relay claims from its victims, and those that a newcomer got beside it.
struct Claim {
  struct Pair: Hashable {
    var from: Int
    var to: Int
  }
  private struct Probe: Hashable {
    var pair: Pair
    var life: Int
    var message: MessageID
  }

  /// The hostile relay and the nodes that it has behind it.
  let machines: Range<Int>
  let victims: [Int]
  /// The keys of invented nodes, and the handshakes that they have begun with victims and not continued.
  private(set) var keys: [StandInCryptography] = []
  fileprivate var handshakes: [Pair: any PeerSession] = [:]
  /// The bytes that the hostile relay received after the last whole frame, by stream.
  fileprivate var unread: [Int: [UInt8]] = [:]
  /// The sessions of the applications; see `openSessions`.
  var sessions = ClaimedSessions()

  private var lastIdentifier: UInt64 = 0
  private var probes: Set<Probe> = []
  private var answers: Set<Pair> = []

  /// `invented` is the number of invented nodes that begin handshakes.
  init(machines: Range<Int> = 0..<0, victims: [Int] = [], invented: Int = 0) {
    self.machines = machines
    self.victims = victims
    keys = (0..<invented).map { StandInCryptography(Simulation.inventedIdentity($0)) }
  }

  /// An identifier that no other frame of the same source has.
  mutating func nextIdentifier() -> UInt64 {
    lastIdentifier += 1
    return lastIdentifier
  }

  /// Whether one machine has received an answer to a probe of another machine.
  func isAnswered(_ pair: Pair) -> Bool { answers.contains(pair) }
  func isAsking(_ pair: Pair) -> Bool { probes.contains { $0.pair == pair } }

  mutating func asked(_ pair: Pair, life: Int, _ message: MessageID) {
    probes.insert(Probe(pair: pair, life: life, message: message))
  }

  /// Returns whether a completion belongs to a probe or to anything else that a machine of the hostile relay sent.
  mutating func completed(_ machine: Int, _ life: Int, _ peer: Int, _ completion: Completion) -> Bool {
    let pair = Pair(from: machine, to: peer)
    guard probes.remove(Probe(pair: pair, life: life, message: completion.message)) != nil else {
      return machines.contains(machine)
    }
    if completion.outcome == .delivered { answers.insert(pair) }
    return true
  }
}

/// Claims that occupy places: handshakes of invented nodes that stop, and channels that are kept in use.
extension Simulation {
  // MARK: The newcomer's requests

  /// Returns whether the newcomer has an answer from each victim, and probes the victims that have not answered. Places
  /// are shared by the link that brings the frames. So no bound holds for a newcomer behind the hostile relay's own
  /// link.
  func hasAnswers(_ newcomer: Int) -> Bool {
    claim.victims.count { victim in
      let pair = Claim.Pair(from: newcomer, to: victim)
      if claim.isAnswered(pair) || sharesTheLiarsLink(newcomer, at: victim) { return false }
      if !claim.isAsking(pair) { probe(pair) }
      return true
    } == 0
  }

  /// Whether a victim reaches a machine over the link over which it reaches the hostile relay.
  func sharesTheLiarsLink(_ machine: Int, at victim: Int) -> Bool {
    guard claim.victims.contains(victim), let node = machines[victim].node,
      let link = node.route(to: machines[machine].key.id)?.link
    else { return false }
    return link == node.route(to: machines[claim.machines.lowerBound].key.id)?.link
  }

  private func probe(_ pair: Claim.Pair) {
    guard let node = machines[pair.from].node,
      let message = try? node.probe(machines[pair.to].key.id, now: now)
    else { return }
    claim.asked(pair, life: machines[pair.from].life, message)
    touched(pair.from)
  }

  // MARK: The attack

  /// Lets each node behind the hostile relay keep its channels in use.
  func keepChannels() {
    for machine in claim.machines.dropFirst() {
      for victim in claim.victims { probe(Claim.Pair(from: machine, to: victim)) }
    }
  }

  /// The next frames of invented nodes: every two seconds their advertisements, otherwise the first messages of
  /// handshakes. A node with the higher id asks for a handshake or sends a record that nobody can open, and the victim
  /// begins it.
  func halfHandshakes(of liar: Int) -> [UInt8] {
    if lieTicks % 200 == 1 {
      return claim.keys.reduce(into: []) { bytes, key in
        bytes += frame(
          .advertisement, ttl: Limits.hopsMax, from: key.id,
          advertisement(
            of: key.identity, .topology, lifetimeSeconds: 3600, body: topologyBody([link(to: machines[liar].key.id)])))
      }
    }
    return (0..<Self.handshakesAtOnce).reduce(into: []) { bytes, _ in
      lieCount += 1
      let (turn, number) = lieCount.quotientAndRemainder(dividingBy: claim.keys.count)
      bytes += beginning(of: number, with: claim.victims[turn % claim.victims.count])
    }
  }

  private static let handshakesAtOnce = 2

  private func beginning(of number: Int, with victim: Int) -> [UInt8] {
    guard let node = machines[victim].node else { return [] }
    let key = claim.keys[number]
    let name = SessionName(
      local: key.id, peer: machines[victim].key.id, localEpoch: 1, peerEpoch: node.settings.epoch)
    if !name.isClient { return lieCount & 2 == 0 ? handshake([], name) : record(name) }
    let session = key.beginSession(name, now: now)
    claim.handshakes[Claim.Pair(from: number, to: victim)] = session
    return handshakes(of: session, name)
  }

  /// Answers the victims' cookies, which ask an invented client to prove that it receives data sent to its id. Then the
  /// client stops.
  func answerVictims(_ bytes: [UInt8], _ stream: Int, _ side: Int) {
    let received = claim.unread[stream, default: []] + bytes
    let whole = frames(in: received)
    claim.unread[stream] = Array(received.dropFirst(whole.reduce(0) { $0 + $1.header.frameByteCount }))
    for (header, payload) in whole where header.knownType == .handshake {
      let victim = number(of: header.source)
      guard victim >= 0, let number = claim.keys.firstIndex(where: { $0.id == header.destination }),
        let node = machines[victim].node,
        let session = claim.handshakes.removeValue(forKey: Claim.Pair(from: number, to: victim))
      else { continue }
      let datagram = [UInt8](payload.dropFirst(SealLimits.handshakeHeaderBytes))
      session.receiveHandshake(datagram.span.bytes, now: now)
      let name = SessionName(
        local: header.destination, peer: header.source, localEpoch: 1, peerEpoch: node.settings.epoch)
      inject(handshakes(of: session, name), stream, side)
    }
  }

  private func handshakes(of session: (any PeerSession)?, _ name: SessionName) -> [UInt8] {
    var bytes: [UInt8] = []
    var datagram = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
    while let count = datagram.withUnsafeMutableBytes({ session?.nextHandshake(into: $0) }), count > 0 {
      bytes += handshake([UInt8](datagram[..<count]), name)
    }
    return bytes
  }

  private func record(_ name: SessionName) -> [UInt8] {
    frame(
      .sealed, flags: FrameHeader.sealed, ttl: Limits.hopsMax, priority: .interactive, to: name.peer, from: name.local,
      identifier: claim.nextIdentifier(), [UInt8](repeating: 0x5a, count: 60))
  }

  private func handshake(_ datagram: [UInt8], _ name: SessionName) -> [UInt8] {
    var payload: [UInt8] = []
    payload.append(bigEndian: name.peerEpoch)
    payload.append(bigEndian: name.localEpoch)
    return frame(
      .handshake, ttl: Limits.hopsMax, priority: .interactive, to: name.peer, from: name.local,
      identifier: claim.nextIdentifier(), payload + datagram)
  }
}
