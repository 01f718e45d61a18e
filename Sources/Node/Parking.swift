import Frame
import Journal
import Link
import Mesh
import Primitives
import Seal

/// Lets neighbours take turns at the few connections of the Bluetooth adapter. A relay forwards for others; a leaf is a
/// node that does not.
///
/// A relay keeps one connection free for inbound links and, when it has parked several leaves, another connection for
/// its own dials. If too few connections are free, the relay parks the leaf that has been idle longest. A parked link
/// has no stream. Both ends of a parked link keep the link, its routes, the topologies and the queued frames.
///
/// Each end of a parked link can call the other end, which means that it dials the parked neighbour. A node calls
/// immediately for frames, and after a short delay for urgent updates (`news`). Urgent updates are nodes that appeared
/// or vanished, and changed profiles and services. Renewals wait for the next visit. A visit is an occasional call that
/// only checks whether the other end is still there. Without visits, a leaf that left would stay in the topology. A
/// leaf is also called when discovery has lost it. docs/protocol.md, "Parking".
struct Parking {
  /// A leaf is idle when its link has been up, and no routed frame has passed, for this time.
  static let idleMin = TimeSpan.seconds(1)
  /// A leaf with traffic keeps its connection for this time, even if other leaves wait for one. This time starts when
  /// the leaf's traffic began or its link came up.
  static let turnMax = TimeSpan.seconds(3)
  /// A leaf that is parked while it has traffic is asked not to call for at least this time, so that other leaves come
  /// first. A leaf waits at most `pauseSecondsMax`, whatever the relay requests.
  static let pauseSecondsMin: UInt16 = 3
  static let pauseSecondsMax: UInt16 = 10
  /// Urgent updates for a parked neighbour wait this long, because more may follow. While other neighbours connect to
  /// this node, the updates wait up to `newsPatience`. A neighbour that connects brings updates itself. Linux also
  /// mistakes an inbound connection for an outbound connection that is just being made.
  static let newsDelay = TimeSpan.seconds(1)
  static let newsPatience = TimeSpan.seconds(5)
  /// The relay visits a parked leaf after this time, if discovery finds the leaf. Without a visit by the relay, the
  /// leaf visits the relay after `leafInterval`. `visitInterval` and `leafInterval` begin when the leaf is parked. Both
  /// intervals are long, because each visit briefly takes a connection from another leaf, and advertisements live for
  /// 600 s.
  static let visitInterval = TimeSpan.seconds(150)
  static let leafInterval = TimeSpan.seconds(200)
  /// A parked neighbour is considered gone after `restMax` without contact, or `callMax` after discovery lost it. A
  /// parked neighbour is also considered gone `callMax` after the first dial of a call, if `failuresMax` dials have
  /// failed. A call may wait long for a connection. After two crossed dials the kernel may need 10 s to detect the
  /// crossing.
  static let restMax = TimeSpan.seconds(300)
  static let callMax = TimeSpan.seconds(30)
  static let failuresMax: UInt8 = 3
  /// A leaf that has a stream to one relay closes its link to another relay that parked the leaf this long ago.
  static let leaveTime = TimeSpan.seconds(8)
  /// The maximum number of concurrent parked neighbours. The remaining link slots are for links with a stream.
  static let parkedMax = Limits.linksMax / 2
  /// With fewer Bluetooth connections than this number, leaves are not parked.
  static let slotsMin = 3
  /// The number of waiting dials for which connections are freed in advance.
  static let slotsAhead = 2
  /// A call with frames that has waited this long may use the connection that is kept for inbound links.
  static let callPatience = TimeSpan.seconds(3)
  /// A parked neighbour is called first if frames from this node wait for it, or from a connected neighbour that it has
  /// not met in this round (`Turn.met`). Without this rule, two neighbours that answer each other could be connected in
  /// turn and never together. Other frames give a parked neighbour the same priority when they have waited this long.
  static let answerPatience = TimeSpan.seconds(10)

