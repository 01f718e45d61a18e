import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives
import Session

/// A complete sans-IO node: links, mesh, discovery of peers, and associations with these peers. Firmware and simulator
/// run the same code.
///
/// **Drain rule.** Report events with `openLink`, `handle`, `receive` and `receiveSealed`, and requests of the
/// application with `send`, `takeMessage`, `decide` and `trustChanged`, in any number. Before waiting, call
/// `nextOutput` until it returns nil, and act on each output. An action may report further events or `pop` frames; the
/// drain then continues. Finally set a timer for `nextDeadline(now:)`, and call `handle(.timeout)` no later than this
/// deadline.
///
/// `pop` may be called whenever a stream has room for bytes. The next call of `nextOutput` refills the queues.
///
/// Time is an argument. Nothing here reads a clock, a file or a random source.
public final class Node {
  /// An event that the rim, the code around the sans-IO core, reports to the node.
  public enum Event {
    /// Discovery found an address at which a node may be reached, or found it again.
    case candidateFound(FoundCandidate)
    case candidateLost(UInt32)
    /// A dial that the node requested failed.
    case dialFailed(UInt32)
    /// The new number of Bluetooth links that the adapters support at once. Adapters were added or removed.
    case bluetoothSlots(Int)
    /// The stream of a link slot is closed.
    case linkClosed(Int)
    /// `nextDeadline` has passed.
    case timeout
  }

  /// A request to the rim or a report to the application. Requests about streams precede reports. Reports about
  /// messages are round-robin over peers.
  public enum Output: Equatable {
    /// Connect to the candidate with this handle, then call `openLink` or report `.dialFailed`.
    case dial(UInt32)
    /// Frames are queued for this link. Take the frames with `pop` while the link's stream has room.
    case transmit(Int)
    /// Send what `pop` still returns, close the stream, then report `.linkClosed`.
    case close(Int)
    /// A peer was found, changed or lost.
    case peer(PeerEvent)
    /// A peer proved its key, and no data flows before `decide`. The chain is in DER, the peer's own certificate first.
    /// Occurs only with `NodeSettings.asksApplication`, once per chain in each epoch of a peer.
    case decisionWanted(NodeID, chain: [[UInt8]])
    /// The result of a send. Each accepted send has exactly one result.
    case completed(NodeID, Completion)
    /// The first unread message of its lane from this peer, reported once. The node stores the message until
    /// `takeMessage`. Unread messages close the lane's flow-control window.
    case messageWaiting(NodeID, PendingMessage)
    /// The node raised its epoch, because other nodes store a later epoch under its key (`EpochRecovery`). Store the
    /// new epoch: the next start must use a later one.
    case epochRaised(UInt64)
    /// A message that the peer sent unreliably. If the buffer is full, a new message displaces the oldest unread one.
    case datagram(NodeID, ReceivedDatagram)
    /// An event of a session, an invitation or a service. See `Sessions`.
    case session(SessionEvent)
  }

  public internal(set) var settings: NodeSettings
  public private(set) var counters = NodeCounters()
  public internal(set) var topSources = TopSources()
  /// Observes the frames of all links. Usually nil, because a tap costs time for each frame.
  public var tap: (any FrameTap)?

