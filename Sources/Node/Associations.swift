import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives
import Seal

/// The reason for refusing a message.
public enum AssociationError: Error, Equatable, Sendable {
  /// The peer is unknown, or no route leads to it.
  case unknownPeer
  /// There are associations with `Limits.channelsMax` peers, and none of them can be evicted.
  case tooManyPeers
  /// The encryption preferences are incompatible, or one node refused the key of the other node.
  case refused(SealRefusal)
  /// The channel is full, or the message is too long.
  case channel(SendError)
}

/// An association: the state of messaging with one peer. An association has a channel and the protection of the
/// channel's payloads.
final class Association {
  let peer: NodeID
  fileprivate(set) var channel: Channel
  /// The peer's boot epoch, from its advertisements.
  var epoch: UInt64
  var protection: Protection
  var route: Route?
  /// The slot of the link to which the association is charged. nil after that link has closed, until the peer has a
  /// route.
  var ingress: Int?
  /// When a payload was last sent or received; initially when the association began.
  var usedAt: Instant
  /// Whether a handshake that the peer requested was already charged to the link that delivered the request.
  var isHandshakeCharged = false
  /// The lanes (ordered streams of messages) whose first message is held back until the sessions of applications may
  /// receive it, one bit each. `Checking.swift` handles the messages that are held back.
  var heldLanes: UInt8 = 0
  /// Frames are ready, but the link's queue already has enough frames. The association is served again when the link
  /// has sent frames, so no timer is set.
  var isBlocked = false
  /// The bytes of payloads to and from the peer in the current window of `TrafficDemand`.
  var windowByteCount = 0
  /// The lanes whose first message was reported to the application, one bit each.
  private var toldLanes: UInt8 = 0

  init(
    _ peer: NodeID, _ channel: Channel, epoch: UInt64, _ protection: Protection, from ingress: Int?, now: Instant
  ) {
    self.peer = peer
    self.ingress = ingress
    usedAt = now
    self.channel = channel
    self.epoch = epoch
    self.protection = protection
  }

  /// Whether eviction does no harm: the peer has no route or has not proved its key, and the application has read
  /// everything.
  var isEvictable: Bool { (route == nil || protection.isUnproven) && isRead }

  /// Whether the application has taken all complete messages and all completions, and no further completion will
  /// follow.
  fileprivate var isRead: Bool { !channel.hasUntakenCompletions && !hasUnreadMessages }

  /// Whether complete, acknowledged messages wait for the application.
  var hasUnreadMessages: Bool {
    channel.pendingMessage(.interactive) != nil || channel.pendingMessage(.bulk) != nil
  }

  /// Whether the application was notified of a message and has not taken it. Messages that are held back are not
  /// considered.
  var awaitsApplication: Bool {
    [Lane.interactive, .bulk].contains {
      (toldLanes & ~heldLanes) & 1 << $0.rawValue != 0 && channel.pendingMessage($0) != nil
    }
  }

  /// The next output for the application about this peer.
  fileprivate func nextOutput() -> Node.Output? {
    if let completion = channel.nextCompletion() { return .completed(peer, completion) }
    if let pending = nextUntold(.interactive) ?? nextUntold(.bulk) { return .messageWaiting(peer, pending) }
    return channel.nextDatagram().map { .datagram(peer, $0) }
  }

  private func nextUntold(_ lane: Lane) -> PendingMessage? {
    guard toldLanes & 1 << lane.rawValue == 0, let pending = channel.pendingMessage(lane) else { return nil }
    toldLanes |= 1 << lane.rawValue
    return pending
  }

  fileprivate func takeMessage(_ lane: Lane) -> ReceivedMessage? {
    toldLanes &= ~(1 << lane.rawValue)
    return channel.nextMessage(lane)
  }

  fileprivate func begin(_ channel: Channel) {
    self.channel = channel
    toldLanes = 0
    heldLanes = 0
  }
}

/// The associations of a node, oldest first.
struct Associations {
  /// How many frames of maximum length from this node a link queues in each priority. Further data waits in its
  /// channel, where an urgent message can overtake it.
  static let framesAhead = 2

  private(set) var all: [Association] = []
  private let budget = RingBudget()
  private var epoch: UInt64
  /// A number that is added to the boot epoch for the epoch of a new channel. The number increases with each discarded
  /// channel, so no two channels use the same epoch.
  private var lives: UInt64 = 0