  /// The state of one link, by which it is parked and called. An instant is `.never` if it does not apply.
  struct Turn {
    /// When a routed frame last passed; initially when the link came up.
    var talkedAt = Instant.zero
    /// When the last series of routed frames began. Frames of one series are at most `turnMax` apart, so that a leaf
    /// with a frame now and then does not keep its connection.
    var turnAt = Instant.zero
    /// When the link was parked. The value is kept until the link is up again.
    var parkedAt = Instant.never
    /// The neighbour asked not to be called before this time.
    var pauseEnd = Instant.zero
    /// When the urgent updates that wait for the neighbour appeared.
    var newsAt = Instant.never
    /// When the present call of the neighbour began.
    var calledAt = Instant.never
    /// When the neighbour was first dialled in the present call. The call may have waited for a connection.
    var dialledAt = Instant.never
    /// When the present call first had frames waiting for the neighbour.
    var urgentAt = Instant.never
    var isUrgent: Bool { urgentAt != .never }
    var call = Connector.Call.news
    /// Whether discovery has found the neighbour since it was parked.
    var wasHeard = false
    /// When discovery lost the neighbour.
    var unheardAt = Instant.never
    /// Dials that failed since the link was parked.
    var failures: UInt8 = 0
    /// The neighbour's epoch and maximum payload when the link was parked.
    var epoch: UInt64 = 0
    var payloadBytesMax = 0
    /// Whether everything that both ends had sent before the link was parked has arrived.
    var isWhole = true
    /// Whether an advertisement of the neighbour shows that the neighbour no longer has the link.
    var isForgotten = false
    /// The neighbours that were connected together with this one in the present round, one bit for each slot. The next
    /// round begins when this neighbour is connected again, and has met all connected neighbours whose frames waited
    /// for it.
    var met: UInt64 = 0

    mutating func talk(_ now: Instant) {
      if talkedAt + Parking.turnMax < now { turnAt = now }
      talkedAt = now
    }

    /// When the neighbour is considered gone.
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
  /// The slots of parked links, one bit each.
  private(set) var parked: UInt64 = 0
  /// The slots of parked links whose neighbours discovery finds, as of `candidateChanges`.
  private var heard: UInt64 = 0
  private var candidateChanges: UInt64?
  /// The slots over which a routed frame has passed since the last review.
  var talking: UInt64 = 0
  /// When a neighbour last connected over Bluetooth.
  var visitedAt = Instant.zero
  /// When parked and idle links must be reviewed next.
  var deadline = Instant.never
  /// Whether frames have waited for a parked neighbour longer than `callPatience`.
  var isCallOverdue = false

  func isCalled(_ slot: Int) -> Bool { turns[slot].calledAt != .never }
  /// Whether a link was parked and is not up again. It may have a stream already.
  func isAway(_ slot: Int) -> Bool { turns[slot].parkedAt != .never }
  func isHeard(_ slot: Int) -> Bool { heard & 1 << UInt64(slot) != 0 }

  /// Whether a parked neighbour that discovery finds is being called, without failures so far.
  var isCalling: Bool {
    var slots = Slots(parked)
    while let slot = slots.next() {
      if isCalled(slot) && turns[slot].failures == 0 && turns[slot].unheardAt == .never { return true }
    }
    return false
  }

  /// How long a leaf that is parked during traffic is asked not to call, in seconds. In this time all called neighbours
  /// can have their turns at `count` connections.
  func pauseSeconds(slots count: Int) -> UInt16 {
    var called: UInt64 = 0
    var slots = Slots(parked)
    while let slot = slots.next() { if isCalled(slot) { called += 1 } }
    let span = Self.turnMax.milliseconds * called / UInt64(max(count, 1))
    return min(max(UInt16((span + 999) / 1000), Self.pauseSecondsMin), Self.pauseSecondsMax)
  }

  mutating func talks(_ slot: Int) { talking |= 1 << UInt64(slot) }

  mutating func park(_ slot: Int, _ link: Link, isWhole: Bool, now: Instant) {
    let pause = TimeSpan.seconds(UInt64(min(link.retryAfterSeconds, Self.pauseSecondsMax)))
    turns[slot] = Turn(
      talkedAt: turns[slot].talkedAt, parkedAt: now, pauseEnd: now + pause, epoch: link.peerEpoch,
      payloadBytesMax: link.payloadBytesMax, isWhole: isWhole, met: turns[slot].met)
    parked |= 1 << UInt64(slot)
    candidateChanges = nil
  }

  /// Updates `heard` if candidates were found or lost.
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

  /// Marks a parked link as having a stream again.
  mutating func resume(_ slot: Int) { parked &= ~(1 << UInt64(slot)) }

  /// Parks a link again whose new stream ended before the link was up. A stream that ended before the link was up does
  /// not extend the time until the neighbour is considered gone.
  mutating func restAgain(_ slot: Int, isCallFailed: Bool) {
    parked |= 1 << UInt64(slot)
    candidateChanges = nil
    if isCallFailed { turns[slot].failures = min(turns[slot].failures + 1, Self.failuresMax) }
  }