  let cryptography: any NodeCryptography
  let trust: (any NodeTrust)?
  var journal: Journal
  var local: Link.Local
  let links: Table<Link, Int>
  private let inboxes: Table<FrameInbox, Int>
  let flooding: Table<LinkFlooding, Int>
  private let memory: UnsafeMutableRawBufferPointer
  /// `SlotMemory.byteCount` bytes for each link slot, in the order of the slots.
  let slotMemory: UnsafeMutableRawBufferPointer
  let pool: FramePool
  /// The buffer for a payload and its type byte, before encryption or queueing and after decryption.
  let payloadScratch: UnsafeMutableRawBufferPointer
  /// The buffer for an encrypted payload before it is queued.
  let sealScratch: UnsafeMutableRawBufferPointer
  var mesh: Mesh
  var connector: Connector
  var surplus = SurplusLinks()
  var parking = Parking()
  /// The slots of links over Bluetooth LE, one bit each.
  var bluetoothLinks: UInt64 = 0
  /// The slots of all links that are not idle, one bit each.
  private(set) var usedLinks: UInt64 = 0
  var flaps = FlapDamping()
  var directory = Directory()
  var associations: Associations
  var provenPeers = ProvenPeers()
  var refusedNames = RefusedNames()
  /// Certificates that await a decision and were not yet reported to the application.
  var decisions: [(peer: NodeID, chain: [[UInt8]])] = []
  var originator = Originator()
  /// The body of this node's services advertisement. Initially the services advertisement has no services.
  var services: [UInt8] = [0]
  var hosted: SessionHost
  var epochRecovery = EpochRecovery()
  var duplicateKeys = DuplicateKeyDetector()
  /// The budget of checks of signatures that others sent, charged to the links that delivered them.
  var checks = CheckBudget()
  var routeCost = RouteCost()
  /// The rate of handshakes of encrypted sessions, charged to the links whose frames caused them.
  var handshakes = FairRate(burst: Limits.handshakesAtOnceMax, perSecond: Limits.handshakesPerSecond)
  /// The rate of stateless replies to forgeable frames, charged to the links that delivered these frames.
  var replies = FairRate(burst: Limits.repliesAtOnceMax, perSecond: Limits.repliesPerSecond)
  /// Advertisements and deny-lists that wait for the next piece of signature checks (`CheckBudget`).
  var waitingFrames: WaitingFrames
  /// Counts the messages that were taken in this pass of the event loop.
  var intake = MessageIntake()
  /// When the next piece of signature checks is due, if anything waits for a check.
  var pieceDue = Instant.zero
  var signatureOffenders = SignatureOffenders()
  var linkSlots = LinkSlots()
  /// The links over which all advertisements must be requested when the node table has room again, one bit each.
  var linksWithoutRoom: UInt64 = 0

  /// The slots with a `.transmit` or `.close` for the caller, one bit each.
  private var transmitPending: UInt64 = 0
  private var closePending: UInt64 = 0
  /// The slots whose frames were taken with `pop` since the queues were last refilled, one bit each.
  private var poppedSlots: UInt64 = 0
  /// The streams of links, by slot.
  var sinks = [(any FrameSink)?](repeating: nil, count: Limits.linksMax)
  /// Whether channels may have frames that were not offered to a link. `nextOutput` encrypts and sends such frames.
  public internal(set) var isPumpDue = false
  private var identifierCounter: UInt32 = 0
  /// When the next quarantine of a link ends.
  var quarantineEnd = Instant.never

  /// The memory of the forwarding path: the pool, the mesh, and each link's record, control frames and incoming frame.
  static let tableBytes =
    FramePool.byteCount + Mesh.byteCount + WaitingFrames.byteCount + Table<Link, Int>.byteCount(Limits.linksMax)
    + Table<FrameInbox, Int>.byteCount(Limits.linksMax) + Table<LinkFlooding, Int>.byteCount(Limits.linksMax)
    + Limits.linksMax * SlotMemory.byteCount

  /// Allocates all memory of the forwarding path, once. Pages of this memory are touched as they are used.
  public init(
    _ settings: NodeSettings, _ cryptography: any NodeCryptography, trust: (any NodeTrust)? = nil, journal: Journal,
    now: Instant
  ) {
    self.settings = settings
    self.cryptography = cryptography
    self.trust = trust
    self.journal = journal
    local = settings.hello
    memory = .allocate(byteCount: Self.tableBytes, alignment: 4096)
    var arena = Arena(memory)
    pool = FramePool(arena.take(FramePool.byteCount))
    payloadScratch = .allocate(byteCount: 1 + Limits.framePayloadBytesMax, alignment: 16)
    sealScratch = .allocate(byteCount: Limits.framePayloadBytesMax, alignment: 16)
    mesh = Mesh(local: settings.id, arena.take(Mesh.byteCount))
    waitingFrames = WaitingFrames(arena.take(WaitingFrames.byteCount))
    links = Table(count: Limits.linksMax, in: &arena)
    inboxes = Table(count: Limits.linksMax, in: &arena)
    flooding = Table(count: Limits.linksMax, in: &arena)
    flooding.fill(LinkFlooding())
    slotMemory = arena.take(Limits.linksMax * SlotMemory.byteCount)
    var slots = Arena(slotMemory)
    for slot in links.indices {
      links[slot] = Link(slots.take(FrameQueue.byteCount), pool)
      inboxes[slot] = FrameInbox(slots.take(Limits.frameBytesMax))
    }
    connector = Connector(local: settings.id, relays: settings.relays)
    associations = Associations(epoch: settings.epoch)
    hosted = SessionHost(settings, cryptography)
    originator.profileChanged()
    settle(now)
  }

