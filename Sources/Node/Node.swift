import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives

/// One node, whole and sans-IO: links, mesh, discovery of peers, associations with them. The firmware and the simulator
/// drive the same one.
///
/// **Drain rule.** Tell the node what happened: `openLink`, `handle`, `receive`, `receiveSealed`, and what the application
/// does: `send`, `takeMessage`, `decide`, `trustChanged`. Any number of such calls may come in a row. Then, before
/// waiting for anything, call `nextOutput` until it gives nil and act on each output. Acting on one may mean to tell
/// the node something, or to `pop` frames; the drain goes on behind it. At the end set a timer for
/// `nextDeadline(now:)`, and call `handle(.timeout)` no later than that.
///
/// `pop` may be called whenever a stream has room. What else waits for the room that it makes moves up at the next
/// `nextOutput`.
///
/// Time is an argument; nothing here reads a clock, a file or a random source.
public final class Node {
  /// What the rim tells the node.
  public enum Event {
    /// Discovery sees a place where a node may be reached. The caller's handle names it from now on; `hint`
    /// is the first 8 bytes of the id that it claims, 0 when it claims none.
    case candidateFound(UInt32, BearerKind, hint: UInt64)
    case candidateLost(UInt32)
    /// A dial that was commanded came to nothing.
    case dialFailed(UInt32)
    /// The stream of a link slot is gone.
    case linkClosed(Int)
    /// The next deadline has come.
    case timeout
  }

  /// What the node wants done, or has to tell. Streams come first; what the application is told comes of each peer in
  /// turn.
  public enum Output: Equatable {
    /// Connect to the candidate with this handle; answer with `openLink` or `.dialFailed`.
    case dial(UInt32)
    /// Frames wait for this link: take them with `pop` as far as its stream has room, and later as it has more.
    case transmit(Int)
    /// Send what `pop` still gives, end the stream, answer with `.linkClosed`.
    case close(Int)
    /// A peer came, changed or went.
    case peer(PeerEvent)
    /// A peer proved its key, and nothing flows before `decide`. The chain is in DER, the peer's own certificate first.
    /// Comes only with `NodeSettings.asksApplication`, once for each chain of a peer's life.
    case decisionWanted(NodeID, chain: [[UInt8]])
    /// The end of a send; each send that was taken has exactly one.
    case completed(NodeID, Completion)
    /// This message is the first one now of its lane from this peer: told once for each message. It stays, and closes
    /// the window of its lane in time, until `takeMessage`.
    case messageWaiting(NodeID, PendingMessage)
    /// A message that was sent unreliably. Of those that wait for the drain the oldest makes room for newer ones.
    case datagram(NodeID, ReceivedDatagram)
  }

  public let settings: NodeSettings
  public private(set) var counters = NodeCounters()

  let cryptography: any NodeCryptography
  let trust: (any NodeTrust)?
  var journal: Journal
  let local: Link.Local
  let links: Table<Link, Int>
  private let inboxes: Table<FrameInbox, Int>
  private let memory: UnsafeMutableRawBufferPointer
  private let pool: FramePool
  /// Where the octet of its type and a payload are written before they are queued or sealed, and after they were
  /// opened.
  let payloadScratch: UnsafeMutableRawBufferPointer
  /// Where a sealed payload is written before it is queued.
  let sealScratch: UnsafeMutableRawBufferPointer
  var mesh: Mesh
  var connector: Connector
  var flaps = FlapDamping()
  var directory = Directory()
  var associations: Associations
  /// Certificates that the application has not been handed.
  var decisions: [(peer: NodeID, chain: [[UInt8]])] = []
  var originator = Originator()

  /// Slots with something to tell the caller.
  private var transmitPending: UInt64 = 0
  private var closePending: UInt64 = 0
  /// Slots whose frames were taken with `pop` since the last look at what waits for their room.
  private var poppedSlots: UInt64 = 0
  private var identifierCounter: UInt32 = 0
  /// When a link's quarantine ends.
  var quarantineEnd = Instant.never