  /// Records that the link is up again. The links in `connected` are up as well. Frames from those in `waiting` are
  /// queued for the neighbour.
  mutating func resumed(_ slot: Int, connected: UInt64, waiting: UInt64) {
    if waiting & ~turns[slot].met == 0 { turns[slot].met = 0 }
    turns[slot].met |= connected
    var others = Slots(connected)
    while let other = others.next() { turns[other].met |= 1 << UInt64(slot) }
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
    for other in turns.indices { turns[other].met &= ~(1 << UInt64(slot)) }
  }
}

extension Node {
  /// Handles the end of the stream of a link that is being parked, or of a parked link that did not come up again.
  func linkParked(_ slot: Int, _ now: Instant) {
    let wasUp = !parking.isAway(slot)
    let isWhole = links[slot].rest() || !wasUp
    if wasUp {
      parking.park(slot, links[slot], isWhole: isWhole, now: now)
      for association in associations.all(behind: slot) {
        association.protection.seal?.setParked(waitsParked(slot), now: now)
      }
    } else {
      parking.restAgain(slot, isCallFailed: !links[slot].isInbound)
    }
    // An advertisement that arrived before the link was parked may already show that the neighbour no longer has the
    // link.
    if !isWhole, let index = mesh.index(of: links[slot].peer), let topology = mesh.advertisement(of: index, .topology),
      let view = try? AdvertisementView(topology)
    {
      reviewParked(links[slot].peer, view)
    }
    surplus.remove(slot)
    connector.linkClosed(slot, peer: links[slot].peer, retryAfterSeconds: 0, isFailure: !wasUp, now: now)
    forgetOutputs(slot)
    journal.record(
      .info, .linkParked, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue),
      (now - links[slot].upSince).milliseconds, node: links[slot].peer)
  }

  /// Whether frames of this node wait in a parked link, so that the neighbour is called. A handshake has nothing to do
  /// before they are sent. Without such frames, its next retransmission leads to the call.
  func waitsParked(_ slot: Int) -> Bool {
    parking.isAway(slot) && links[slot].hasFrames(from: FramePool.ownIngress)
  }