  deinit {
    memory.deallocate()
    payloadScratch.deallocate()
    sealScratch.deallocate()
  }

  // MARK: Events

  public func handle(_ event: Event, now: Instant) {
    switch event {
    case .candidateFound(let candidate):
      if !connector.found(candidate, now: now) {
        journal.record(.warning, .candidatesFull, at: now, UInt64(Limits.candidatesMax), UInt64(Limits.candidatesMax))
      }
    case .candidateLost(let handle): connector.lost(handle, now: now)
    case .dialFailed(let handle):
      if let (hint, bearer) = connector.target(handle), standing(hint, bearer) == .linked {
        connector.dialOvertaken(handle)
      } else if connector.target(handle)?.bearer == .bluetoothLE, bluetoothSlots.taken >= settings.bluetoothSlots {
        connector.dialLostSlot(handle)
      } else {
        connector.dialFailed(handle, now: now)
        callFailed(handle, now)
      }
    case .bluetoothSlots(let count): settings.bluetoothSlots = count
    case .linkClosed(let slot): linkClosed(slot, now)
    case .timeout: handleTimeouts(now)
    }
    settle(now)
  }

  /// Handles bytes of a link's stream that arrived inside TLS. The bytes are in order and may be split anywhere.
  public func receive(_ bytes: UnsafeRawBufferPointer, on slot: Int, now: Instant) {
    guard isOpen(slot) else { return }
    links[slot].arrived(bytes.count, now: now)
    var offset = 0
    do throws(FrameError) {
      while isOpen(slot), let frame = try inboxes[slot].next(bytes, &offset) {
        // Only a complete frame is a sign of life: a neighbour that sends a byte now and then is not alive.
        links[slot].noteReceived(now: now)
        if let tap { show(received: frame, on: slot, to: tap) }
        do throws(FrameError) {
          let header = try FrameHeader(frame.bytes)
          let payload = frame.bytes.extracting(FrameHeader.byteCount..<header.frameByteCount)
          try receiveFrame(header, payload, on: slot, now: now)
        } catch {
          refuse(error, on: slot, now)
        }
      }
    } catch {
      // The frame boundaries are lost.
      refuse(error, on: slot, now)
      closeLink(slot, .protocolError, now: now)
    }
    settle(now)
  }

  /// Handles a sealed frame that arrived outside TLS. The link has authenticated the frame's 48-byte header.
  public func receiveSealed(
    _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, on slot: Int, now: Instant
  ) {
    guard isOpen(slot) else { return }
    links[slot].noteReceived(header.count + payload.count, now: now)
    if let tap { show(header, payload, slot, isSent: false, isOutsideTLS: true, to: tap) }
    do throws(FrameError) {
      let checked = try FrameHeader(header.bytes)
      // Only end-to-end encrypted frames travel outside TLS, and those are always routed.
      if checked.flags & FrameHeader.sealed == 0 || !checked.isRouted || checked.payloadByteCount != payload.count {
        throw .unexpected
      }
      try receiveFrame(checked, payload.bytes, on: slot, now: now)
    } catch {
      refuse(error, on: slot, now)
    }
    settle(now)
  }

  /// Whether both ends of a link accept sealed frames outside TLS.
  public func isBypassAgreed(_ slot: Int) -> Bool {
    settings.bypass && links[slot].state == .up && links[slot].peerCapabilities.contains(.bypass)
  }

  // MARK: State

  /// All currently reachable peers.
  public var peers: [Peer] { directory.peers }

  /// A currently reachable peer.
  public func peer(_ id: NodeID) -> Peer? { directory.peer(id) }

  /// The current route to a node.
  public func route(to node: NodeID) -> Route? { mesh.route(to: node) }

  /// The link in use to a neighbour, and the cost that this node advertises for it.
  public func carrier(to neighbour: NodeID) -> (slot: Int, cost: UInt16)? {
    mesh.link(to: neighbour).map { ($0, mesh.cost(of: $0)) }
  }

  /// The frames dropped because a queue was full, by reason.
  public var queueDrops: QueueDropCounters { pool.drops }

  /// The current state of a link slot.
  public func link(_ slot: Int) -> Link { links[slot] }

