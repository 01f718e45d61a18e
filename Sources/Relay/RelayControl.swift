import Bearer
import Channel
import Configuration
import ControlSocket
import Frame
import Journal
import Link
import LocalAPI
import Node
import Primitives
import Reactor
import Session
import Status
import Text
import Trust
import WiFiDirect

/// A probe (test message to a peer) that a control client requested, and that has no result yet.
struct ControlProbe {
  let peer: NodeID
  let message: MessageID
  let token: UInt64
}

/// Handles requests of control clients, and sends them events.
extension Relay: ControlDelegate {
  func controlStatus() -> StatusSnapshot {
    var box = BoxStatus(
      name: configuration.node.displayName, id: node.settings.id, epoch: node.settings.epoch, version: causewayVersion,
      serviceType: configuration.node.serviceType, isRelay: configuration.node.isRelay,
      uptimeSeconds: (loop.now - startedAt).milliseconds / 1000, residentBytes: residentMemoryBytes())
    box.framesForwarded = node.counters.framesForwarded
    box.bytesForwarded = node.counters.bytesForwarded
    for talker in node.topSources.all {
      let name = node.peer(talker.node).map { String($0.name) } ?? ""
      box.talkers.append(TalkerStatus(id: talker.node, name: name, bytes: talker.bytes))
    }
    for reason in 0..<UInt8(FrameError.count) {
      guard let refusal = FrameError(rawValue: reason) else { continue }
      let count = node.counters.refusals[refusal]
      if count > 0 { box.refusals.append((refusal.name, count)) }
    }
    for reason in 0..<UInt8(QueueDrop.count) {
      guard let drop = QueueDrop(rawValue: reason) else { continue }
      let count = node.queueDrops[drop]
      if count > 0 { box.refusals.append((drop.name, count)) }
    }
    box.trust = trustReports.text
    box.isClockSynchronised = trust.time.isSynchronised
    box.alarm = trustReports.alarm
    box.alarms = trustReports.alarms
    box.strangers = trustReports.strangers
    box.encryption =
      switch configuration.peer.encryption {
      case .required: "required"
      case .optional: "optional"
      case .none: "none"
      }
    var snapshot = StatusSnapshot(box: box)
    snapshot.bearers = radios.status
    for driver in links.drivers { snapshot.links.append(linkStatus(driver)) }
    for slot in 0..<Limits.linksMax where node.link(slot).state == .parked {
      snapshot.links.append(linkStatus(slot, remote: "–"))
    }
    snapshot.peers = controlPeers()
    return snapshot
  }

  func controlExplain(_ from: NodeID, _ to: NodeID) -> [UInt8] {
    ExplainCollector(
      node: node, trust: trust, contacts: contacts, radios: radios, name: configuration.node.displayName,
      applications: controlApplications(), now: loop.now
    ).answer(from, to)
  }

