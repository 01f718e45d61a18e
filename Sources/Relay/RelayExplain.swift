import Bearer
import BearerBluetooth
import BearerIP
import Configuration
import Discovery
import Explain
import Frame
import Link
import LocalAPI
import Node
import Primitives
import Reactor
import Seal
import SecureTransport
import Session
import Status
import Text
import Trust
import WiFiDirect

/// Answers questions of control clients: how two nodes are connected, and what the applications do.
extension Relay {
  func controlExplain(_ from: NodeID, _ to: NodeID) -> [UInt8] {
    if from == .none && to == .none { return knownNodes.toJSON() }
    // The order of the two nodes does not change the answer. This node is put first, because it knows most about its
    // own links.
    let isTurned = to == node.settings.id
    return Explanation(facts(isTurned ? to : from, isTurned ? from : to)).toJSON()
  }

  func controlApplications() -> [ApplicationStatus] {
    guard let local else { return [] }
    return local.clientProcesses.compactMap { place, process in
      guard let view = local.clients.view(place) else { return nil }
      return ApplicationStatus(
        name: String(decoding: view.instance ?? [], as: UTF8.self), user: UInt64(view.user), process: process,
        services: view.serviceTypes.map { String(decoding: $0, as: UTF8.self) },
        sessions: view.sessions.map { session in
          SessionStatus(
            id: node.sessions.id(of: session.handle).map { $0.text } ?? "",
            type: String(decoding: session.type, as: UTF8.self), members: members(of: session.handle),
            streams: UInt64(session.streams), bytesWaiting: UInt64(session.bytesWaiting))
        })
    }
  }

  private func members(of session: SessionHandle) -> [(id: NodeID, name: String, state: String)] {
    node.sessions.members(of: session).map { address, state in
      (address.node, node.peer(address.node).map { String($0.name) } ?? "", "\(state.word)")
    }
  }

  // MARK: Nodes

  /// The nodes about which `explain` can answer. An address without a known node id is listed as a separate node.
  private var knownNodes: KnownNodes {
    var known = KnownNodes()
    known.add(node.settings.id, configuration.node.displayName)
    let topologies = node.topologies(now: loop.now)
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
    for failure in contactFailures.all(now: loop.now) { names.append((failure.node, "")) }
    candidates.forEach { handle, candidate, _ in
      let hint = node.plan(handle, now: loop.now)?.hint ?? candidate.hint
      names.append(
        hint == 0
          ? (NodeID(high: 0, low: UInt64(handle)), candidate.address.text) : (NodeID(high: hint, low: 0), ""))
    }
    return names
  }