  /// Whether frames other than bulk are queued for a link.
  public func hasUrgentFrames(_ slot: Int) -> Bool {
    links[slot].queuedByteCount > links[slot].queuedByteCount(.bulk)
  }

  /// Whether the link of a slot, whose stream has ended, was not worth its TLS handshake. A wasted link never became
  /// proven, and was not parked by this node.
  public func isLinkWasted(_ slot: Int) -> Bool {
    switch links[slot].state {
    case .idle, .parking, .parked: false
    case .opening, .up, .closed: !links[slot].isProven
    }
  }

  func isOpen(_ slot: Int) -> Bool {
    switch links[slot].state {
    case .opening, .up, .parking: true
    case .idle, .closed, .parked: false
    }
  }

  /// Whether a neighbour closes links because it is linked with another node that uses this node's key.
  public func isKeyHeldElsewhere(at neighbour: NodeID) -> Bool { duplicateKeys.isKnown(to: neighbour) }

  /// Whether this node has any neighbour.
  public var isLinked: Bool {
    for slot in links.indices where links[slot].isStanding { return true }
    return false
  }

  // MARK: Outputs

  /// The next output, or nil if there is none until the next event. See the drain rule. If `sends` is false, the
  /// channels keep their unsent data.
  public func nextOutput(now: Instant, sends: Bool = true) -> Output? {
    if closePending != 0 { return .close(Self.takeLowest(&closePending)) }
    // Every link with frames is served once before any of them is served again.
    if transmitPending == 0 { moveUp(now) }
    if transmitPending != 0 {
      queueAdvertisements(on: transmitPending.trailingZeroBitCount, now)
      return .transmit(Self.takeLowest(&transmitPending))
    }
    if let handle = nextDial(now) { return .dial(handle) }
    // `nextDial` may have parked or closed links.
    if closePending | transmitPending != 0 { return nextOutput(now: now, sends: sends) }
    if epochRecovery.takeReport() { return .epochRaised(settings.epoch) }
    if let event = directory.nextEvent() {
      reportToSessions(event, now)
      return .peer(event)
    }
    if !decisions.isEmpty {
      let decision = decisions.removeFirst()
      return .decisionWanted(decision.peer, chain: decision.chain)
    }
    if let output = nextApplicationOutput(now) ?? nextSessionOutput(now) { return output }
    let wasPumpDue = isPumpDue && sends
    if wasPumpDue { pumpAssociations(now) }
    return wasPumpDue || closePending | transmitPending != 0 ? nextOutput(now: now, sends: sends) : nil
  }

  /// Moves complete frames of a link into `output`, at most `framesMax`, most urgent first. Returns the bytes written:
  /// 0 if no frame is queued or the next one does not fit. Any frame fits into `Limits.frameBytesMax` bytes.
  public func pop(_ slot: Int, into output: UnsafeMutableRawBufferPointer, framesMax: Int = .max) -> Int {
    let written = links[slot].pop(into: output, framesMax: framesMax)
    if let tap, written > 0 { show(sent: UnsafeRawBufferPointer(rebasing: output[..<written]), on: slot, to: tap) }
    if written > 0 && links[slot].state == .up { notePopped(slot) }
    return written
  }

  /// Records that the stream of a link accepted frames.
  func notePopped(_ slot: Int) { poppedSlots |= 1 << UInt64(slot) }

  /// Closes every link with a goodbye. The caller drains once more and exits.
  public func shutDown(now: Instant) {
    for slot in links.indices where isOpen(slot) { closeLink(slot, .shutdown, now: now) }
  }

  // MARK: Internals

  /// Updates all state that depends on a change, always in this order.
  func settle(_ now: Instant) {
    let isEpochNew = raiseEpochIfDue(now)
    originator.topologyChanged(
      mesh.takeTopologyChange(), inCrowd: connector.isInCrowd, makesLinks: connector.makesLinksInCrowd(isUp), now: now)
    if mesh.needsRoutes || isEpochNew {
      routeCost.charge(mesh.computeRoutes(), to: &checks, now: now)
      askForRoom(now)
      updateDirectory(now)
      renewProtection()
      associations.routesChanged(mesh, now: now) { links[$0].isStanding && links[$0].peer == $1 }
    }
    originate(now)
    transmitPending |= mesh.takeLinksToFlood() & ~parking.parked
    isPumpDue = isPumpDue || !associations.all.isEmpty
  }