  /// The slot of the parked link to a node that has opened a stream.
  func parkedSlot(of peer: NodeID, _ bearer: BearerKind) -> Int? {
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      if links[slot].peer == peer && links[slot].bearer == bearer { return slot }
    }
    return nil
  }

  /// Whether at least one link is parked and no link is up. This node then learns only at the next visit that another
  /// node has left or returned.
  var isParked: Bool {
    var hasParked = false
    for slot in links.indices {
      switch links[slot].state {
      case .up, .parking: return false
      case .opening, .parked: if parking.isAway(slot) { hasParked = true }
      case .idle, .closed: break
      }
    }
    return hasParked
  }

  /// Handles that a parked link is up again. Advertisements that may have been lost when the link was parked are sent
  /// again.
  func linkResumed(_ slot: Int, _ now: Instant) {
    let turn = parking.turns[slot]
    parking.resumed(slot, connected: connected(except: slot) & bluetoothLinks, waiting: waiting(for: slot))
    directory.renewGrace(now: now)
    for association in associations.all(behind: slot) {
      association.protection.seal?.setParked(false, now: now)
      // Earlier attempts may have had no path, and a leaf may be connected only for seconds (`Parking.turnMax`).
      association.protection.seal?.routeFound()
    }
    if links[slot].peerEpoch != turn.epoch || links[slot].payloadBytesMax != turn.payloadBytesMax {
      // The neighbour has restarted and no longer has the link.
      _ = mesh.removeLink(slot)
      addToMesh(slot, now)
    } else if !turn.isWhole {
      mesh.markUnsentAgain(.none, on: slot)
      flooding[slot].owe(.none, now: now)
    }
    wantTransmit(slot)
  }

  /// Handles a dial that failed for a reason other than a lack of connections. Closes the link to a parked neighbour
  /// that is considered gone.
  func callFailed(_ handle: UInt32, _ now: Instant) {
    guard let (hint, bearer) = connector.target(handle) else { return }
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      guard links[slot].peer.high == hint, links[slot].bearer == bearer else { continue }
      parking.turns[slot].failures = min(parking.turns[slot].failures + 1, Parking.failuresMax)
      if parking.turns[slot].end <= now { closeLink(slot, .timedOut, now: now) }
    }
  }

  /// Closes the links to parked neighbours that are considered gone. Returns false if there were none.
  func expireParked(_ now: Instant) -> Bool {
    let before = parking.parked
    var slots = Slots(before)
    while let slot = slots.next() {
      let turn = parking.turns[slot]
      if turn.end <= now { closeLink(slot, turn.isForgotten ? .notNeeded : .timedOut, now: now) }
    }
    return parking.parked != before
  }

  /// Handles an advertisement of a parked neighbour that arrived by another path. If the neighbour has restarted or no
  /// longer lists this node, the parked link is closed at the next review. Routes still use that link, so its slot must
  /// not be freed earlier.
  func reviewParked(_ node: NodeID, _ view: borrowing AdvertisementView) {
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

  /// Records that a candidate is dialled, for the call of its node if the link to that node is parked.
  func callTried(_ handle: UInt32, _ now: Instant) {
    guard parking.parked != 0, let (hint, bearer) = connector.target(handle) else { return }
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      guard links[slot].peer.high == hint, links[slot].bearer == bearer else { continue }
      parking.turns[slot].dialledAt = min(parking.turns[slot].dialledAt, now)
    }
  }

  /// Calls the parked neighbours for which there is something to send or a visit is due.
  func callParked(_ now: Instant) {
    parking.deadline = .never
    parking.isCallOverdue = false
    var slots = Slots(parking.talking)
    while let slot = slots.next() { parking.turns[slot].talk(now) }
    parking.talking = 0
    parking.listen(connector) { (links[$0].peer.high, links[$0].bearer) }
    slots = Slots(parking.parked)
    while let slot = slots.next() {
      review(slot, now)
      callIfDue(slot, now)
      parking.deadline = min(parking.deadline, parking.turns[slot].end)
      guard parking.turns[slot].isUrgent else { continue }
      let overdueAt = parking.turns[slot].urgentAt + Parking.callPatience
      if overdueAt <= now { parking.isCallOverdue = true } else { parking.deadline = min(parking.deadline, overdueAt) }
      let firstAt = parking.turns[slot].urgentAt + Parking.answerPatience
      if firstAt > now { parking.deadline = min(parking.deadline, firstAt) }
    }
  }

  private func review(_ slot: Int, _ now: Instant) {
    let isHeard = parking.isHeard(slot)
    let wasHeard = parking.turns[slot].wasHeard
    parking.turns[slot].wasHeard = wasHeard || isHeard
    parking.turns[slot].unheardAt = wasHeard && !isHeard ? min(parking.turns[slot].unheardAt, now) : .never
  }

  private func callIfDue(_ slot: Int, _ now: Instant) {
    let isUrgent = links[slot].hasFrames
    let urgentAt = isUrgent ? min(parking.turns[slot].urgentAt, now) : .never
    let call = isUrgent ? call(slot, urgentSince: urgentAt, now) : .news
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

  /// The reason to call a parked neighbour for which frames wait.
  private func call(_ slot: Int, urgentSince: Instant, _ now: Instant) -> Connector.Call {
    let waiting = waiting(for: slot)
    if waiting & ~parking.turns[slot].met != 0 || links[slot].hasFrames(from: FramePool.ownIngress)
      || urgentSince + Parking.answerPatience <= now
    {
      return .meeting
    }
    return waiting != 0 ? .answers : .frames
  }

  /// The links that are up, except one, as one bit each.
  private func connected(except slot: Int) -> UInt64 {
    links.indices.reduce(0) { $1 != slot && links[$1].state == .up ? $0 | 1 << UInt64($1) : $0 }
  }

  /// The links that are up and from which frames wait for a neighbour, one bit each.
  private func waiting(for slot: Int) -> UInt64 {
    var waiting: UInt64 = 0
    var slots = Slots(connected(except: slot))
    while let other = slots.next() {
      if links[slot].hasFrames(from: other) { waiting |= 1 << UInt64(other) }
    }
    return waiting
  }

  /// When a parked neighbour is called for which no frames wait.
  private func callTime(_ slot: Int, _ now: Instant) -> Instant {
    // Discovery has lost the neighbour, so this node can no longer dial it. The neighbour may still dial this node.
    if parking.turns[slot].unheardAt != .never { return now }
    var due = Instant.never
    if parking.isHeard(slot) {
      due = parking.turns[slot].parkedAt + (settings.relays ? Parking.visitInterval : Parking.leafInterval)
      // Only one visit is made at a time, and no visit delays another call.
      if due <= now && parking.isCalling { due = now + Parking.newsDelay }
    }
    // A request for advertisements is urgent too. Without the request, the neighbour does not resend the advertisements
    // that this node refused.
    if mesh.mayHaveNews(slot) || flooding[slot].requestDue != .never {
      let newsAt = min(parking.turns[slot].newsAt, now)
      parking.turns[slot].newsAt = newsAt
      let calmAt = min(parking.visitedAt + Parking.newsDelay, newsAt + Parking.newsPatience)
      due = min(due, max(newsAt + Parking.newsDelay, calmAt))
    }
    return due
  }
}
