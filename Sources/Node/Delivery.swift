import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives

/// Why a message was not taken.
public enum DeliveryRefusal: Error, Equatable, Sendable {
  /// No such peer is known, or there is no way to it.
  case unknownPeer
  /// Messages are under way to `Limits.channelsMax` peers already.
  case tooManyPeers
  /// The two nodes do not agree on how to talk.
  case refused(SealRefusal)
  /// The channel is full, or the message too long.
  case channel(SendRefusal)
}

/// One peer with which messages are exchanged.
final class Conversation {
  let peer: NodeID
  fileprivate(set) var channel: Channel
  /// The peer's boot epoch, as its advertisements state it.
  var epoch: UInt64
  var protection: Protection
  var route: Route?
  /// Frames are ready, but the link's queue is as full as it should be: it is looked at again when the link
  /// has sent, not by the clock.
  var isBlocked = false

  init(_ peer: NodeID, _ channel: Channel, epoch: UInt64, _ protection: Protection) {
    self.peer = peer
    self.channel = channel
    self.epoch = epoch
    self.protection = protection
  }

  /// Nobody would miss it: unreachable or never authentic, nothing under way, and nothing that the sender was told is
  /// delivered waits to be read.
  var mayBeForgotten: Bool {
    (route == nil || protection.isUnproven) && !channel.hasUnfinishedSends
      && Lane.allCases.allSatisfy { channel.pendingMessage($0) == nil }
  }
}

/// The conversations of a node, in the order in which they began.
struct Delivery {
  /// A link's queue takes this many of its longest frames from this node at once; the rest waits in the
  /// channel, where an urgent message still overtakes it.
  static let framesAhead = 2

  private(set) var conversations: [Conversation] = []
  private let budget = RingBudget()
  private let epoch: UInt64
  /// Counts up when a channel is made after one was forgotten, so that no two lives share an epoch.
  private var lives: UInt64 = 0

  /// Whose turn it was last.
  private var turn = 0

  init(epoch: UInt64) { self.epoch = epoch }

  /// The next conversation in turn. There must be one.
  mutating func nextTurn() -> Conversation {
    turn = turn + 1 < conversations.count ? turn + 1 : 0
    return conversations[turn]
  }

  func conversation(with peer: NodeID) -> Conversation? { conversations.first { $0.peer == peer } }

  /// A new conversation; nil when all places are taken by peers that may not be forgotten.
  mutating func begin(
    with peer: NodeID, epoch remoteEpoch: UInt64, _ protection: Protection, route: Route?, now: Instant
  ) -> Conversation? {
    if conversations.count == Limits.channelsMax {
      guard let idle = conversations.firstIndex(where: { $0.mayBeForgotten }) else { return nil }
      // Later than whatever the forgotten channel has come to.
      lives = max(lives, conversations[idle].channel.localEpoch &- epoch) + 1
      conversations.remove(at: idle)
    }
    let channel = Channel(localEpoch: epoch &+ lives, remoteEpoch: remoteEpoch, budget: budget)
    let conversation = Conversation(peer, channel, epoch: remoteEpoch, protection)
    conversations.append(conversation)
    Self.setRoute(conversation, route, oldPathLives: false, now)
    return conversation
  }

  /// A conversation that was refused, and is so no longer, goes on with a new channel.
  mutating func revive(_ conversation: Conversation, now: Instant) {
    guard conversation.channel.isClosed, conversation.protection.refusal == nil else { return }
    lives += 1
    conversation.channel = Channel(
      localEpoch: epoch &+ lives, remoteEpoch: conversation.channel.remoteEpoch, budget: budget)
    let route = conversation.route
    conversation.route = nil
    Self.setRoute(conversation, route, oldPathLives: false, now)
  }