  /// What the forwarding path takes: the pool, the mesh, and each link with its control frames and the frame coming in.
  static let tableBytes =
    FramePool.byteCount + Mesh.byteCount + Table<Link, Int>.byteCount(Limits.linksMax)
    + Table<FrameInbox, Int>.byteCount(Limits.linksMax)
    + Limits.linksMax * (Arena.byteCount(FrameQueue.byteCount) + Arena.byteCount(Limits.frameBytesMax))

  /// All memory of the forwarding path is taken here, once. Pages are touched as they are used.
  public init(
    _ settings: NodeSettings, _ cryptography: any NodeCryptography, trust: (any NodeTrust)? = nil, journal: Journal,
    now: Instant
  ) {
    self.settings = settings
    self.cryptography = cryptography
    self.trust = trust
    self.journal = journal
    local = Link.Local(
      node: settings.id, epoch: settings.epoch, capabilities: settings.capabilities, name: settings.name)
    memory = .allocate(byteCount: Self.tableBytes, alignment: 4096)
    var arena = Arena(memory)
    pool = FramePool(arena.take(FramePool.byteCount))
    payloadScratch = .allocate(byteCount: 1 + Limits.framePayloadBytesMax, alignment: 16)
    sealScratch = .allocate(byteCount: Limits.framePayloadBytesMax, alignment: 16)
    mesh = Mesh(local: settings.id, arena.take(Mesh.byteCount))
    links = Table(count: Limits.linksMax, in: &arena)
    inboxes = Table(count: Limits.linksMax, in: &arena)
    for slot in links.indices {
      links[slot] = Link(arena.take(FrameQueue.byteCount), pool)
      inboxes[slot] = FrameInbox(arena.take(Limits.frameBytesMax))
    }
    connector = Connector(local: settings.id)
    associations = Associations(epoch: settings.epoch)
    originator.profileChanged()
    settle(now)
  }

  deinit {
    memory.deallocate()
    payloadScratch.deallocate()
    sealScratch.deallocate()
  }

  // MARK: Events

  /// A stream is authenticated: its other end holds the key of `peer`. Gives the slot of the new link, nil
  /// when all are taken (tell the other side to come back later, and end the stream).
  /// `handle` is the candidate's that was dialled, nil when the other side dialled.
  public func openLink(peer: NodeID, bearer: BearerKind, dialled handle: UInt32?, now: Instant) -> Int? {
    guard peer != settings.id else {
      journal.record(.notice, .selfDialled, at: now, UInt64(bearer.rawValue))
      if let handle { connector.lost(handle) }
      return nil
    }
    guard let slot = links.indices.first(where: { links[$0].state == .idle }) else {
      journal.record(.warning, .linkSlotsFull, at: now, UInt64(Limits.linksMax), UInt64(Limits.linksMax))
      if let handle { connector.dialFailed(handle, now: now) }
      return nil
    }
    inboxes[slot].removeAll()
    links[slot].open(peer: peer, bearer: bearer, isInbound: handle == nil, local: local, now: now)
    connector.linkOpened(slot, handle, peer: peer)
    wantTransmit(slot)
    if links.indices.count(where: isOpen) > settings.linksMax {
      journal.record(.notice, .linkSlotsFull, at: now, UInt64(settings.linksMax), UInt64(settings.linksMax), node: peer)
      closeLink(slot, .full, retryAfterSeconds: Timing.fullRetryAfterSeconds, now: now)
    }
    return slot
  }

  public func handle(_ event: Event, now: Instant) {
    switch event {
    case .candidateFound(let handle, let bearer, let hint):
      if !connector.found(handle, bearer, hint: hint, now: now) {
        journal.record(.warning, .candidatesFull, at: now, UInt64(Limits.candidatesMax), UInt64(Limits.candidatesMax))
      }
    case .candidateLost(let handle): connector.lost(handle)
    case .dialFailed(let handle): connector.dialFailed(handle, now: now)
    case .linkClosed(let slot): linkClosed(slot, now)
    case .timeout: handleTimeouts(now)
    }
    settle(now)
  }

