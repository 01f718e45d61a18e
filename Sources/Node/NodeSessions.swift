import Channel
import Frame
import Mesh
import Primitives
import Seal
import Session

/// The state that a node keeps to host the sessions of its applications.
struct SessionHost {
  let sessions: Sessions
  /// The session messages in flight. `tag` is the number with which the sessions expect the result of a message.
  private var flights: [(peer: NodeID, message: MessageID, tag: UInt64)] = []
  static let flightBytes = MemoryLayout<(NodeID, MessageID, UInt64)>.stride
  /// The epoch and sequence of the services advertisements that the sessions know.
  private var heard: [(node: NodeID, epoch: UInt64, sequence: UInt64)] = []

  init(_ settings: NodeSettings, _ cryptography: any NodeCryptography) {
    let point = settings.point
    precondition(point.count == AdvertisementView.pointByteCount)
    sessions = Sessions(
      local: settings.id, point: PublicPoint(InlineArray { point[$0] }), cryptography, seed: settings.epoch)
  }

  mutating func sent(_ message: MessageID, to peer: NodeID, tag: UInt64) { flights.append((peer, message, tag)) }

  /// Removes and returns the tag of a completed message, or nil if no session sent it.
  mutating func takeFlight(_ message: MessageID, to peer: NodeID) -> UInt64? {
    guard let index = flights.firstIndex(where: { $0.message == message && $0.peer == peer }) else { return nil }
    return flights.remove(at: index).tag
  }

  /// The nodes whose services the sessions know.
  var advertisers: [NodeID] { heard.map { $0.node } }

  /// Records a node's services advertisement, or nil if the node has none. Returns true if the advertisement differs
  /// from the last one recorded for this node.
  mutating func record(_ stamp: (epoch: UInt64, sequence: UInt64)?, of node: NodeID) -> Bool {
    let known = heard.firstIndex { $0.node == node }
    if let stamp, let known, heard[known].epoch == stamp.epoch, heard[known].sequence == stamp.sequence { return false }
    if let known { heard.remove(at: known) }
    if let stamp { heard.append((node, stamp.epoch, stamp.sequence)) }
    return stamp != nil || known != nil
  }
}

/// The sessions of applications on this node.
extension Node {
  /// The sessions, for requests of applications. Call `advertise`, `withdraw` and the send methods on `Node` instead,
  /// because the node must act on them too. Drain the node after each call (the drain rule of `Node`).
  public var sessions: Sessions { hosted.sessions }

  /// Offers a service to all nodes. See `Sessions.advertise`.
  public func advertise(_ service: Service, now: Instant) throws(SessionError) {
    try sessions.advertise(service)
    servicesChanged(now)
  }

  /// Withdraws a service. See `Sessions.withdraw`.
  public func withdraw(_ endpoint: UInt32, now: Instant) {
    sessions.withdraw(endpoint, now: now)
    servicesChanged(now)
  }

  /// Sends a message to members of a session. See `Sessions.send`.
  public func sendInSession(
    _ data: [UInt8], _ handle: SessionHandle, to: [MemberAddress]? = nil, lane: Lane = .interactive, now: Instant
  ) throws(SessionError) -> SessionMessageID {
    let (id, outputs) = try sessions.send(
      data, in: handle, to: to, lane: lane, now: now, canSend: { canSend(byteCount: $2, to: $0, lane: $1) })
    for output in outputs { post(output, now) }
    return id
  }

  /// Sends a message to members of a session unreliably. See `Sessions.sendUnreliably`.
  public func sendUnreliablyInSession(
    _ data: [UInt8], _ handle: SessionHandle, to: [MemberAddress]? = nil, now: Instant
  ) throws(SessionError) {
    for output in try sessions.sendUnreliably(data, in: handle, to: to, now: now) { post(output, now) }
  }

  private func servicesChanged(_ now: Instant) {
    services = sessions.servicesAdvertisement
    originator.servicesChanged()
    settle(now)
  }

  // MARK: Input of the sessions

  /// Notifies the sessions that a peer was found, changed or lost.
  func reportToSessions(_ event: PeerEvent, _ now: Instant) {
    switch event {
    case .found(let peer), .changed(let peer):
      let isAnotherLife = sessions.peerFound(peer.id, epoch: peer.epoch, isSealed: isSealed(peer.id), now: now)
      reportServices(of: peer.id)
      if isAnotherLife { sessions.reportServices(of: peer.id) }
    case .lost(let node):
      sessions.peerLost(node)
      _ = hosted.record(nil, of: node)
    }
  }