  /// `isUp`: whether a link slot still leads to the neighbour that it led to.
  func routesChanged(_ mesh: borrowing Mesh, now: Instant, isUp: (_ slot: Int, _ neighbour: NodeID) -> Bool) {
    for conversation in conversations {
      if let epoch = mesh.epoch(of: conversation.peer), epoch > conversation.channel.remoteEpoch {
        conversation.channel.remoteRestarted(epoch: epoch)
      }
      let oldPathLives = conversation.route.map { isUp(Int($0.link), $0.firstHop) } ?? false
      Self.setRoute(conversation, mesh.route(to: conversation.peer), oldPathLives: oldPathLives, now)
    }
  }

  func handleTimeouts(now: Instant) {
    for conversation in conversations {
      conversation.channel.handleTimeout(now: now)
      conversation.protection.seal?.handleTimeout(now: now)
    }
  }

  func deadline(now: Instant) -> Instant {
    var earliest = Instant.never
    for conversation in conversations {
      let deadline = conversation.channel.nextDeadline
      if deadline > now || !conversation.isBlocked { earliest = min(earliest, deadline) }
      if let seal = conversation.protection.seal {
        earliest = min(earliest, seal.nextDeadline(hasRoute: conversation.route != nil))
      }
    }
    return earliest
  }

  private static func setRoute(_ conversation: Conversation, _ route: Route?, oldPathLives: Bool, _ now: Instant) {
    let old = conversation.route
    conversation.route = route
    guard let route else { return conversation.channel.routeLost() }
    if old == nil { conversation.protection.seal?.routeFound() }
    let isSame =
      old?.link == route.link && old?.firstHop == route.firstHop && old?.hops == route.hops
      && old?.payloadBytesMax == route.payloadBytesMax
    if isSame {
      if old?.cost != route.cost { conversation.channel.pathChanged(now: now) }
      return
    }
    conversation.channel.routeChanged(
      pathMTU: conversation.protection.payloadBytesMax(route), hops: Int(route.hops), oldPathLives: oldPathLives,
      now: now)
  }
}

/// Messages between this node and its peers.
extension Node {
  /// Take a message for reliable delivery: whole, once, in the order of its lane. Its completion comes through
  /// `nextCompletion`. Throws why nothing was taken; `.channel(.full)` means: later.
  public func send(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, lane: Lane, now: Instant
  ) throws(DeliveryRefusal) -> MessageID {
    guard let conversation = try conversation(with: peer, now) else { throw .tooManyPeers }
    if let refusal = conversation.protection.refusal { throw .refused(refusal) }
    let id: MessageID
    do throws(SendRefusal) {
      id = try conversation.channel.send(kind: kind, message, lane: lane, now: now)
    } catch {
      throw .channel(error)
    }
    pumpDelivery(now)
    return id
  }

