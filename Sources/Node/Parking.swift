import Frame
import Journal
import Link
import Mesh
import Primitives

/// Turns at the places of the Bluetooth adapter, which are few.
///
/// A relay keeps one place free for callers, and when it has parked several, one more for its dials. When too few are
/// free it parks the leaf that has been idle for longest: the link stays, without a stream, and so do routes, topologies
/// and what waits in the queue. Either end dials when it has something to say: frames at once, news after a moment,
/// renewals with the next visit. A parked leaf is called when discovery no longer hears it, and visited now and then, so
/// that one that left does not stay on the map. docs/protocol.md, "Parking".
struct Parking {
  /// A leaf is idle when no routed frame has passed for this time, and it has been up for as long.
  static let idleMin = TimeSpan.seconds(1)
  /// A leaf that talks keeps its place for so long, from when it began, while others wait for one.
  static let turnMax = TimeSpan.seconds(3)
  /// A leaf that was parked while it talked calls after this time at the earliest, so that others come first. A relay may
  /// ask for no more than `pauseSecondsMax`.
  static let pauseSecondsMin: UInt16 = 3
  static let pauseSecondsMax: UInt16 = 10
  /// News for a parked neighbour wait for so long: more will come. As long as others call they wait up to `newsPatience`:
  /// who comes has news, and Linux takes a link that comes for the one that it is just making.
  static let newsDelay = TimeSpan.seconds(1)
  static let newsPatience = TimeSpan.seconds(5)
  /// After this time without a visit the relay dials a leaf that it hears, or else the leaf. Each visit costs another leaf
  /// its place for a moment, and advertisements live for 600 s.
  static let visitInterval = TimeSpan.seconds(150)
  static let leafInterval = TimeSpan.seconds(200)
  /// A neighbour that was not met for `restMax` is gone; `callMax` after the first dial when `failuresMax` dials have failed,
  /// and after it was no longer heard. A call may wait for a place for long, and where two dials cross, the kernel may
  /// need 10 s to find out.
  static let restMax = TimeSpan.seconds(300)
  static let callMax = TimeSpan.seconds(30)
  static let failuresMax: UInt8 = 3
  /// A leaf that has another relay leaves one that has parked it for so long.
  static let leaveTime = TimeSpan.seconds(8)
  /// Neighbours parked at once: the others find link slots.
  static let parkedMax = Limits.linksMax / 2
  /// With fewer places nobody takes turns.
  static let placesMin = 3
  /// Dials that are given a place ahead.
  static let placesAhead = 2
  /// A call with frames that has waited for so long may take the place that is kept for callers.
  static let callPatience = TimeSpan.seconds(3)
  /// A neighbour with frames waiting from one that is here is called before all others: two neighbours that answer each
  /// other would else come in turn and never be here together. Others with frames wait for so long at most.
  static let answerPatience = TimeSpan.seconds(10)

  /// One link. Instants are `.never` for what does not apply.
  struct Turn {
    /// When a routed frame passed, or at first when the link came up.
    var talkedAt = Instant.zero
    /// When the talk began to which that frame belongs.
    var turnAt = Instant.zero
    /// When it was parked. It stays so until the link is up again.
    var parkedAt = Instant.never
    /// The neighbour asked not to be called before.
    var pauseEnd = Instant.zero
    /// Since when there are news to send.
    var newsAt = Instant.never
    var calledAt = Instant.never
    /// When it was first dialled since it was called: a call may have to wait for a place.
    var dialledAt = Instant.never
    /// Since when it is called and frames wait for it.
    var urgentAt = Instant.never
    var isUrgent: Bool { urgentAt != .never }
    var call = Connector.Call.news
    /// Discovery has heard the neighbour since it was parked, and since when it does not any more.
    var wasHeard = false
    var unheardAt = Instant.never
    /// Dials that failed since it was parked.
    var failures: UInt8 = 0
    /// The neighbour's epoch and frame length when it was parked.
    var epoch: UInt64 = 0
    var payloadBytesMax = 0
    /// All that both ends had sent has arrived.
    var isWhole = true
    /// The neighbour has said that it knows nothing of the link.
    var isForgotten = false

