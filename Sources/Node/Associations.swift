import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives
import Seal

/// Why a message was refused.
public enum AssociationRefusal: Error, Equatable, Sendable {
  /// The peer is unknown, or there is no route to it.
  case unknownPeer
  /// There are already associations with `Limits.channelsMax` peers, and none gives way.
  case tooManyPeers
  /// The nodes' encryption preferences do not match, or one node refused the other's key.
  case refused(SealRefusal)
  /// The channel is full, or the message too long.
  case channel(SendRefusal)
}

/// The state of messaging with one peer.
final class Association {
  let peer: NodeID
  fileprivate(set) var channel: Channel
  /// The peer's boot epoch, from its advertisements.
  var epoch: UInt64
  var protection: Protection
  var route: Route?
  /// The link to which the place is charged; nil after it has closed, until there is a route again.
  var ingress: Int?
  /// When a payload was last sent or received, at first when the association began.
  var usedAt: Instant
  /// The handshake that a peer asked for was charged to the link that brought the request.
  var isHandshakeCharged = false
  /// The lanes whose first message waits until it may be received, one bit each.
  var heldLanes: UInt8 = 0
  /// Frames are ready, but the link's queue has enough. The association is served again when the link has sent, not by
  /// a timer.
  var isBlocked = false
  /// Bytes of payloads to and from the peer in the present window of `TrafficDemand`.
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

  /// Nobody misses it: the peer is unreachable or never proved its key, and the application has read everything.
  var isEvictable: Bool { (route == nil || protection.isUnproven) && isRead }

  /// The application has taken every completion that there is or will be, and every whole message.
  fileprivate var isRead: Bool { !channel.hasUntakenCompletions && !hasUnreadMessages }

  /// Whole messages that were acknowledged wait for the application.
  var hasUnreadMessages: Bool {
    channel.pendingMessage(.interactive) != nil || channel.pendingMessage(.bulk) != nil
  }

  /// The application was told of a message and has not taken it. Messages that wait here do not count.
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
  /// How many of its longest frames a link's queue takes from this node at once. The rest waits in the channel, where
  /// an urgent message overtakes it.
  static let framesAhead = 2

  private(set) var all: [Association] = []
  private let budget = RingBudget()
  private var epoch: UInt64
  /// Incremented when a channel is made after another was discarded, so that no two channels use the same epoch.
  private var lives: UInt64 = 0

  /// Results of sends of associations that gave way.
  private var leftCompletions: [(peer: NodeID, completion: Completion)] = []

  /// Round-robin positions: for sending frames, for outputs to the application, and for messages that are held.
  private var turn = 0, outputTurn = 0, heldTurn = 0

  init(epoch: UInt64) { self.epoch = epoch }

  /// The next association in the round. There must be at least one.
  mutating func nextTurn() -> Association {
    turn = turn + 1 < all.count ? turn + 1 : 0
    return all[turn]
  }

  /// All of them, from another one on each time.
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

  /// Begins an association, for which there must be a place.
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

  /// Ends an association that gives way. Its unfinished sends fail.
  mutating func remove(_ association: Association) {
    guard let index = all.firstIndex(where: { $0 === association }) else { return }
    association.channel.close()
    while let completion = association.channel.nextCompletion() {
      leftCompletions.append((association.peer, completion))
    }
    beginLife(after: association.channel)
    all.remove(at: index)
  }

  /// The link of a slot has closed.
  func linkClosed(_ slot: Int) {
    for association in all where association.ingress == slot { association.ingress = nil }
  }

  /// An association that was refused and no longer is gets a new channel once the application has taken all completions
  /// and messages of the old one: its messages were acknowledged.
  mutating func revive(_ association: Association, now: Instant) {
    guard association.channel.isClosed, association.protection.refusal == nil, association.isRead else { return }
    beginLife(after: association.channel)
    association.begin(
      Channel(localEpoch: epoch &+ lives, remoteEpoch: association.channel.remoteEpoch, budget: budget))
    let route = association.route
    association.route = nil
    Self.setRoute(association, route, oldPathLives: false, now)
  }

  /// This node has a later epoch, and every association begins again under it.
  mutating func epochRaised(to epoch: UInt64) {
    self.epoch = epoch
    lives = 0
    for association in all {
      association.channel.localRestarted(epoch: epoch)
      // As if the peer's were unknown: sessions begin again under both, at once or when the peer is known again.
      association.epoch = 0
    }
  }

  /// The next channel gets a later epoch than the former one reached by itself.
  private mutating func beginLife(after former: Channel) { lives = max(lives, former.localEpoch &- epoch) + 1 }

  /// `isUp`: whether a link slot still connects to this neighbour.
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
    // Timers stand without a route. One may have become due meanwhile.
    if old == nil { association.channel.handleTimeout(now: now) }
  }
}

/// Messages between this node and its peers.
extension Node {
  /// Queues a message for reliable delivery: complete, once, in the order of its lane. `Output.completed` reports the
  /// result. Throws why it was refused; after `.channel(.full)` try again later.
  public func send(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, lane: Lane, now: Instant
  ) throws(AssociationRefusal) -> MessageID {
    guard let association = try association(with: peer, now) else { throw .tooManyPeers }
    if let refusal = association.protection.refusal { throw .refused(refusal) }
    let id: MessageID
    do throws(SendRefusal) {
      id = try association.channel.send(kind: kind, message, lane: lane, now: now)
    } catch {
      throw .channel(error)
    }
    isPumpDue = true
    return id
  }