  /// Send a message once, at once, beside everything reliable: it arrives whole or not at all, at most once. False when
  /// it was dropped, because the link's queue for such traffic is full or nothing is sealed with the peer yet (then it is
  /// about to be). Throws `.unknownPeer`, `.tooManyPeers`, `.refused`, or `.channel(.tooLong)` when the message does not
  /// fit one frame on the way there (`datagramBytesMax`).
  @discardableResult
  public func sendUnreliable(
    kind: UInt8, _ message: RawSpan, to peer: NodeID, now: Instant
  ) throws(DeliveryRefusal) -> Bool {
    guard let conversation = try conversation(with: peer, now) else { throw .tooManyPeers }
    if let refusal = conversation.protection.refusal { throw .refused(refusal) }
    guard let longest = conversation.channel.datagramBytesMax else { throw .unknownPeer }
    guard message.byteCount <= longest else { throw .channel(.tooLong) }
    guard conversation.protection.mayFlow else {
      conversation.protection.seal?.want()
      pumpDelivery(now)
      return false
    }
    let byteCount = conversation.channel.writeDatagram(
      kind: kind, message, into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]))
    return sendPayload(.datagram, byteCount, .realtime, to: conversation)
  }

  /// The longest message that `sendUnreliable` takes for a peer now; nil when there is no way to it.
  public func datagramBytesMax(to peer: NodeID) -> Int? {
    if let conversation = delivery.conversation(with: peer) { return conversation.channel.datagramBytesMax }
    guard let route = mesh.route(to: peer), let protection = protection(of: peer) else { return nil }
    return protection.payloadBytesMax(route) - Datagram.headerBytes
  }

  /// The next message that was sent unreliably and that `wants` wants; of those that nobody wants the oldest is dropped
  /// when newer ones come.
  public func nextUnreliableMessage(
    _ wants: (_ from: NodeID, _ kind: UInt8, _ byteCount: Int) -> Bool
  ) -> (from: NodeID, ReceivedDatagram)? {
    for conversation in delivery.conversations {
      guard let pending = conversation.channel.pendingDatagram,
        wants(conversation.peer, pending.kind, pending.byteCount),
        let datagram = conversation.channel.nextDatagram()
      else { continue }
      return (conversation.peer, datagram)
    }
    return nil
  }

  /// Whether `send` would take a message of this length now.
  public func canSend(byteCount: Int, to peer: NodeID, lane: Lane) -> Bool {
    guard let conversation = delivery.conversation(with: peer) else { return isPresent(peer) }
    if conversation.protection.refusal != nil { return false }
    return conversation.channel.canSend(byteCount: byteCount, lane: lane)
  }

  /// The end of a send, of whichever peer; each send that was taken has exactly one.
  public func nextCompletion() -> (peer: NodeID, Completion)? {
    for conversation in delivery.conversations {
      if let completion = conversation.channel.nextCompletion() { return (conversation.peer, completion) }
    }
    return nil
  }

  /// The next message that arrived and that `wants` wants; one that nobody wants stays, and in time its sender
  /// stops sending in that lane.
  public func nextMessage(
    now: Instant, _ wants: (_ from: NodeID, PendingMessage) -> Bool
  ) -> (from: NodeID, ReceivedMessage)? {
    for conversation in delivery.conversations {
      for lane in [Lane.interactive, .bulk] {
        guard let pending = conversation.channel.pendingMessage(lane), wants(conversation.peer, pending),
          let message = conversation.channel.nextMessage(lane)
        else { continue }
        pumpDelivery(now)
        return (conversation.peer, message)
      }
    }
    return nil
  }

  /// Counters of the lanes to one peer, nil when no message was exchanged with it.
  public func statistics(of peer: NodeID, _ lane: Lane) -> LaneStatistics? {
    delivery.conversation(with: peer)?.channel.statistics(lane)
  }

  /// A routed frame for this node.
  func deliver(_ header: FrameHeader, _ payload: RawSpan, _ now: Instant) throws(FrameRefusal) {
    guard let type = header.knownType else { throw .unknownType }
    // What travels beside TLS is authentic only by its seal.
    if (type == .sealed) != (header.flags & FrameHeader.sealed != 0) { throw .malformed }
    switch type {
    case .segment, .acknowledgement, .datagram, .reset:
      guard let isClear = isClear(with: header.source) else { throw .unexpected }
      guard isClear else { throw .inClear }
      guard let conversation = try? conversation(with: header.source, now) else { throw .unexpected }
      try take(type, payload, conversation, now)
    case .handshake: try receiveHandshake(header, payload, now)
    case .sealed: try receiveSealed(header, payload, now)
    case .hello, .ping, .pong, .goodbye, .advertisement, .denyList: throw .unexpected
    }
  }

  /// What a peer said, whoever carried it.
  func take(
    _ type: FrameType, _ payload: RawSpan, _ conversation: Conversation, _ now: Instant
  ) throws(FrameRefusal) {
    do throws(ChannelRefusal) {
      try receive(type, payload, conversation, now)
    } catch {
      journal.record(
        .debug, .segmentRefused, at: now, UInt64(type.rawValue), UInt64(payload.byteCount), node: conversation.peer)
      switch error {
      case .otherDestinationEpoch(let meant):
        if type == .segment { sendReset(meant, conversation) }
        throw .stale
      case .otherSourceEpoch(let epoch):
        // A later life of the other end that its advertisement has not told of yet.
        guard epoch > conversation.channel.remoteEpoch else { throw .stale }
        conversation.channel.remoteRestarted(epoch: epoch)
        do throws(ChannelRefusal) { try receive(type, payload, conversation, now) } catch { throw .malformed }
      case .malformed, .acknowledgesUnsent, .messageTooLong: throw .malformed
      case .alreadyReceived: throw .duplicate
      case .staleReset, .closed: throw .stale
      }
    }
  }

  /// Move frames from the channels to the links, a frame of each peer in turn, while the links want more. The turn goes
  /// on where it ended, so that room for one frame is everybody's in time.
  func pumpDelivery(_ now: Instant) {
    var idleCount = 0
    while idleCount < delivery.conversations.count {
      idleCount = pump(delivery.nextTurn(), now) ? 0 : idleCount + 1
    }
  }

  private func receive(
    _ type: FrameType, _ payload: RawSpan, _ conversation: Conversation, _ now: Instant
  ) throws(ChannelRefusal) {
    switch type {
    case .segment: try conversation.channel.receiveSegment(payload, now: now)
    case .acknowledgement: try conversation.channel.receiveAcknowledgement(payload, now: now)
    case .datagram: try conversation.channel.receiveDatagram(payload, now: now)
    case .reset: try conversation.channel.receiveReset(payload, now: now)
    case .hello, .ping, .pong, .goodbye, .advertisement, .denyList, .handshake, .sealed:
      preconditionFailure("not of a channel")
    }
  }

  /// The conversation with a peer, begun if need be; nil when there are too many.
  func conversation(with peer: NodeID, _ now: Instant) throws(DeliveryRefusal) -> Conversation? {
    if let known = delivery.conversation(with: peer) {
      delivery.revive(known, now: now)
      return known
    }
    guard isPresent(peer), let epoch = mesh.epoch(of: peer), let protection = protection(of: peer) else {
      throw .unknownPeer
    }
    if let refusal = protection.refusal { throw .refused(refusal) }
    journal.record(.info, .channelOpened, at: now, epoch, node: peer)
    return delivery.begin(with: peer, epoch: epoch, protection, route: mesh.route(to: peer), now: now)
  }

  /// There is a way to a peer, or was one until a moment ago: what is said to a peer that applications still see waits for
  /// the next link as what is under way does.
  private func isPresent(_ peer: NodeID) -> Bool { mesh.route(to: peer) != nil || directory.peer(peer) != nil }

  private func pump(_ conversation: Conversation, _ now: Instant) -> Bool {
    conversation.isBlocked = false
    tend(conversation, now)
    guard let route = conversation.route, conversation.protection.mayFlow else { return false }
    let link = links[Int(route.link)]
    let ahead = Delivery.framesAhead * (link.payloadBytesMax + FrameHeader.byteCount)
    let isBulkFull = link.ownQueuedByteCount(.bulk) >= ahead
    conversation.isBlocked = isBulkFull
    if link.ownQueuedByteCount(.interactive) >= ahead || !link.hasRoomForOwn {
      conversation.isBlocked = true
      return false
    }
    let frame = conversation.channel.nextFrame(
      into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]), now: now, interactiveOnly: isBulkFull)
    guard let frame else { return false }
    return sendPayload(FrameType(frame.type), frame.byteCount, FramePriority(frame), to: conversation)
  }

  private func sendReset(_ meant: UInt64, _ conversation: Conversation) {
    Reset(meantEpoch: meant, currentEpoch: conversation.channel.localEpoch)
      .encode(into: UnsafeMutableRawBufferPointer(rebasing: payloadScratch[1...]))
    _ = sendPayload(.reset, Reset.byteCount, .interactive, to: conversation)
  }
}

extension FrameType {
  fileprivate init(_ type: PayloadType) {
    switch type {
    case .segment: self = .segment
    case .acknowledgement: self = .acknowledgement
    case .datagram: self = .datagram
    case .reset: self = .reset
    }
  }
}

extension FramePriority {
  /// Acknowledgements are small and hold up whole windows: they never wait behind bulk.
  fileprivate init(_ payload: OutgoingPayload) {
    self = payload.lane == .bulk && payload.type == .segment ? .bulk : .interactive
  }
}