    mutating func talk(_ now: Instant) {
      if talkedAt + Parking.idleMin < now { turnAt = now }
      talkedAt = now
    }

    /// When the neighbour is given up.
    var end: Instant {
      if parkedAt == .never { return .never }
      if isForgotten { return parkedAt }
      var end = parkedAt + Parking.restMax
      if unheardAt != .never { end = min(end, unheardAt + Parking.callMax) }
      if failures == Parking.failuresMax { end = min(end, dialledAt + Parking.callMax) }
      return end
    }
  }

  var turns = Limits.PerLink<Turn>(repeating: Turn())
  /// Slots of parked links, one bit each.
  private(set) var parked: UInt64 = 0
  /// Slots of parked links whose neighbours discovery hears, as of `candidateChanges`.
  private var heard: UInt64 = 0
  private var candidateChanges: UInt64?
  /// Slots over which a routed frame has passed since the last review.
  var talking: UInt64 = 0
  /// When somebody last came over Bluetooth.
  var visitedAt = Instant.zero
  /// When the review has something to do.
  var deadline = Instant.never
  /// Frames have waited for a neighbour for longer than `callPatience`.
  var isCallOverdue = false

  func isCalled(_ slot: Int) -> Bool { turns[slot].calledAt != .never }
  func isHeard(_ slot: Int) -> Bool { heard & 1 << UInt64(slot) != 0 }

  /// A neighbour is called and has not failed to come.
  var isCalling: Bool {
    var slots = Slots(parked)
    while let slot = slots.next() {
      if isCalled(slot) && turns[slot].failures == 0 && turns[slot].unheardAt == .never { return true }
    }
    return false
  }

  /// How long a leaf that was parked while it talked is asked to wait: as long as all others that are called need for their
  /// turns at so many places.
  func pauseSeconds(places: Int) -> UInt16 {
    var called: UInt64 = 0
    var slots = Slots(parked)
    while let slot = slots.next() { if isCalled(slot) { called += 1 } }
    let span = Self.turnMax.milliseconds * called / UInt64(max(places - 1, 1))
    return min(max(UInt16((span + 999) / 1000), Self.pauseSecondsMin), Self.pauseSecondsMax)
  }

  mutating func talks(_ slot: Int) { talking |= 1 << UInt64(slot) }

  mutating func park(_ slot: Int, _ link: Link, isWhole: Bool, now: Instant) {
    let pause = TimeSpan.seconds(UInt64(min(link.retryAfterSeconds, Self.pauseSecondsMax)))
    turns[slot] = Turn(
      talkedAt: turns[slot].talkedAt, parkedAt: now, pauseEnd: now + pause, epoch: link.peerEpoch,
      payloadBytesMax: link.payloadBytesMax,
      isWhole: isWhole)
    parked |= 1 << UInt64(slot)
    candidateChanges = nil
  }

  /// Looks who is heard, if candidates have come or gone.
  mutating func listen(_ connector: borrowing Connector, _ peer: (_ slot: Int) -> (hint: UInt64, bearer: BearerKind)) {
    if candidateChanges == connector.candidateChanges { return }
    candidateChanges = connector.candidateChanges
    heard = 0
    var slots = Slots(parked)
    while let slot = slots.next() {
      let (hint, bearer) = peer(slot)
      if connector.knows(hint, bearer) { heard |= 1 << UInt64(slot) }
    }
  }

  /// Its link has a stream again.
  mutating func resume(_ slot: Int) { parked &= ~(1 << UInt64(slot)) }

  /// The stream ended before the link was up: it is parked as before. A stream that leads nowhere gains no time.
  mutating func restAgain(_ slot: Int, isCallFailed: Bool) {
    parked |= 1 << UInt64(slot)
    candidateChanges = nil
    if isCallFailed { turns[slot].failures = min(turns[slot].failures + 1, Self.failuresMax) }
  }

