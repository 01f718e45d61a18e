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

/// The table slots that a hostile relay claims from its victims, and the slots that a newcomer got during the attack.
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

  /// The hostile relay, followed by the nodes behind it.
  let machines: Range<Int>
  let victims: [Int]
  /// The keys of invented nodes, and the handshakes that these nodes have begun with victims and not continued.
  private(set) var keys: [StandInCryptography] = []
  fileprivate var handshakes: [Pair: any PeerSession] = [:]
  /// The bytes of an incomplete frame at the end of what the hostile relay received, by stream.
  fileprivate var unread: [Int: [UInt8]] = [:]
  /// The sessions of the applications during an attack on sessions, which `openSessions` opens.
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

  /// A frame identifier that no earlier call returned.
  mutating func nextIdentifier() -> UInt64 {
    lastIdentifier += 1
    return lastIdentifier
  }

  /// Whether machine `pair.from` has received an answer of machine `pair.to` to a probe. A probe is a message whose
  /// acknowledgement is the answer.
  func isAnswered(_ pair: Pair) -> Bool { answers.contains(pair) }
  func isAsking(_ pair: Pair) -> Bool { probes.contains { $0.pair == pair } }

  mutating func asked(_ pair: Pair, life: Int, _ message: MessageID) {
    probes.insert(Probe(pair: pair, life: life, message: message))
  }

  /// Whether a completed message is a probe, or comes from the hostile relay or a node behind it.
  mutating func completed(_ machine: Int, _ life: Int, _ peer: Int, _ completion: Completion) -> Bool {
    let pair = Pair(from: machine, to: peer)
    guard probes.remove(Probe(pair: pair, life: life, message: completion.message)) != nil else {
      return machines.contains(machine)
    }
    if completion.outcome == .delivered { answers.insert(pair) }
    return true
  }
}

/// Attacks that occupy slots: handshakes that invented nodes begin and abandon, and channels that are kept in use.
extension Simulation {
  // MARK: The newcomer's requests

  /// Whether each victim has answered the newcomer. Probes the victims that have not answered. A victim divides its
  /// slots among its links. So a victim that reaches the newcomer over the hostile relay's link is left out: no bound
  /// holds there.
  func hasAnswers(_ newcomer: Int) -> Bool {
    claim.victims.count { victim in
      let pair = Claim.Pair(from: newcomer, to: victim)
      if claim.isAnswered(pair) || sharesTheLiarsLink(newcomer, at: victim) { return false }
      if !claim.isAsking(pair) { probe(pair) }
      return true
    } == 0
  }

  /// Whether a victim's routes to the machine and to the hostile relay begin with the same link.
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

  /// Lets each node behind the hostile relay probe every victim, which keeps its channels in use.
  func keepChannels() {
    for machine in claim.machines.dropFirst() {
      for victim in claim.victims { probe(Claim.Pair(from: machine, to: victim)) }
    }
  }

  /// The next frames of invented nodes: every two seconds their advertisements, otherwise the first messages of
  /// handshakes. An invented node with the higher id is the DTLS server. An invented server requests a handshake or
  /// sends a record that nobody can open, so that the victim begins.
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

  /// Answers the cookie requests of the victims. A cookie proves that an invented client receives data sent to its id.
  /// After its answer the client stops.
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
