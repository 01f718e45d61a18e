import Bearer
import Channel
import Configuration
import Diagnostics
import Frame
import Journal
import Link
import LocalAPI
import Node
import Primitives
import Reactor
import Session
import Trust

/// A message of a control client whose result is pending.
struct ControlSend {
  let peer: NodeID
  let message: MessageID
  let token: UInt64
}

/// A report to the sender about messages that a node received: code (1), the kind it is about (1), zero (2).
private enum MessageReport {
  static let kind: UInt8 = 0
  /// No application there listens for messages of the kind; the message was dropped.
  static let noListener: UInt8 = 1
}

/// Requests of control clients, and reports to them.
extension Relay: ControlDelegate {
  func controlStatus() -> StatusSnapshot {
    var box = BoxStatus(
      name: configuration.node.displayName, id: node.settings.id, epoch: node.settings.epoch, version: causewayVersion,
      serviceType: configuration.node.serviceType, isRelay: configuration.node.isRelay,
      uptimeSeconds: (loop.now - startedAt).milliseconds / 1000, residentBytes: residentMemoryBytes())
    box.framesForwarded = node.counters.framesForwarded
    box.bytesForwarded = node.counters.bytesForwarded
    for reason in 0..<UInt8(FrameRefusal.count) {
      guard let refusal = FrameRefusal(rawValue: reason) else { continue }
      let count = node.counters.refusals[refusal]
      if count > 0 { box.refusals.append((refusal.name, count)) }
    }
    for reason in 0..<UInt8(QueueDrop.count) {
      guard let drop = QueueDrop(rawValue: reason) else { continue }
      let count = node.queueDrops[drop]
      if count > 0 { box.refusals.append((drop.name, count)) }
    }
    box.trust = trustText
    box.isClockSynchronised = trust.time.isSynchronised
    box.alarm = alarmText
    box.alarms = alarmStatus
    box.strangers = strangerStatus
    box.encryption =
      switch configuration.peer.encryption {
      case .required: "required"
      case .optional: "optional"
      case .none: "none"
      }
    var snapshot = StatusSnapshot(box: box)
    snapshot.bearers = bearerStatus()
    for driver in drivers { snapshot.links.append(linkStatus(driver)) }
    for slot in 0..<Limits.linksMax where node.link(slot).state == .parked {
      snapshot.links.append(linkStatus(slot, remote: "–"))
    }
    snapshot.peers = controlPeers()
    return snapshot
  }

  func controlIdentity() -> (id: NodeID, name: String) { (node.settings.id, configuration.node.displayName) }

  func controlPeers() -> [PeerStatus] { node.peers.map { status(of: $0) } }

  private func status(of peer: Peer) -> PeerStatus {
    var status = PeerStatus(peer, isInClear: node.isClear(with: peer.id) ?? false)
    status.isParked = node.carrier(to: peer.id).map { node.link($0.slot).state == .parked } ?? false
    return status
  }

  func controlSend(_ message: ControlMessage, token: UInt64) -> ControlAnswer {
    // What sessions say to each other only the node itself says.
    if SessionKind(rawValue: message.kind) != nil { return .ended(.refused) }
    let bytes = message.bytes.span.bytes
    do throws(AssociationRefusal) {
      if message.lane == ControlProtocol.unreliableLane {
        let isSent = try node.sendUnreliable(kind: message.kind, bytes, to: message.peer, now: loop.now)
        return .ended(isSent ? .sent : .dropped)
      }
      guard let lane = Lane(rawValue: message.lane) else { return .ended(.refused) }
      let id = try node.send(kind: message.kind, bytes, to: message.peer, lane: lane, now: loop.now)
      sends.append(ControlSend(peer: message.peer, message: id, token: token))
      return .taken
    } catch {
      return ControlAnswer(error)
    }
  }

  func controlProbe(_ peer: NodeID, token: UInt64) -> ControlAnswer {
    do throws(AssociationRefusal) {
      sends.append(ControlSend(peer: peer, message: try node.probe(peer, now: loop.now), token: token))
      return .taken
    } catch {
      return ControlAnswer(error)
    }
  }