  /// Bytes of a link's stream, in order, cut anywhere. They were inside TLS.
  public func receive(_ bytes: UnsafeRawBufferPointer, on slot: Int, now: Instant) {
    guard isOpen(slot) else { return }
    links[slot].heard(bytes.count, now: now)
    var offset = 0
    do throws(FrameRefusal) {
      while isOpen(slot), let frame = try inboxes[slot].next(bytes, &offset) {
        do throws(FrameRefusal) {
          let header = try FrameHeader(frame.bytes)
          let payload = frame.bytes.extracting(FrameHeader.byteCount..<header.frameByteCount)
          try receiveFrame(header, payload, on: slot, now: now)
        } catch {
          refuse(error, on: slot, now)
        }
      }
    } catch {
      // The stream has lost its frames.
      refuse(error, on: slot, now)
      closeLink(slot, .protocolError, now: now)
    }
    settle(now)
  }

  /// A sealed frame that came beside TLS, its 48-byte header authenticated by the link.
  public func receiveSealed(
    _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, on slot: Int, now: Instant
  ) {
    guard isOpen(slot) else { return }
    links[slot].heard(header.count + payload.count, now: now)
    do throws(FrameRefusal) {
      let checked = try FrameHeader(header.bytes)
      // Only what the end nodes sealed travels beside TLS, and they seal nothing but routed frames.
      if checked.flags & FrameHeader.sealed == 0 || !checked.isRouted || checked.payloadByteCount != payload.count {
        throw .unexpected
      }
      try receiveFrame(checked, payload.bytes, on: slot, now: now)
    } catch {
      refuse(error, on: slot, now)
    }
    settle(now)
  }

  /// Whether both ends of a link take sealed frames beside TLS.
  public func isBypassAgreed(_ slot: Int) -> Bool {
    settings.bypass && links[slot].state == .up && links[slot].peerCapabilities.contains(.bypass)
  }

  // MARK: What it knows

  /// Peers that can be reached now.
  public var peers: [Peer] { directory.peers }

  /// The way to a node that frames take now.
  public func route(to node: NodeID) -> Route? { mesh.route(to: node) }

  /// The link that carries to a neighbour, and what this node states that it costs.
  public func carrier(to neighbour: NodeID) -> (slot: Int, cost: UInt16)? {
    mesh.link(to: neighbour).map { ($0, mesh.cost(of: $0)) }
  }

  /// Frames dropped because they found no room, by reason.
  public var queueDrops: QueueDropCounters { pool.drops }

  /// A link slot as it stands.
  public func link(_ slot: Int) -> Link { links[slot] }

  /// Whether any link is up.
  public var isLinked: Bool {
    for slot in links.indices where links[slot].state == .up { return true }
    return false
  }

  // MARK: Outputs

  /// What is to be done next; nil when nothing is before something happens. See the drain rule.
  public func nextOutput(now: Instant) -> Output? {
    if closePending != 0 { return .close(Self.takeLowest(&closePending)) }
    // Every link has its turn before one has its second.
    if transmitPending == 0 { moveUp(now) }
    if transmitPending != 0 {
      queueOwed(on: transmitPending.trailingZeroBitCount, now)
      return .transmit(Self.takeLowest(&transmitPending))
    }
    if let handle = connector.nextDial(now: now, isLinked: isLinked) { return .dial(handle) }
    if let event = directory.nextEvent() { return .peer(event) }
    if !decisions.isEmpty {
      let decision = decisions.removeFirst()
      return .decisionWanted(decision.peer, chain: decision.chain)
    }
    return associations.nextOutput()
  }

  /// When `handle(.timeout)` is due.
  public func nextDeadline(now: Instant) -> Instant {
    var earliest = min(mesh.expiryDeadline, connector.deadline, directory.deadline)
    earliest = min(earliest, originator.deadline, associations.deadline(now: now), quarantineEnd)
    for slot in links.indices { earliest = min(earliest, links[slot].deadline) }
    return earliest
  }

  /// Move whole frames of a link into `output`, the most urgent first; returns the bytes written, 0 when
  /// none waits or the next one does not fit. `Limits.frameBytesMax` of room always suffice for one.
  public func pop(_ slot: Int, into output: UnsafeMutableRawBufferPointer) -> Int {
    let written = links[slot].pop(into: output)
    if written > 0 && links[slot].state == .up { poppedSlots |= 1 << UInt64(slot) }
    return written
  }

  /// Say goodbye on every link. The caller drains once more and exits.
  public func shutDown(now: Instant) {
    for slot in links.indices where isOpen(slot) { closeLink(slot, .shutdown, now: now) }
  }