  private func facts(_ from: NodeID, _ to: NodeID) -> ExplainFacts {
    let now = loop.now
    var facts = ExplainFacts(local: node.settings.id, from: from, to: to)
    facts.nodes = node.topologies(now: now).map {
      NodeFacts(
        id: $0.id, name: String(decoding: $0.name ?? [], as: UTF8.self), relays: $0.relays, encryption: $0.encryption,
        ageSeconds: $0.age.milliseconds / 1000, neighbours: $0.neighbours)
    }
    facts.names = otherNames
    if to.high == 0 { facts.toAddress = candidates[UInt32(truncatingIfNeeded: to.low)]?.address.text ?? "" }
    facts.failures = contactFailures.all(now: now)
    guard from == node.settings.id else { return facts }
    facts.bearers = bearerFacts
    facts.heard = heard(to, now)
    for slot in 0..<Limits.linksMax where node.link(slot).state != .idle && node.link(slot).peer == to {
      facts.links.append(explained(slot, now))
    }
    facts.way = node.way(to: to)
    facts.payloadBytesMax = node.payloadBytesMax(to: to)
    facts.trustFault = trustFault(to)
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

  /// Why this node refuses the key of `id` now; nil if it does not refuse the key, or has not received it.
  func trustFault(_ id: NodeID) -> TrustFault? {
    if trust.isDenied(id) { return .revoked }
    // Earlier refusals have no effect once the key was accepted. A route to the node through other nodes does not show
    // that.
    if isAccepted(id) { return nil }
    if trust.alarms.all.contains(where: { $0.offered == id }) { return .otherKeyPinned }
    return trust.strangers.all.first { $0.id == id }.map { TrustFault($0.reason) }
  }

  /// Whether the key of `id` was accepted for a link or an end-to-end session that exists now.
  private func isAccepted(_ id: NodeID) -> Bool {
    if node.hasSession(with: id) { return true }
    for slot in 0..<Limits.linksMax where node.link(slot).peer == id && node.link(slot).isStanding { return true }
    return false
  }

  /// The reason to show why there is no end-to-end session. nil if the obstacle no longer exists, or if another line of
  /// the answer explains it.
  private func sessionObstacle(_ reason: SealObstacle, with id: NodeID) -> SessionObstacle? {
    switch reason {
    // Advertisements contain the encryption preferences, so the answer already shows this conflict.
    case .refused(.preferences, _): nil
    case .refused(.rejected, byPeer: true), .refused(.undecided, byPeer: true): .refusedThere
    case .refused(.rejected, byPeer: false), .refused(.undecided, byPeer: false):
      if let stranger = trust.strangers.all.first(where: { $0.id == id }) {
        .refusedHere(TrustFault(stranger.reason))
      } else if trust.isPinned(id) {
        node.isInRefusalPause(with: id) ? .acceptedSince : nil
      } else {
        .refusedHere(.certificate("its key, certificate or name was not accepted"))
      }
    case .refused(.contradiction, _): .contradiction
    case .refused(.version, _): .noCommonVersion
    case .refused(.busy, _), .failed(.busy): .noPlaceThere
    case .noPlaceHere, .failed(.displaced): .noPlaceHere
    case .failed(.timedOut): .silent
    case .failed(.wrongIdentity): .otherKey
    case .failed(.noIdentity): .failed("it sent no P-256 certificate")
    case .failed(.endedByPeer): .failed("it ended the handshake")
    case .failed(.broken): .failed("its handshake messages are invalid")
    case .failed(.noMemory): .failed("this box has no memory for it")
    }
  }

  private func explained(_ slot: Int, _ now: Instant) -> ExplainedLink {
    let link = node.link(slot)
    return ExplainedLink(
      bearer: link.bearer, state: link.stateName, sinceSeconds: (now - link.upSince).milliseconds / 1000,
      roundTripMicroseconds: link.roundTrip.nanoseconds / 1000, cost: UInt16(clamping: link.meter.cost),
      bytesQueued: UInt64(link.queuedByteCount), isQuarantined: node.isQuarantined(slot, now: now))
  }

  private func heard(_ id: NodeID, _ now: Instant) -> [HeardFacts] {
    var all: [HeardFacts] = []
    candidates.forEach { handle, candidate, heardAt in
      guard let plan = node.plan(handle, now: now) else { return }
      let hint = plan.hint == 0 ? candidate.hint : plan.hint
      let isNamed = hint == 0 ? id.high == 0 && id.low == UInt64(handle) : NodeID(high: hint, low: 0).mayBe(id)
      if hint != 0 && !isNamed { return }
      let known: HeardFacts.Plan =
        switch plan.plan {
        case .notWanted: .notWanted
        case .lacksPlace: .lacksPlace
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
    for application in controlApplications() {
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

  // MARK: Bearers

  private var bearerFacts: [BearerFacts] {
    var interfaces = ""
    for interface in ip?.interfaces ?? [] where interface.kind != .wifiDirect {
      interfaces += "\(interfaces.utf8.isEmpty ? "" : ", ")\(interface.name)"
    }
    let discovery = dnsSD == nil ? "; [discovery] dns-sd is off, so only [ip] peers are dialled" : ""
    var meshFact = ""
    if let mesh = mesh.map({ wifiStatus($0) }) {
      meshFact = "; mesh: \(mesh.detail.utf8.isEmpty ? mesh.state : mesh.detail)"
      if !mesh.problem.utf8.isEmpty { meshFact += ", \(mesh.problem)" }
    }
    let wifi = wifiDirect.map { wifiStatus($0) }
    let adapters = bluetoothStatus
    let bluetooth = adapters.first { !$0.detail.utf8.isEmpty } ?? adapters.first
    return [
      BearerFacts(
        .ip, isEnabled: configuration.ip.isEnabled, isUp: !interfaces.utf8.isEmpty,
        detail: (interfaces.utf8.isEmpty ? "no interface is up" : "\(interfaces)\(discovery)") + meshFact,
        problem: problem("ip") ?? ""),
      BearerFacts(
        .wifiDirect, isEnabled: configuration.wifiDirect.isEnabled,
        isUp: wifi.map { !$0.detail.utf8.isEmpty } ?? false,
        detail: wifi.map { $0.detail.utf8.isEmpty ? $0.state : $0.detail } ?? "", problem: wifi?.problem ?? ""),
      BearerFacts(
        .bluetoothLE, isEnabled: configuration.bluetooth.isEnabled,
        isUp: bluetooth.map { !$0.detail.utf8.isEmpty } ?? false, detail: bluetooth?.detail ?? "",
        problem: bluetooth?.problem ?? ""),
    ]
  }
}

extension MemberState {
  /// The state as one word.
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