  func controlWay(to destination: NodeID) -> [ControlHop] {
    node.way(to: destination).map { hop in
      ControlHop(node: hop.node, bearer: hop.bearer, name: node.peer(hop.node).map { String($0.name) } ?? "")
    }
  }

  func controlHasRoom() { _ = deliverMessages(loop.now) }

  func reportPeer(_ event: PeerEvent, _ now: Instant) {
    switch event {
    case .found(let peer):
      journal.record(.notice, .peerAppeared, at: now, UInt64(peer.hops), UInt64(peer.bearer.rawValue), node: peer.id)
      control?.peerPresent(status(of: peer))
      local?.clients.peerChanged(peer.id)
    case .changed(let peer):
      control?.peerPresent(status(of: peer))
      local?.clients.peerChanged(peer.id)
    case .lost(let id):
      journal.record(.notice, .peerVanished, at: now, node: id)
      control?.peerLost(id)
    }
  }

  func sendEnded(_ peer: NodeID, _ completion: Completion) {
    hasSendEnded = true
    guard let index = sends.firstIndex(where: { $0.peer == peer && $0.message == completion.message }) else { return }
    control?.completed(token: sends.remove(at: index).token, SendOutcome(completion.outcome))
  }

  /// When a send has ended, offers waiting sends of clients to the node. False when none has ended.
  func resumeSends() -> Bool {
    guard hasSendEnded else { return false }
    hasSendEnded = false
    control?.resume()
    return true
  }

  /// Passes messages to the clients that listen for them. A message for a busy client stays in its channel; so does,
  /// for a while, one without a listener, because its reader may be about to start. True when there was one.
  func deliverMessages(_ now: Instant) -> Bool {
    guard let control else { return false }
    var hasTaken = false
    while let next = mailbox.next(
      now: now,
      { kind, hasWaited in control.canDeliver(kind: kind) && (hasWaited || control.isWanted(kind: kind)) })
    {
      guard let message = node.takeMessage(from: next.peer, next.message.lane, now: now) else { continue }
      hasTaken = true
      let delivery = control.deliver(
        .init(peer: next.peer, kind: message.kind, lane: message.lane.rawValue, bytes: message.bytes))
      switch delivery {
      case .taken, .busy: break
      case .nobody: refuse(message.kind, to: next.peer, now)
      }
    }
    return hasTaken
  }

  /// Passes an unreliable message to its client. Without a listener with room it is dropped.
  func deliverUnreliable(_ message: ReceivedDatagram, from peer: NodeID) {
    guard let control, control.canDeliver(kind: message.kind), control.isWanted(kind: message.kind) else { return }
    _ = control.deliver(
      .init(peer: peer, kind: message.kind, lane: ControlProtocol.unreliableLane, bytes: message.bytes))
  }

  /// Tells the sender that no application listens for a kind. Once per message, and never in reply to a control
  /// message.
  private func refuse(_ kind: UInt8, to peer: NodeID, _ now: Instant) {
    if kind == MessageReport.kind { return }
    let report = [MessageReport.noListener, kind, 0, 0]
    // When the channel has no room, the sender only notices by its own timeout.
    _ = try? node.send(kind: MessageReport.kind, report.span.bytes, to: peer, lane: .interactive, now: now)
  }

  private func linkStatus(_ driver: LinkDriver) -> LinkStatus {
    let handoff = driver.handoff
    guard let slot = driver.slot else {
      return LinkStatus(
        slot: nil, peer: .none, name: "", bearer: handoff.bearer, state: "handshake", remote: handoff.remote.text,
        isInbound: handoff.isInbound, sinceSeconds: 0, roundTripMicroseconds: nil, bytesReceived: 0, bytesSent: 0,
        bytesQueued: 0)
    }
    return linkStatus(slot, remote: handoff.remote.text)
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

extension ControlAnswer {
  init(_ refusal: AssociationRefusal) {
    switch refusal {
    case .unknownPeer: self = .ended(.unreachable)
    case .tooManyPeers: self = .ended(.refused)
    case .refused: self = .ended(.notAgreed)
    case .channel(.full): self = .later
    case .channel(.tooLong): self = .ended(.refused)
    case .channel(.closed): self = .ended(.closed)
    }
  }
}

extension SendOutcome {
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
  /// One word for status.
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