  // MARK: Inside

  /// What follows from a change, in one place and always in this order.
  private func settle(_ now: Instant) {
    if mesh.takeTopologyChange() { originator.topologyChanged() }
    if mesh.needsRoutes {
      mesh.computeRoutes()
      directory.update(mesh, now: now) { links[$0].bearer }
      renewProtection()
      associations.routesChanged(mesh, now: now) { links[$0].state == .up && links[$0].peer == $1 }
    }
    originate(now)
    transmitPending |= mesh.takeNewlyOwing()
    pumpAssociations(now)
  }

  /// Fill the room that `pop` has made with what waits for it.
  private func moveUp(_ now: Instant) {
    if poppedSlots == 0 { return }
    var popped = poppedSlots
    poppedSlots = 0
    pumpAssociations(now)
    var hasNewCost = false
    while popped != 0 {
      let slot = Self.takeLowest(&popped)
      queueOwed(on: slot, now)
      if links[slot].measureGoodput(now: now) {
        linkMeasured(slot, now)
        hasNewCost = true
      }
    }
    if hasNewCost { settle(now) }
  }

  private func handleTimeouts(_ now: Instant) {
    for slot in links.indices where links[slot].deadline <= now {
      links[slot].handleTimeout(local: settings.id, now: now)
      if case .closed(let reason) = links[slot].state {
        journal.record(.warning, .neighbourDead, at: now, link: UInt8(slot), node: links[slot].peer)
        linkWentDown(slot, reason, now)
      } else {
        linkMeasured(slot, now)
        wantTransmit(slot)
      }
    }
    if quarantineEnd <= now { reviewQuarantine(now) }
    mesh.expire(now: now)
    associations.handleTimeouts(now: now)
    if directory.deadline <= now { directory.update(mesh, now: now) { links[$0].bearer } }
  }

  func isOpen(_ slot: Int) -> Bool {
    switch links[slot].state {
    case .opening, .up: true
    case .idle, .closed: false
    }
  }

  func wantTransmit(_ slot: Int) { transmitPending |= 1 << UInt64(slot) }
  func wantClose(_ slot: Int) { closePending |= 1 << UInt64(slot) }
  /// The slot is free: what was wanted of its stream is void.
  func forgetOutputs(_ slot: Int) {
    transmitPending &= ~(1 << UInt64(slot))
    closePending &= ~(1 << UInt64(slot))
    poppedSlots &= ~(1 << UInt64(slot))
  }

  func refuse(_ refusal: FrameRefusal, on slot: Int, _ now: Instant) {
    counters.refusals.count(refusal)
    // A duplicate or an unknown type is everyday life in a mesh; the counters tell of those.
    if refusal != .duplicate && refusal != .unknownType {
      journal.record(.info, .frameRefused, at: now, link: UInt8(slot), UInt64(refusal.rawValue), node: links[slot].peer)
    }
  }

  func nextIdentifier() -> UInt64 {
    identifierCounter &+= 1
    return settings.epoch << 32 | UInt64(identifierCounter)
  }

  func count(_ change: (inout NodeCounters) -> Void) { change(&counters) }

  private func isLinked(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    links.indices.contains { isOpen($0) && links[$0].peer.high == hint && links[$0].bearer == bearer }
  }

  private static func takeLowest(_ bits: inout UInt64) -> Int {
    let slot = bits.trailingZeroBitCount
    bits &= bits &- 1
    return slot
  }
}

/// What a node counts from its start on.
public struct NodeCounters: Sendable {
  public var refusals = RefusalCounters()
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// Routed frames for which there was no way.
  public var dropsNoRoute: UInt64 = 0
  /// Frames longer than the way takes.
  public var dropsTooLong: UInt64 = 0
  public var advertisementsAccepted: UInt64 = 0
  /// Sessions with peers that came to use, renewals among them.
  public var sessionsOpened: UInt64 = 0
  /// Handshakes that came to nothing.
  public var sessionsFailed: UInt64 = 0
  /// Sessions refused by either end although the keys were right.
  public var sessionsRefused: UInt64 = 0
  /// Handshakes turned away because too many were under way.
  public var handshakesTurnedAway: UInt64 = 0
}
