import Bearer
import Configuration
import Explain
import Frame
import Link
import Node
import Primitives
import Seal
import Session
import Status
import Text
import Trust
import WiFiDirect

/// Collects the facts by which `causeway explain` answers how two nodes are connected.
struct ExplainCollector {
  let node: Node
  let trust: TrustKeeper
  let contacts: ContactRecorder
  let radios: Radios
  /// The display name of this node.
  let name: String
  let applications: [ApplicationStatus]
  let now: Instant

  /// The answer for two nodes, as JSON; the known nodes if both are `.none`.
  func answer(_ from: NodeID, _ to: NodeID) -> [UInt8] {
    if from == .none && to == .none { return knownNodes.toJSON() }
    // The order of the two nodes does not change the answer. This node is put first, because this node knows most about
    // its own links.
    let isTurned = to == node.settings.id
    return Explanation(facts(isTurned ? to : from, isTurned ? from : to)).toJSON()
  }

  // MARK: Nodes

  /// The nodes about which `explain` can answer. An address without a known node id is listed as a separate node.
  private var knownNodes: KnownNodes {
    var known = KnownNodes()
    known.add(node.settings.id, name)
    let topologies = node.topologies(now: now)
    for topology in topologies {
      known.add(topology.id, String(decoding: topology.name ?? [], as: UTF8.self))
    }
    for (id, name) in otherNames { known.add(id, name) }
    for topology in topologies { for neighbour in topology.neighbours { known.add(neighbour.node, "") } }
    return known
  }

  private var otherNames: [(id: NodeID, name: String)] {
    var names: [(id: NodeID, name: String)] = []
    for alarm in trust.alarms.all { names.append((alarm.offered, String(decoding: alarm.offeredName, as: UTF8.self))) }
    for stranger in trust.strangers.all { names.append((stranger.id, String(decoding: stranger.name, as: UTF8.self))) }
    for pin in trust.pins { names.append((pin.node, String(decoding: pin.name, as: UTF8.self))) }
    for slot in 0..<Limits.linksMax {
      let link = node.link(slot)
      if link.state != .idle { names.append((link.peer, link.peerName.map { String($0) } ?? "")) }
    }
    for failure in contacts.all { names.append((failure.node, "")) }
    radios.candidates.forEach { handle, candidate, _ in
      let hint = node.plan(handle, now: now)?.hint ?? candidate.hint
      names.append(
        hint == 0
          ? (NodeID(high: 0, low: UInt64(handle)), candidate.address.text) : (NodeID(high: hint, low: 0), ""))
    }
    return names
  }

  private func facts(_ from: NodeID, _ to: NodeID) -> ExplainFacts {
    var facts = ExplainFacts(local: node.settings.id, from: from, to: to)
    facts.nodes = node.topologies(now: now).map {
      NodeFacts(
        id: $0.id, name: String(decoding: $0.name ?? [], as: UTF8.self), relays: $0.relays, encryption: $0.encryption,
        ageSeconds: $0.age.milliseconds / 1000, neighbours: $0.neighbours)
    }
    facts.names = otherNames
    if to.high == 0 { facts.toAddress = radios.candidates[UInt32(truncatingIfNeeded: to.low)]?.address.text ?? "" }
    facts.failures = contacts.all
    guard from == node.settings.id else { return facts }
    facts.bearers = radios.facts
    facts.heard = heard(to)
    for slot in 0..<Limits.linksMax where node.link(slot).state != .idle && node.link(slot).peer == to {
      facts.links.append(explained(slot))
    }
    facts.way = node.way(to: to)
    facts.payloadBytesMax = node.payloadBytesMax(to: to)
    facts.trustFault = contacts.trustFault(to)
    facts.isSelfRevoked = trust.isSelfDenied
    (facts.linksOpen, facts.linksMax) = (node.openLinkCount, node.settings.linksMax)
    if let (reason, age) = node.sealObstacle(with: to, now: now), let obstacle = sessionObstacle(reason, with: to) {
      facts.sessionFault = SessionFault(obstacle, secondsAgo: age.milliseconds / 1000)
    }
    facts.hasSession = node.hasSession(with: to)
    if let asked = node.unansweredSeal(with: to) {
      facts.unanswered = ((now - asked.since).milliseconds / 1000, (now - asked.last).milliseconds / 1000)
    }
    facts.sessions = sharedSessions(with: to)
    return facts
  }