  /// The results of sends of evicted associations, which the application has not taken.
  private var leftCompletions: [(peer: NodeID, completion: Completion)] = []

  /// Round-robin positions for sending frames, for outputs to the application, and for held messages.
  private var turn = 0, outputTurn = 0, heldTurn = 0

  init(epoch: UInt64) { self.epoch = epoch }

  /// The next association in round-robin order. There must be at least one association.
  mutating func nextTurn() -> Association {
    turn = turn + 1 < all.count ? turn + 1 : 0
    return all[turn]
  }

  /// All associations. Each call starts one association later in the order.
  mutating func nextRound() -> [Association] {
    heldTurn = heldTurn + 1 < all.count ? heldTurn + 1 : 0
    return Array(all[heldTurn...] + all[..<heldTurn])
  }

  /// The next output for the application, round-robin over peers.
  mutating func nextOutput() -> Node.Output? {
    if !leftCompletions.isEmpty {
      let next = leftCompletions.removeFirst()
      return .completed(next.peer, next.completion)
    }
    for _ in all.indices {
      outputTurn = outputTurn + 1 < all.count ? outputTurn + 1 : 0
      if let output = all[outputTurn].nextOutput() { return output }
    }
    return nil
  }

  func association(with peer: NodeID) -> Association? { all.first { $0.peer == peer } }

  /// The associations whose route begins with the link in a slot.
  func all(behind slot: Int) -> [Association] { all.filter { $0.route.map { Int($0.link) } == slot } }

  /// Begins an association. There must be fewer than `Limits.channelsMax` associations.
  mutating func begin(
    with peer: NodeID, epoch remoteEpoch: UInt64, _ protection: Protection, route: Route?, from ingress: Int?,
    now: Instant
  ) -> Association {
    precondition(all.count < Limits.channelsMax)
    let channel = Channel(localEpoch: epoch &+ lives, remoteEpoch: remoteEpoch, budget: budget)
    let association = Association(peer, channel, epoch: remoteEpoch, protection, from: ingress, now: now)
    all.append(association)
    Self.setRoute(association, route, oldPathLives: false, now)
    return association
  }

  /// Evicts an association. The unfinished sends of an evicted association fail.
  mutating func remove(_ association: Association) {
    guard let index = all.firstIndex(where: { $0 === association }) else { return }
    association.channel.close()
    while let completion = association.channel.nextCompletion() {
      leftCompletions.append((association.peer, completion))
    }
    beginLife(after: association.channel)
    all.remove(at: index)
  }

  /// Removes the charge of associations that were charged to a closed link.
  func linkClosed(_ slot: Int) {
    for association in all where association.ingress == slot { association.ingress = nil }
  }

  /// Gives an association a new channel if its channel was closed by a refusal that has ended. The application must
  /// first have taken all completions and messages of the old channel, because these messages were acknowledged.
  mutating func revive(_ association: Association, now: Instant) {
    guard association.channel.isClosed, association.protection.refusal == nil, association.isRead else { return }
    beginLife(after: association.channel)
    association.begin(
      Channel(localEpoch: epoch &+ lives, remoteEpoch: association.channel.remoteEpoch, budget: budget))
    let route = association.route
    association.route = nil
    Self.setRoute(association, route, oldPathLives: false, now)
  }

  /// Restarts all associations with this node's new epoch.
  mutating func epochRaised(to epoch: UInt64) {
    self.epoch = epoch
    lives = 0
    for association in all {
      association.channel.localRestarted(epoch: epoch)
      // Epoch 0 stands for an unknown epoch. `renewProtection` replaces epoch 0 by the peer's known epoch, now or
      // later, and begins the session again.
      association.epoch = 0
    }
  }

  /// Gives the next channel a later epoch than the last epoch of the channel `former`.
  private mutating func beginLife(after former: Channel) { lives = max(lives, former.localEpoch &- epoch) + 1 }

  /// Applies new routes. `isUp` returns whether the link in a slot still leads to the given neighbour.
  func routesChanged(_ mesh: borrowing Mesh, now: Instant, isUp: (_ slot: Int, _ neighbour: NodeID) -> Bool) {
    for association in all {
      if let epoch = mesh.epoch(of: association.peer), epoch > association.channel.remoteEpoch {
        association.channel.remoteRestarted(epoch: epoch)
      }
      let oldPathLives = association.route.map { isUp(Int($0.link), $0.firstHop) } ?? false
      Self.setRoute(association, mesh.route(to: association.peer), oldPathLives: oldPathLives, now)
    }
  }