  func controlApplications() -> [ApplicationStatus] {
    guard let local else { return [] }
    return local.clientProcesses.compactMap { index, process in
      guard let view = local.clients.view(index) else { return nil }
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

  func controlTap(_ tap: (any FrameTap)?) { node.tap = tap }

  func controlIdentity() -> (id: NodeID, name: String) { (node.settings.id, configuration.node.displayName) }

  func controlInvitation() throws(AccessError) -> JoinInvitation {
    guard let group = radios.group else {
      throw AccessError("Wi-Fi Direct is off: set enabled = yes in [wifi-direct]")
    }
    guard group.state == .groupOwner else {
      throw AccessError("this node has no Wi-Fi group that others could join; see “causeway radios”")
    }
    return JoinInvitation(
      name: configuration.node.displayName, id: node.settings.id.text, ssid: group.ssid, passphrase: group.passphrase,
      address: WiFiDirectOptions.ownerAddressText, frequency: UInt64(group.frequency))
  }

  func controlPeers() -> [PeerStatus] { node.peers.map { status(of: $0) } }

  private func status(of peer: Peer) -> PeerStatus {
    var status = PeerStatus(peer, isInClear: node.isClear(with: peer.id) ?? false)
    status.isParked = node.carrier(to: peer.id).map { node.link($0.slot).state == .parked } ?? false
    return status
  }

  func controlProbe(_ peer: NodeID, token: UInt64) -> ProbeOutcome? {
    do throws(AssociationError) {
      probes.append(ControlProbe(peer: peer, message: try node.probe(peer, now: loop.now), token: token))
      return nil
    } catch {
      return ProbeOutcome(error)
    }
  }

  func controlWay(to destination: NodeID) -> [ControlHop] {
    node.way(to: destination).map { hop in
      ControlHop(node: hop.node, bearer: hop.bearer, name: node.peer(hop.node).map { String($0.name) } ?? "")
    }
  }

  func reportPeer(_ event: PeerEvent, _ now: Instant) {
    switch event {
    case .found(let peer):
      // A neighbour has proved its key. An advertisement of another node may be old.
      let decided = peer.firstHop == peer.id ? trust.decided(peer.id) : .none
      let cause = links.cause(behind: peer.firstHop).about(decided)
      recordName(of: peer, cause, now)
      journal.record(
        .notice, .peerAppeared, at: now, UInt64(peer.hops), UInt64(peer.bearer.rawValue), node: peer.id, cause: cause)
      control?.peerPresent(status(of: peer))
      local?.clients.peerChanged(peer.id)
    case .changed(let peer):
      control?.peerPresent(status(of: peer))
      local?.clients.peerChanged(peer.id)
    case .lost(let id):
      journal.record(.notice, .peerVanished, at: now, node: id)
      control?.peerLost(id)
      memoryReturn.set(after: Self.memoryRest)
    }
  }

  /// Writes the peer's name to the journal before other records about the peer. Old records are overwritten, so a
  /// reader may see only the newest ones.
  private func recordName(of peer: Peer, _ cause: RecordCause, _ now: Instant) {
    var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &words) { bytes in
      var count = min(peer.name.byteCount, bytes.count)
      // The name is cut only between two characters.
      while count > 0, count < peer.name.byteCount, peer.name.byte(count) & 0xC0 == 0x80 { count -= 1 }
      for index in 0..<count { bytes[index] = peer.name.byte(index) }
    }
    journal.record(.notice, .peerNamed, at: now, words.0, words.1, words.2, node: peer.id, cause: cause)
  }

  func probeEnded(_ peer: NodeID, _ completion: Completion) {
    guard let index = probes.firstIndex(where: { $0.peer == peer && $0.message == completion.message }) else { return }
    control?.completed(token: probes.remove(at: index).token, ProbeOutcome(completion.outcome))
  }

  private func linkStatus(_ driver: LinkDriver) -> LinkStatus {
    let handoff = driver.handoff
    guard let slot = driver.slot else {
      return LinkStatus(
        slot: nil, peer: .none, name: "", bearer: handoff.bearer, state: "handshake", remote: handoff.remote.text,
        isInbound: handoff.isInbound, sinceSeconds: 0, roundTripMicroseconds: nil, bytesReceived: 0, bytesSent: 0,
        bytesQueued: 0)
    }
    var status = linkStatus(slot, remote: handoff.remote.text)
    status.segments = driver.segments
    return status
  }

  private func linkStatus(_ slot: Int, remote: String) -> LinkStatus {
    let link = node.link(slot)
    let roundTrip = link.roundTrip.nanoseconds
    return LinkStatus(
      slot: slot, peer: link.peer, name: link.peerName.map { String($0) } ?? "", bearer: link.bearer,
      state: link.stateName, remote: remote, isInbound: link.isInbound,
      sinceSeconds: (loop.now - link.upSince).milliseconds / 1000,
      roundTripMicroseconds: roundTrip == 0 ? nil : roundTrip / 1000, bytesReceived: link.bytesIn,
      bytesSent: link.bytesOut, bytesQueued: UInt64(link.queuedByteCount))
  }
}

extension PeerStatus {
  init(_ peer: Peer, isInClear: Bool) {
    self.init(
      id: peer.id, name: String(peer.name), serviceType: String(decoding: peer.serviceType, as: UTF8.self),
      info: peer.info.map { String(decoding: $0, as: UTF8.self) }, hops: peer.hops, bearer: peer.bearer,
      via: peer.firstHop, isInClear: isInClear)
  }
}

extension ProbeOutcome {
  init(_ refusal: AssociationError) {
    switch refusal {
    case .unknownPeer: self = .unreachable
    case .tooManyPeers, .channel(.tooLong): self = .refused
    case .refused: self = .notAgreed
    case .channel(.full): self = .noRoom
    case .channel(.closed): self = .closed
    }
  }

  init(_ outcome: Completion.Outcome) {
    switch outcome {
    case .delivered: self = .delivered
    case .failed(.peerRestarted): self = .peerRestarted
    case .failed(.timedOut): self = .timedOut
    case .failed(.closed): self = .closed
    }
  }
}

extension String {
  public init(_ name: DisplayName) {
    self.init(decoding: (0..<name.byteCount).map { name.byte($0) }, as: UTF8.self)
  }
}

extension Link {
  /// The state as one word, for status.
  var stateName: String {
    switch state {
    case .idle: "idle"
    case .opening: "opening"
    case .up: "up"
    case .parking: "parking"
    case .parked: "parked"
    case .closed: "closing"
    }
  }
}