  /// Notifies the sessions of a peer's services. Services of an earlier boot epoch are reported as none.
  func reportServices(of node: NodeID) {
    guard directory.isPeer(node), let index = mesh.index(of: node) else { return }
    var stamp = mesh.stamp(of: index, .services)
    if stamp?.epoch != mesh.epoch(of: node) { stamp = nil }
    guard hosted.record(stamp, of: node) else { return }
    var body: [UInt8]?
    if stamp != nil, let bytes = mesh.advertisement(of: index, .services),
      let advertisement = try? AdvertisementView(bytes)
    {
      body = array(advertisement.body)
    }
    noteIngress(of: node)
    sessions.peerServices(node, body)
  }

  /// Sets the address to which the sessions charge the slots of a node. Called before input for which the sessions may
  /// need a slot.
  func noteIngress(of node: NodeID) {
    guard let route = mesh.route(to: node) else { return }
    sessions.note(
      node, ingress: linkSlots.ingress(Int(route.link)), isPinned: trust?.isPinnedByOperator(node) ?? false)
  }

  /// Removes expired advertisements, and notifies the sessions of lost services.
  func expireAdvertisements(_ now: Instant) {
    if mesh.expiryDeadline > now || !routeCost.mayExpire(now) { return }
    mesh.expire(now: now)
    for node in hosted.advertisers { reportServices(of: node) }
  }

  /// The next output for the application. Messages and results of sessions are passed to the sessions here, and probes
  /// are dropped. Also nil when this pass of the event loop may take no more messages (`MessageIntake`).
  func nextApplicationOutput(_ now: Instant) -> Output? {
    if !intake.isSpent(now: now) { receiveHeld(now) }
    while !intake.isSpent(now: now), let output = associations.nextOutput() {
      switch output {
      case .messageWaiting(let peer, let pending) where SessionKind(rawValue: pending.kind) != nil:
        if let association = associations.association(with: peer) { receiveFirst(pending.lane, association, now) }
      case .messageWaiting(let peer, let pending) where pending.kind == Probe.kind:
        _ = takeMessage(from: peer, pending.lane, now: now)
      case .datagram(let peer, let datagram) where datagram.kind == SessionKind.message.rawValue:
        intake.took(datagram.bytes.count, now: now)
        receive(datagram, from: peer, now)
      case .completed(let peer, let completion):
        guard let tag = hosted.takeFlight(completion.message, to: peer) else { return output }
        sessions.completed(tag, isDelivered: completion.outcome == .delivered, now: now)
      case .dial, .transmit, .close, .peer, .decisionWanted, .epochRaised, .session, .messageWaiting, .datagram:
        return output
      }
    }
    return nil
  }

  // MARK: Output of the sessions

  /// Sends the session messages that are due, and returns the next event for an application.
  func nextSessionOutput(_ now: Instant) -> Output? {
    while let output = sessions.nextOutput(now: now, canSend: { hasRoom($2, to: $0, $1) }) { post(output, now) }
    guard let event = sessions.nextEvent() else { return nil }
    if case .decisionWanted(_, let address) = event { wantCertificates(of: address.node, now) }
    return .session(event)
  }

  /// Whether a session message may be queued in its channel. Session streams take turns in the bulk lane, so the unsent
  /// data of only a few turns may wait there.
  private func hasRoom(_ byteCount: Int, to peer: NodeID, _ lane: Lane) -> Bool {
    guard canSend(byteCount: byteCount, to: peer, lane: lane) else { return false }
    guard lane == .bulk, let channel = associations.association(with: peer)?.channel else { return true }
    let most = min(max(channel.windowBytes(.bulk), SessionLimits.streamLaneBytes), SessionLimits.streamLaneBytesMax)
    return channel.unsentBytes(.bulk) + byteCount <= most
  }

  private func post(_ output: SessionOutput, _ now: Instant) {
    guard let lane = output.lane else {
      _ = try? sendUnreliable(kind: output.kind.rawValue, output.bytes.span.bytes, to: output.to, now: now)
      return
    }
    do throws(AssociationError) {
      let message = try send(
        kind: output.kind.rawValue, output.bytes.span.bytes, to: output.to, lane: lane, now: now)
      hosted.sent(message, to: output.to, tag: output.tag)
    } catch {
      sessions.completed(output.tag, isDelivered: false, now: now)
    }
  }
}