  func handleTimeouts(now: Instant) {
    for association in all {
      association.channel.handleTimeout(now: now)
      association.protection.seal?.handleTimeout(now: now)
    }
  }

  func deadline(now: Instant) -> Instant {
    var earliest = Instant.never
    for association in all {
      let deadline = association.channel.nextDeadline
      if deadline > now || !association.isBlocked { earliest = min(earliest, deadline) }
      if let seal = association.protection.seal {
        earliest = min(earliest, seal.nextDeadline(hasRoute: association.route != nil))
      }
    }
    return earliest
  }

  private static func setRoute(_ association: Association, _ route: Route?, oldPathLives: Bool, _ now: Instant) {
    let old = association.route
    association.route = route
    guard let route else { return association.channel.routeLost() }
    if association.ingress == nil { association.ingress = Int(route.link) }
    if old == nil { association.protection.seal?.routeFound() }
    let isSame =
      old?.link == route.link && old?.firstHop == route.firstHop && old?.hops == route.hops
      && old?.payloadBytesMax == route.payloadBytesMax
    if isSame {
      if old?.cost != route.cost { association.channel.pathChanged(now: now) }
      return
    }
    association.channel.routeChanged(
      pathMTU: association.protection.payloadBytesMax(route), hops: Int(route.hops), oldPathLives: oldPathLives,
      now: now)
    // Without a route the channel's timers stop, and a timer may have become due in that time.
    if old == nil { association.channel.handleTimeout(now: now) }
  }
}

/// Messages between this node and its peers.
extension Node {
  /// Queues a message for reliable delivery: complete, exactly once, and in the order of its lane. `Output.completed`
  /// reports the result. Throws the reason for a refusal; after `.channel(.full)` retry later.
  public func send(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, lane: Lane, now: Instant
  ) throws(AssociationError) -> MessageID {
    guard let association = try association(with: peer, now) else { throw .tooManyPeers }
    if let refusal = association.protection.refusal { throw .refused(refusal) }
    let id: MessageID
    do throws(SendError) {
      id = try association.channel.send(kind: kind, message, lane: lane, now: now)
    } catch {
      throw .channel(error)
    }
    isPumpDue = true
    return id
  }