  /// Sends a message once, at once and unreliably: it arrives complete and at most once, or not at all. False when it
  /// was dropped, because the link's realtime queue is full, or no session with the peer exists yet (then one is
  /// begun). Throws `.unknownPeer`, `.tooManyPeers`, `.refused`, or `.channel(.tooLong)` when the message does not fit
  /// one frame of the path (`datagramBytesMax`).
  @discardableResult
  public func sendUnreliable(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, now: Instant
  ) throws(AssociationRefusal) -> Bool {
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

  /// The longest message that `sendUnreliable` accepts for a peer now, in bytes; nil without a route to it.
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

  /// Takes the message that `Output.messageWaiting` reported, and opens the window of its lane. Nil when it is gone,
  /// because the association began again.
  public func takeMessage(from peer: NodeID, _ lane: Lane, now: Instant) -> ReceivedMessage? {
    guard let message = associations.association(with: peer)?.takeMessage(lane) else { return nil }
    intake.took(message.bytes.count, now: now)
    isPumpDue = true
    return message
  }

  /// Counters of a lane to one peer; nil without an association.
  public func statistics(of peer: NodeID, _ lane: Lane) -> LaneStatistics? {
    associations.association(with: peer)?.channel.statistics(lane)
  }

  /// Handles a routed frame addressed to this node that came over the link of `slot`.
  func deliver(_ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant) throws(FrameRefusal) {
    guard let type = header.knownType else { throw .unknownType }
    // A frame outside TLS is authenticated only by its end-to-end encryption.
    if (type == .sealed) != (header.flags & FrameHeader.sealed != 0) { throw .malformed }
    switch type {
    case .segment, .acknowledgement, .datagram, .reset:
      guard let isClear = isClear(with: header.source) else { throw .unexpected }
      guard isClear else { throw .inClear }
      if associations.association(with: header.source) == nil {
        // Nothing is known that these could be about.
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
  ) throws(FrameRefusal) {
    association.usedAt = now
    countTraffic(payload.byteCount, with: association, now)
    do throws(ChannelRefusal) {
      try receive(type, payload, association, now)
    } catch {
      journal.record(
        .debug, .segmentRefused, at: now, UInt64(type.rawValue), UInt64(payload.byteCount), node: association.peer)
      switch error {
      case .otherDestinationEpoch(let meant):
        if type == .segment || type == .joined { sendReset(meant, association, from: slot, now) }
        throw .stale
      case .otherSourceEpoch(let epoch):
        // The other end restarted, and its advertisement has not arrived yet.
        guard epoch > association.channel.remoteEpoch else { throw .stale }
        association.channel.remoteRestarted(epoch: epoch)
        do throws(ChannelRefusal) { try receive(type, payload, association, now) } catch { throw .malformed }
      case .messageTooLong(let meant):
        sendReset(meant, association, from: slot, now)
        throw .malformed
      case .malformed, .acknowledgesUnsent: throw .malformed
      case .alreadyReceived: throw .duplicate
      case .staleReset, .closed: throw .stale
      }
    }
  }

  /// Moves frames from the channels to the links, one frame per peer in turn, while the links accept more. The next
  /// call continues the turn, so that a link with room for one frame serves all peers over time.
  ///
  /// What applications ask for only notes that it is due: `nextOutput` does it when all else is done, so that the messages
  /// of one wake-up share segments.
  func pumpAssociations(_ now: Instant) {
    isPumpDue = false
    var idleCount = 0
    while idleCount < associations.all.count {
      idleCount = pump(associations.nextTurn(), now) ? 0 : idleCount + 1
    }
  }

  private func receive(
    _ type: FrameType, _ payload: RawSpan, _ association: Association, _ now: Instant
  ) throws(ChannelRefusal) {
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

  /// The association with a peer, created on demand; nil when there are too many. `slot` is the link that brought the frame
  /// for which it is needed; without one this node needs it, and the first link of the route is charged. `isClaimed`: anybody
  /// can have forged that frame.
  func association(
    with peer: NodeID, from slot: Int? = nil, isClaimed: Bool = false, _ now: Instant
  ) throws(AssociationRefusal) -> Association? {
    if let known = associations.association(with: peer) {
      associations.revive(known, now: now)
      // A frame in the peer's name may have opened it. What this node itself needs is not charged to whoever sent that.
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
    guard takePlace(for: peer, ingress ?? FairShare.ownHolder, isSealed: isSealed, isClaimed: isClaimed, now) else {
      return nil
    }
    journal.record(.info, .channelOpened, at: now, epoch, node: peer)
    return associations.begin(with: peer, epoch: epoch, protection, route: route, from: ingress, now: now)
  }

  /// There is a route to the peer, or was until a moment ago. Messages to a peer that applications still see wait for
  /// the next link.
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

  /// In clear anybody can have forged the payload that is answered, so the link that brought it is charged.
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
  /// Acknowledgements are small, and windows depend on them: they never wait behind bulk data.
  fileprivate init(_ payload: OutgoingPayload) {
    self = payload.lane == .bulk && payload.type != .acknowledgement ? .bulk : .interactive
  }
}