  /// The link is up again.
  mutating func resumed(_ slot: Int) {
    turns[slot].parkedAt = .never
    turns[slot].newsAt = .never
    turns[slot].calledAt = .never
    turns[slot].dialledAt = .never
    turns[slot].urgentAt = .never
    turns[slot].call = .news
  }

  mutating func forget(_ slot: Int) {
    parked &= ~(1 << UInt64(slot))
    talking &= ~(1 << UInt64(slot))
    turns[slot] = Turn()
  }
}

extension Node {
  /// The stream of a link is closed that is to be parked, or that was parked and is not up again.
  func linkParked(_ slot: Int, _ now: Instant) {
    let wasUp = parking.turns[slot].parkedAt == .never
    let isWhole = links[slot].rest() || !wasUp
    if wasUp {
      parking.park(slot, links[slot], isWhole: isWhole, now: now)
    } else {
      parking.restAgain(slot, isCallFailed: !links[slot].isInbound)
    }
    // What it said while it did not agree.
    if !isWhole, let index = mesh.index(of: links[slot].peer), let topology = mesh.advertisement(of: index, .topology),
      let view = try? AdvertisementView(topology)
    {
      heardParked(links[slot].peer, view)
    }
    surplus.remove(slot)
    connector.linkClosed(slot, peer: links[slot].peer, retryAfterSeconds: 0, isFailure: !wasUp, now: now)
    forgetOutputs(slot)
    journal.record(
      .info, .linkParked, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue),
      (now - links[slot].upSince).milliseconds, node: links[slot].peer)
  }

  /// The slot of the parked link to a node whose stream has come.
  func parkedSlot(of peer: NodeID, _ bearer: BearerKind) -> Int? {
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      if links[slot].peer == peer && links[slot].bearer == bearer { return slot }
    }
    return nil
  }

  /// A parked link is up again. What may have been lost when it was parked is sent again.
  func linkResumed(_ slot: Int, _ now: Instant) {
    let turn = parking.turns[slot]
    parking.resumed(slot)
    if links[slot].peerEpoch != turn.epoch || links[slot].payloadBytesMax != turn.payloadBytesMax {
      // It has restarted, and knows nothing of the link.
      _ = mesh.removeLink(slot)
      addToMesh(slot, now)
    } else if !turn.isWhole {
      mesh.tellAgain(.none, on: slot)
      flooding[slot].owe(.none, now: now)
    }
    wantTransmit(slot)
  }

  /// A dial has failed, and not for lack of a place. A parked neighbour that cannot be reached is given up.
  func callFailed(_ handle: UInt32, _ now: Instant) {
    guard let (hint, bearer) = connector.target(handle) else { return }
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      guard links[slot].peer.high == hint, links[slot].bearer == bearer else { continue }
      parking.turns[slot].failures = min(parking.turns[slot].failures + 1, Parking.failuresMax)
      if parking.turns[slot].end <= now { closeLink(slot, .timedOut, now: now) }
    }
  }

  /// Gives up parked neighbours that were not met for too long. False when there were none.
  func expireParked(_ now: Instant) -> Bool {
    let before = parking.parked
    var slots = Slots(before)
    while let slot = slots.next() {
      let turn = parking.turns[slot]
      if turn.end <= now { closeLink(slot, turn.isForgotten ? .notNeeded : .timedOut, now: now) }
    }
    return parking.parked != before
  }

  /// A parked neighbour has said something by another way. If it has restarted, or no longer lists this node, the link ends
  /// with the next review: routes still lead over it, and its slot must not be free before.
  func heardParked(_ node: NodeID, _ view: borrowing AdvertisementView) {
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      guard links[slot].peer == node else { continue }
      if parking.turns[slot].epoch < view.epoch || view.kind == .topology && !listsThisNode(view) {
        parking.turns[slot].isForgotten = true
      }
    }
  }

  private func listsThisNode(_ view: borrowing AdvertisementView) -> Bool {
    guard let topology = try? TopologyView(view.body) else { return false }
    for index in 0..<topology.count {
      if let entry = try? topology.entry(index), entry.node == settings.id { return true }
    }
    return false
  }

  /// A candidate is dialled.
  func callTried(_ handle: UInt32, _ now: Instant) {
    guard parking.parked != 0, let (hint, bearer) = connector.target(handle) else { return }
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      guard links[slot].peer.high == hint, links[slot].bearer == bearer else { continue }
      parking.turns[slot].dialledAt = min(parking.turns[slot].dialledAt, now)
    }
  }

  /// Calls the parked neighbours for whom there is something.
  func callParked(_ now: Instant) {
    parking.deadline = .never
    parking.isCallOverdue = false
    var slots = Slots(parking.talking)
    while let slot = slots.next() { parking.turns[slot].talk(now) }
    parking.talking = 0
    parking.listen(connector) { (links[$0].peer.high, links[$0].bearer) }
    slots = Slots(parking.parked)
    while let slot = slots.next() {
      hear(slot, now)
      callIfDue(slot, now)
      parking.deadline = min(parking.deadline, parking.turns[slot].end)
      guard parking.turns[slot].isUrgent else { continue }
      let overdueAt = parking.turns[slot].urgentAt + Parking.callPatience
      if overdueAt <= now { parking.isCallOverdue = true } else { parking.deadline = min(parking.deadline, overdueAt) }
      let firstAt = parking.turns[slot].urgentAt + Parking.answerPatience
      if firstAt > now { parking.deadline = min(parking.deadline, firstAt) }
    }
  }

  private func hear(_ slot: Int, _ now: Instant) {
    let isHeard = parking.isHeard(slot)
    let wasHeard = parking.turns[slot].wasHeard
    parking.turns[slot].wasHeard = wasHeard || isHeard
    parking.turns[slot].unheardAt = wasHeard && !isHeard ? min(parking.turns[slot].unheardAt, now) : .never
  }

  private func callIfDue(_ slot: Int, _ now: Instant) {
    let isUrgent = links[slot].hasFrames
    let urgentAt = isUrgent ? min(parking.turns[slot].urgentAt, now) : .never
    let call =
      !isUrgent ? .news : isAwaited(slot) || urgentAt + Parking.answerPatience <= now ? .answers : Connector.Call.frames
    if !parking.isCalled(slot) {
      let due = max(isUrgent ? now : callTime(slot, now), parking.turns[slot].pauseEnd)
      if due > now {
        parking.deadline = min(parking.deadline, due)
        return
      }
      parking.turns[slot].calledAt = now
    } else if parking.turns[slot].call == call {
      return
    }
    parking.turns[slot].urgentAt = urgentAt
    parking.turns[slot].call = call
    connector.standingChanged()
  }

  /// Frames wait for a parked neighbour that come from this node, or from a neighbour that has a stream.
  private func isAwaited(_ slot: Int) -> Bool {
    if links[slot].hasFrames(from: FramePool.ownIngress) { return true }
    return links.indices.contains { links[$0].state == .up && links[slot].hasFrames(from: $0) }
  }

  /// When a neighbour is called for whom no frames wait.
  private func callTime(_ slot: Int, _ now: Instant) -> Instant {
    // Nobody can dial it: it may still call.
    if parking.turns[slot].unheardAt != .never { return now }
    var due = Instant.never
    if parking.isHeard(slot) {
      due = parking.turns[slot].parkedAt + (settings.relays ? Parking.visitInterval : Parking.leafInterval)
      // One visit at a time, and none that another call would have to wait for.
      if due <= now && parking.isCalling { due = now + Parking.newsDelay }
    }
    // A request is one, too: what it asks for was refused and is not told again by itself.
    if mesh.mayHaveNews(slot) || flooding[slot].requestDue != .never {
      let newsAt = min(parking.turns[slot].newsAt, now)
      parking.turns[slot].newsAt = newsAt
      let calmAt = min(parking.visitedAt + Parking.newsDelay, newsAt + Parking.newsPatience)
      due = min(due, max(newsAt + Parking.newsDelay, calmAt))
    }
    return due
  }
}