  /// Sends a message immediately and unreliably. An unreliable message arrives complete and at most once, or not at
  /// all. Returns false if the message was dropped because the link's realtime queue is full or no session exists yet.
  /// If no session exists, one is begun. Throws `.unknownPeer`, `.tooManyPeers`, `.refused`, or `.channel(.tooLong)` if
  /// the message exceeds one frame of the path (`datagramBytesMax`).
  @discardableResult
  public func sendUnreliable(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, now: Instant
  ) throws(AssociationError) -> Bool {
    guard let association = try association(with: peer, now) else { throw .tooManyPeers }
    if let refusal = association.protection.refusal { throw .refused(refusal) }
    guard let longest = association.channel.datagramBytesMax else { throw .unknownPeer }
    guard message.byteCount <= longest else { throw .channel(.tooLong) }
    guard association.protection.mayFlow else {
      association.protection.seal?.want()
      isPumpDue = true
      return false
    }
    let byteCount = association.channel.writeDatagram(
      kind: kind, message, into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]))
    association.usedAt = now
    countTraffic(byteCount, with: association, now)
    return sendPayload(.datagram, byteCount, .realtime, to: association)
  }

  /// The longest message that `sendUnreliable` accepts for a peer now, in bytes. nil without a route.
  public func datagramBytesMax(to peer: NodeID) -> Int? {
    if let association = associations.association(with: peer) { return association.channel.datagramBytesMax }
    guard let route = mesh.route(to: peer), let protection = protection(of: peer) else { return nil }
    return protection.payloadBytesMax(route) - Datagram.headerBytes
  }

  /// Whether `send` would accept a message of this length now.
  public func canSend(byteCount: Int, to peer: NodeID, lane: Lane) -> Bool {
    guard let association = associations.association(with: peer) else { return isPresent(peer) }
    if association.protection.refusal != nil { return false }
    return association.channel.canSend(byteCount: byteCount, lane: lane)
  }

  /// Takes the message that `Output.messageWaiting` reported. Taking a message opens the flow-control window of its
  /// lane. The result is nil if the association was restarted since the report.
  public func takeMessage(from peer: NodeID, _ lane: Lane, now: Instant) -> ReceivedMessage? {
    guard let message = associations.association(with: peer)?.takeMessage(lane) else { return nil }
    intake.took(message.bytes.count, now: now)
    isPumpDue = true
    return message
  }

  /// The counters of a lane to one peer, or nil without an association.
  public func statistics(of peer: NodeID, _ lane: Lane) -> LaneStatistics? {
    associations.association(with: peer)?.channel.statistics(lane)
  }

  /// Handles a routed frame for this node that arrived on link `slot`.
  func deliver(_ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant) throws(FrameError) {
    guard let type = header.knownType else { throw .unknownType }
    // A frame with the flag `FrameHeader.sealed` may travel outside TLS, where only end-to-end encryption authenticates
    // it. So exactly frames of the type `.sealed` have that flag.
    if (type == .sealed) != (header.flags & FrameHeader.sealed != 0) { throw .malformed }
    switch type {
    case .segment, .acknowledgement, .datagram, .reset:
      guard let isClear = isClear(with: header.source) else { throw .unexpected }
      guard isClear else { throw .inClear }
      if associations.association(with: header.source) == nil {
        // An acknowledgement or a reset refers to an association, and none exists.
        if type == .acknowledgement || type == .reset { throw .unexpected }
        if !handshakes.take(by: slot, now: now) { throw .tooMany }
      }
      guard let association = try? association(with: header.source, from: slot, now) else { throw .unexpected }
      try take(type, payload, association, from: slot, now)
    case .handshake: try receiveHandshake(header, payload, from: slot, now)
    case .sealed: try receiveSealed(header, payload, from: slot, now)
    case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .joined: throw .unexpected
    }
  }

  /// Handles a payload of a peer's channel, after decryption.
  func take(
    _ type: FrameType, _ payload: RawSpan, _ association: Association, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    association.usedAt = now
    countTraffic(payload.byteCount, with: association, now)
    do throws(ChannelError) {
      try receive(type, payload, association, now)
    } catch {
      journal.record(
        .debug, .segmentRefused, at: now, UInt64(type.rawValue), UInt64(payload.byteCount), node: association.peer)
      switch error {
      case .otherDestinationEpoch(let meant):
        if type == .segment || type == .joined { sendReset(meant, association, from: slot, now) }
        throw .stale
      case .otherSourceEpoch(let epoch):
        // The peer restarted, and its advertisement has not arrived yet.
        guard epoch > association.channel.remoteEpoch else { throw .stale }
        association.channel.remoteRestarted(epoch: epoch)
        do throws(ChannelError) { try receive(type, payload, association, now) } catch { throw .malformed }
      case .messageTooLong(let meant):
        sendReset(meant, association, from: slot, now)
        throw .malformed
      case .malformed, .acknowledgesUnsent: throw .malformed
      case .alreadyReceived: throw .duplicate
      case .staleReset, .closed: throw .stale
      }
    }
  }

  /// Moves frames from the channels to the links while the links accept more, one frame per peer in turn. The next call
  /// continues the round, so even a link with room for one frame serves all peers over time.
  ///
  /// Requests of applications only set `isPumpDue`. `nextOutput` calls this method last, so the messages of one pass of
  /// the event loop share segments.
  func pumpAssociations(_ now: Instant) {
    isPumpDue = false
    var idleCount = 0
    while idleCount < associations.all.count {
      idleCount = pump(associations.nextTurn(), now) ? 0 : idleCount + 1
    }
  }

  private func receive(
    _ type: FrameType, _ payload: RawSpan, _ association: Association, _ now: Instant
  ) throws(ChannelError) {
    switch type {
    case .segment: try association.channel.receiveSegment(payload, now: now)
    case .acknowledgement: try association.channel.receiveAcknowledgement(payload, now: now)
    case .datagram: try association.channel.receiveDatagram(payload, now: now)
    case .reset: try association.channel.receiveReset(payload, now: now)
    case .joined: try association.channel.receiveJoined(payload, now: now)
    case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .handshake, .sealed:
      preconditionFailure("not of a channel")
    }
  }

  /// The association with a peer, created on demand; nil if there are too many associations. `slot` is the link whose
  /// frame needs the association, and that link is charged for it. Without a slot, this node needs the association, and
  /// the first link of the route is charged. `isClaimed` means that anyone could have forged the frame that needs the
  /// association.
  func association(
    with peer: NodeID, from slot: Int? = nil, isClaimed: Bool = false, _ now: Instant
  ) throws(AssociationError) -> Association? {
    if let known = associations.association(with: peer) {
      associations.revive(known, now: now)
      // A forged frame may have created the association, and this node's use of it must not be charged to the sender of
      // that frame.
      if slot == nil, known.protection.seal?.isOpen != true, let route = known.route { known.ingress = Int(route.link) }
      return known
    }
    guard isPresent(peer), let epoch = mesh.epoch(of: peer), let protection = protection(of: peer) else {
      throw .unknownPeer
    }
    if let refusal = protection.refusal { throw .refused(refusal) }
    let route = mesh.route(to: peer)
    let ingress = slot ?? route.map { Int($0.link) }
    let isSealed = protection.seal != nil
    guard takeAssociationSlot(for: peer, ingress ?? FairShare.ownHolder, isSealed: isSealed, isClaimed: isClaimed, now)
    else {
      return nil
    }
    let cause = journal.cause(ofLink: ingress ?? FairShare.ownHolder).about(.none)
    journal.record(.info, .channelOpened, at: now, epoch, node: peer, cause: cause)
    return associations.begin(with: peer, epoch: epoch, protection, route: route, from: ingress, now: now)
  }

  /// Whether the peer has a route, or was not yet reported lost. Messages to a peer that applications still see wait
  /// for its next route.
  private func isPresent(_ peer: NodeID) -> Bool { mesh.route(to: peer) != nil || directory.peer(peer) != nil }

  private func pump(_ association: Association, _ now: Instant) -> Bool {
    association.isBlocked = false
    tend(association, now)
    guard let route = association.route, association.protection.mayFlow else { return false }
    let link = links[Int(route.link)]
    let ahead = Associations.framesAhead * (link.payloadBytesMax + FrameHeader.byteCount)
    let isBulkFull = link.ownQueuedByteCount(.bulk) >= ahead
    association.isBlocked = isBulkFull
    if link.ownQueuedByteCount(.interactive) >= ahead || !link.hasRoomForOwn {
      association.isBlocked = true
      return false
    }
    let readsJoined = association.protection.seal?.peerReadsJoined ?? false
    let frame = association.channel.nextFrame(
      into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]), now: now, interactiveOnly: isBulkFull,
      isQueued: (
        link.hasOwnQueued(.interactive, to: association.peer), link.hasOwnQueued(.bulk, to: association.peer)
      ), joins: (readsJoined, readsJoined && link.queuedByteCount(.bulk) == 0))
    guard let frame else { return false }
    association.usedAt = now
    countTraffic(frame.byteCount, with: association, now)
    return sendPayload(FrameType(frame.type), frame.byteCount, FramePriority(frame), to: association)
  }

  /// Anyone could have forged an unencrypted payload, so a reset in reply is charged to the link that delivered the
  /// payload.
  private func sendReset(_ meant: UInt64, _ association: Association, from slot: Int, _ now: Instant) {
    guard association.protection.seal != nil || replies.take(by: slot, now: now) else { return }
    Reset(meantEpoch: meant, currentEpoch: association.channel.localEpoch)
      .encode(into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]))
    _ = sendPayload(.reset, Reset.byteCount, .interactive, to: association)
  }
}

extension FrameType {
  fileprivate init(_ type: PayloadType) {
    switch type {
    case .segment: self = .segment
    case .acknowledgement: self = .acknowledgement
    case .datagram: self = .datagram
    case .reset: self = .reset
    case .joined: self = .joined
    }
  }
}

extension FramePriority {
  /// Acknowledgements are small, and windows depend on acknowledgements, which therefore never wait behind bulk data.
  fileprivate init(_ payload: OutgoingPayload) {
    self = payload.lane == .bulk && payload.type != .acknowledgement ? .bulk : .interactive
  }
}