  /// Why there is no end-to-end session; nil if the obstacle no longer exists, or if another line of the answer
  /// explains the obstacle.
  private func sessionObstacle(_ reason: SealObstacle, with id: NodeID) -> SessionObstacle? {
    switch reason {
    // Advertisements contain the encryption preferences, so the answer already shows this conflict.
    case .refused(.preferences, _): nil
    case .refused(.rejected, byPeer: true), .refused(.undecided, byPeer: true): .refusedThere
    case .refused(.rejected, byPeer: false), .refused(.undecided, byPeer: false):
      if let fault = contacts.trustFault(id) {
        .refusedHere(fault)
      } else if trust.isPinned(id) || trust.strangers.all.contains(where: { $0.id == id }) {
        node.isInRefusalPause(with: id) ? .acceptedSince : nil
      } else {
        .refusedHere(.certificate("its key, certificate or name was not accepted"))
      }
    case .refused(.contradiction, _): .contradiction
    case .refused(.version, _): .noCommonVersion
    case .refused(.busy, _), .failed(.busy): .noSlotThere
    case .noSlotHere, .failed(.displaced): .noSlotHere
    case .failed(.timedOut): .silent
    case .failed(.wrongIdentity): .otherKey
    case .failed(.noIdentity): .failed("it sent no P-256 certificate")
    case .failed(.endedByPeer): .failed("it ended the handshake")
    case .failed(.broken): .failed("its handshake messages are invalid")
    case .failed(.noMemory): .failed("this box has no memory for it")
    }
  }

  private func explained(_ slot: Int) -> ExplainedLink {
    let link = node.link(slot)
    return ExplainedLink(
      bearer: link.bearer, state: link.stateName, sinceSeconds: (now - link.upSince).milliseconds / 1000,
      roundTripMicroseconds: link.roundTrip.nanoseconds / 1000, cost: UInt16(clamping: link.meter.cost),
      bytesQueued: UInt64(link.queuedByteCount), isQuarantined: node.isQuarantined(slot, now: now))
  }

  private func heard(_ id: NodeID) -> [HeardFacts] {
    var all: [HeardFacts] = []
    radios.candidates.forEach { handle, candidate, heardAt in
      guard let plan = node.plan(handle, now: now) else { return }
      let hint = plan.hint == 0 ? candidate.hint : plan.hint
      let isNamed = hint == 0 ? id.high == 0 && id.low == UInt64(handle) : NodeID(high: hint, low: 0).mayBe(id)
      if hint != 0 && !isNamed { return }
      let known: HeardFacts.Plan =
        switch plan.plan {
        case .notWanted: .notWanted
        case .lacksSlot: .lacksSlot
        case .dialling: .dialling
        case .served: .served
        case .waiting(let until): .waiting(milliseconds: until > now ? (until - now).milliseconds : 0)
        }
      all.append(
        HeardFacts(
          bearer: candidate.bearer, address: candidate.address.text, isNamed: isNamed,
          secondsAgo: (now - heardAt).milliseconds / 1000, plan: known))
    }
    return all
  }

  private func sharedSessions(with id: NodeID) -> [SharedSession] {
    var shared: [SharedSession] = []
    for application in applications {
      for session in application.sessions {
        guard let member = session.members.first(where: { $0.id == id }) else { continue }
        shared.append(
          SharedSession(
            type: session.type, id: String(decoding: session.id.utf8.prefix(8), as: UTF8.self), state: member.state))
      }
    }
    let offered = node.sessions.services(of: id)
    for service in node.sessions.services(of: node.settings.id) {
      let type = String(decoding: service.type, as: UTF8.self)
      let isShared = shared.contains { $0.type.utf8.elementsEqual(service.type) }
      if !isShared && offered.contains(where: { $0.type == service.type }) {
        shared.append(SharedSession(type: type, id: nil, state: ""))
      }
    }
    return shared
  }
}

extension MemberState {
  /// The state of the link as one word.
  var word: StaticString {
    switch self {
    case .connecting: "connecting"
    case .connected: "connected"
    case .paused: "paused"
    case .away: "away"
    case .rejected: "rejected"
    case .left: "left"
    case .ejected: "ejected"
    }
  }
}

extension SessionID {
  /// The id as 32 hexadecimal digits.
  var text: String { NodeID(high: high, low: low).text }
}