  /// Derives the peers from routes and profiles.
  func updateDirectory(_ now: Instant) {
    directory.update(mesh, isParked: isParked, now: now) { links[$0].bearer }
  }

  /// Refills the queues after `pop` made room in them.
  private func moveUp(_ now: Instant) {
    if poppedSlots == 0 { return }
    var popped = poppedSlots
    poppedSlots = 0
    pumpAssociations(now)
    var hasNewCost = false
    while popped != 0 {
      let slot = Self.takeLowest(&popped)
      queueAdvertisements(on: slot, now)
      if links[slot].isStalled { linkGoesOn(slot, now) }
      if links[slot].measureGoodput(now: now) {
        linkMeasured(slot, now)
        hasNewCost = true
      }
    }
    if hasNewCost { settle(now) }
  }

  private func handleTimeouts(_ now: Instant) {
    if intake.deadline <= now { intake = MessageIntake() }
    if hasChecksWaiting && pieceDue <= now { checkPiece(now) }
    closeTrafficWindow(now)
    // Before the links queue pings, because a link with queued frames is not closed.
    closeSurplusLinks(now)
    var isAwake = false
    for slot in links.indices where links[slot].deadline <= now {
      isAwake = true
      if case .closed(let reason) = handleLinkTimeout(slot, now) {
        linkWentDown(slot, reason, now)
      } else {
        linkMeasured(slot, now)
        wantTransmit(slot)
      }
    }
    if isAwake { pingTogether(now) }
    if quarantineEnd <= now { reviewQuarantine(now) }
    handleFloodingTimeouts(now)
    expireAdvertisements(now)
    associations.handleTimeouts(now: now)
    sessions.handleTimeouts(now: now)
    if peerLossDeadline <= now { updateDirectory(now) }
  }

  /// Sends the pings that are due soon in this pass of the event loop, instead of one pass for each.
  private func pingTogether(_ now: Instant) {
    for slot in links.indices
    where links[slot].pingEarly(dueWithin: Timing.pingsTogether, local: settings.id, now: now) { wantTransmit(slot) }
  }

  func wantTransmit(_ slot: Int) { transmitPending |= 1 << UInt64(slot) & ~parking.parked }
  func wantClose(_ slot: Int) { closePending |= 1 << UInt64(slot) }
  /// Discards the pending outputs of a slot whose stream is closed.
  func forgetOutputs(_ slot: Int) {
    if links[slot].state == .idle {
      usedLinks &= ~(1 << UInt64(slot))
      bluetoothLinks &= usedLinks
    }
    sinks[slot] = nil
    transmitPending &= ~(1 << UInt64(slot))
    closePending &= ~(1 << UInt64(slot))
    poppedSlots &= ~(1 << UInt64(slot))
  }

  func refuse(_ refusal: FrameError, on slot: Int, _ now: Instant) {
    counters.refusals.count(refusal)
    // Duplicates and unknown types are normal in a mesh, and `.tooMany` would fill the journal, so these refusals are
    // only counted.
    if refusal != .duplicate && refusal != .unknownType && refusal != .tooMany {
      journal.record(.info, .frameRefused, at: now, link: UInt8(slot), UInt64(refusal.rawValue), node: links[slot].peer)
    }
  }

  /// Opens a link in a free slot, or a parked link on a new stream. Queues the hello.
  func open(_ slot: Int, peer: NodeID, bearer: BearerKind, isInbound: Bool, now: Instant) {
    inboxes[slot].removeAll()
    if links[slot].state == .parked {
      parking.resume(slot)
      links[slot].resume(isInbound: isInbound, local: local, now: now)
    } else {
      links[slot].open(peer: peer, bearer: bearer, isInbound: isInbound, local: local, now: now)
      usedLinks |= 1 << UInt64(slot)
      if bearer == .bluetoothLE { bluetoothLinks |= 1 << UInt64(slot) }
    }
    wantTransmit(slot)
  }

  func nextIdentifier() -> UInt64 {
    identifierCounter &+= 1
    return settings.epoch << 32 | UInt64(identifierCounter)
  }

  func count(_ change: (inout NodeCounters) -> Void) { change(&counters) }

  static func takeLowest(_ bits: inout UInt64) -> Int {
    let slot = bits.trailingZeroBitCount
    bits &= bits &- 1
    return slot
  }
}
