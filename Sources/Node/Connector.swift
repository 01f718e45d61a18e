import Primitives

/// Decides which candidates to dial, and when. A candidate is an address that discovery found.
///
/// Candidates of a broadcast domain are dialled when `LinkSelection` or `TrafficDemand` wants a link with their node.
/// `BluetoothChoice.swift` decides on candidates over Bluetooth LE and classic. All other candidates are always
/// dialled. If two nodes want a link with each other, the node with the lower id dials immediately. The node with the
/// higher id dials only if no link was made in time, because the other node may be unable to dial. Failed dials are
/// retried with back-off.
struct Connector {
  struct Candidate {
    var handle: UInt32
    var bearer: BearerKind
    /// The first 8 bytes of the node's id, claimed by discovery or learned from a link. 0 if unknown.
    var hint: UInt64
    /// The broadcast domain in which the candidate was found, or 0 for none.
    var domain: UInt32
    /// Whether the candidate's node forwards for others, as discovery claims.
    var relays: Bool
    var phase: Phase
    /// Failed dials and closed links since a link last came up.
    var failures: UInt32 = 0
    let foundAt: Instant
    /// Whether the candidate's node has proved its key on a link.
    var isProven = false
    /// Whether the candidate is dialled as a trial: one of the unproven candidates that are dialled in turn
    /// (`Trials.swift`).
    var isTrial = false
    /// Whether a link with the candidate's node is wanted. An unwanted candidate is not dialled.
    var isWanted: Bool
    /// The time since which the candidate has been wanted.
    var wantedAt = Instant.zero
    /// When a candidate of the same domain was last found or lost.
    var domainChangedAt: Instant
    /// Whether the candidate's domain is crowded (`LinkSelection.isCrowd`). A dial in a crowded domain waits longer,
    /// because nodes that appear soon may make the link superfluous.
    var isInCrowd = false
    /// Whether the candidate is spare: it is dialled only if no route has led to its node for `spareDeferral`.
    var isSpare = false
    var spareDeferral = TimeSpan(nanoseconds: 0)
    /// Whether a route led to the candidate's node at the last check.
    var wasReached = false
    /// The reason for the dial if the link to the candidate's node is parked (kept without a connection).
    var call = Call.news
    /// The time at which the dial in progress was due.
    var dialDueAt = Instant.zero
    /// Whether the dial is due, but the Bluetooth adapter has no free connection or is busy with another dial.
    var lacksSlot = false

    /// Whether `LinkSelection` decides on the candidate.
    var isSelected: Bool { domain != 0 && hint != 0 }
    /// Whether the candidate was received over Bluetooth LE, where connections are few and not all nodes are in range
    /// of each other.
    var isHeard: Bool { bearer == .bluetoothLE && domain == 0 && hint != 0 }
    /// Whether the candidate answered an inquiry of Bluetooth classic.
    var isClassic: Bool { bearer == .bluetoothClassic }

    /// Whether the candidate was announced in a domain, but without a node id.
    var isNameless: Bool { domain != 0 && hint == 0 }

    /// The time from which the candidate may be dialled if its dial is due at `start`. In a domain the dial may have to
    /// wait until the domain is calm.
    func dialTime(_ start: Instant) -> Instant {
      if !isSelected || isTrial { return start }
      let (calm, patience) =
        isInCrowd ? (Connector.crowdCalm, Connector.crowdPatience) : (Connector.calm, Connector.patience)
      return max(start, min(domainChangedAt + calm, wantedAt + patience))
    }
  }

  enum Phase: Equatable {
    /// Do not dial before this instant.
    case waiting(Instant)
    case dialling
    /// A dial to the candidate led to the link in this slot.
    case linked(Int)
    /// Another link or dial leads to the same node over the same bearer. The candidate is reconsidered when that link
    /// or dial ends.
    case served
  }

  /// The state of the link that this node has with a candidate's node over the candidate's bearer.
  enum Standing: Equatable {
    case none
    /// A link with a stream.
    case linked
    /// A parked link that need not be dialled.
    case parked
    /// A parked link whose neighbour is to be dialled, for this reason.
    case called(Call)
  }

  /// The reason for a call: a dial to a parked neighbour. A later case is dialled before an earlier one.
  enum Call: UInt8 {
    /// No frames wait for the neighbour. The call brings updates, or checks that the neighbour is still there.
    case news
    /// Frames wait for the neighbour.
    case frames
    /// Frames wait from a connected neighbour.
    case answers
    /// Frames wait from this node, or from a connected neighbour that the called one has not met in this round
    /// (`Parking.Turn.met`). Or other frames have waited for `Parking.answerPatience`.
    case meeting
  }

  /// The maximum number of concurrent dials over all bearers.
  static let dialsMax = 8
  /// The maximum number of concurrent dials over Bluetooth LE: one dial that connects and one in its TLS handshake. A
  /// radio makes one connection at a time. A further dial would wait in the radio. The radio would make the connection
  /// of a waiting dial even if the other node had connected in the meantime.
  static let bluetoothDialsMax = 2
  /// How long the node with the higher id waits for the node with the lower id to dial.
  static let dialDeferral = TimeSpan.seconds(2)
  /// The time after which a spare candidate is checked again if a route leads to its node.
  static let spareInterval = TimeSpan.seconds(10)
  /// In a domain, a dial waits until no candidate has appeared or vanished for `calm`, at most for `patience`. In a
  /// crowded domain the times are longer, because the neighbours on the rings (`LinkSelection`) are unknown while many
  /// nodes start together.
  static let calm = TimeSpan.milliseconds(250)
  static let patience = TimeSpan.seconds(1)
  static let crowdCalm = TimeSpan.milliseconds(500)
  static let crowdPatience = TimeSpan.seconds(3)
  /// The pause after a failed dial doubles from `pauseMin` to `pauseMiddle`, so a box that restarts is reached within
  /// seconds. After `retriesMax` consecutive failures the node is probably not restarting. The pause is then
  /// `pauseMax`, to use little of the channel.
  static let pauseMin = TimeSpan.milliseconds(250)
  static let pauseMiddle = TimeSpan.seconds(3)
  static let pauseMax = TimeSpan.seconds(30)
  static let retriesMax: UInt32 = 16
  /// After this many consecutive failures a candidate is left out of the selection of links, so another node replaces
  /// it. The candidate returns to the selection when a dial succeeds.
  static let failuresMax: UInt32 = 2

  let localHint: UInt64
  let relays: Bool
  var candidates: [Candidate] = []
  /// The number of the adapter's Bluetooth connections that dials may use, including dials in progress.
  var bluetoothSlots = Int.max
  /// Counts how often a candidate was found, lost or got another hint.
  private(set) var candidateChanges: UInt64 = 0
  /// Whether candidates, links or the demand have changed since the last `choose`.
  private var isStale = false
  /// Whether any domain is crowded.
  private(set) var isInCrowd = false
  /// Whether there are candidates of broadcast domains.
  private(set) var hasDomains = false
  private(set) var demand = TrafficDemand()

  /// `relays` is whether this node forwards for others.
  init(local: NodeID, relays: Bool) {
    localHint = local.high
    self.relays = relays
    candidates.reserveCapacity(Limits.candidatesMax)
  }

  /// Adds or updates a candidate. Returns false if the table is full and the candidate was dropped.
  mutating func found(_ candidate: FoundCandidate, now: Instant) -> Bool {
    if candidate.hint == localHint { return true }
    isStale = true
    if let index = index(of: candidate.handle) {
      if candidate.hint != 0 && candidate.hint != candidates[index].hint {
        let former = candidates[index].hint
        candidateChanges += 1
        candidates[index].hint = candidate.hint
        reviewServed(former, now)
        reviewServed(candidate.hint, now)
      }
      candidates[index].relays = candidate.relays
      // A candidate that was found without a domain stays without one, even if its address is also found in a domain.
      // So the candidate is dialled whether or not `LinkSelection` wants a link with its node.
      if candidates[index].domain != 0 { candidates[index].domain = candidate.domain }
      return true
    }
    if candidates.count == Limits.candidatesMax { return false }
    var new = Candidate(
      handle: candidate.handle, bearer: candidate.bearer, hint: candidate.hint, domain: candidate.domain,
      relays: candidate.relays, phase: .waiting(now), foundAt: now, isWanted: false, domainChangedAt: now)
    // This candidate is always dialled. `choose` decides on all others.
    if !new.isSelected && !new.isHeard && !new.isClassic && !new.isNameless {
      let waits = candidate.hint != 0 && candidate.hint < localHint
      new.phase = .waiting(waits ? now + Self.dialDeferral : now)
      new.isWanted = true
    }
    candidates.append(new)
    candidateChanges += 1
    domainChanged(candidate.domain, now)
    return true
  }

  mutating func lost(_ handle: UInt32, now: Instant) {
    guard let index = index(of: handle) else { return }
    let candidate = candidates.remove(at: index)
    candidateChanges += 1
    domainChanged(candidate.domain, now)
    reviewServed(candidate.hint, now)
    isStale = true
  }

  mutating func dialFailed(_ handle: UInt32, now: Instant) {
    guard let index = index(of: handle) else { return }
    candidates[index].failures = min(candidates[index].failures + 1, Self.retriesMax)
    candidates[index].phase = .waiting(now + pause(candidates[index]))
    reviewServed(candidates[index].hint, now)
    isStale = true
  }

  /// Reschedules a dial that failed because an inbound link took the adapter's last connection. The dial keeps its due
  /// time.
  mutating func dialLostSlot(_ handle: UInt32) {
    guard let index = index(of: handle) else { return }
    candidates[index].phase = .waiting(candidates[index].dialDueAt)
    isStale = true
  }

  /// Ends a dial that led to no stream, because the other node dialled too and a link exists.
  mutating func dialOvertaken(_ handle: UInt32) {
    guard let index = index(of: handle) else { return }
    candidates[index].phase = .served
    isStale = true
  }

  /// Records an opened link. `handle` is nil if the neighbour dialled.
  mutating func linkOpened(_ slot: Int, _ handle: UInt32?, peer: NodeID, now: Instant) {
    isStale = true
    for index in candidates.indices where candidates[index].hint == peer.high { candidates[index].isProven = true }
    guard let handle, let index = index(of: handle) else { return }
    if candidates[index].hint != peer.high {
      candidateChanges += 1
      reviewServed(candidates[index].hint, now)
    }
    candidates[index].hint = peer.high
    candidates[index].isProven = true
    candidates[index].phase = .linked(slot)
  }

  /// Resets the failure count of the candidate that led to the link in this slot, because the link came up.
  mutating func linkUp(_ slot: Int) {
    isStale = true
    for index in candidates.indices where candidates[index].phase == .linked(slot) { candidates[index].failures = 0 }
  }

  /// Records that a link to `peer` closed. The candidate that led to the link waits before its next dial: at least a
  /// short pause, and as long as the neighbour requested. A requested time applies to all candidates of the neighbour.
  /// `isFailure` is false for a link that one end no longer needed.
  mutating func linkClosed(
    _ slot: Int, peer: NodeID, retryAfterSeconds: UInt16, isFailure: Bool = true, now: Instant
  ) {
    isStale = true
    for index in candidates.indices {
      let isPeer = candidates[index].hint == peer.high
      let isThisLink = candidates[index].phase == .linked(slot)
      if isThisLink && isFailure { candidates[index].failures = min(candidates[index].failures + 1, Self.retriesMax) }
      // The node that dialled a link does not dial again after one end no longer needed the link. So a candidate that
      // the link served need not wait for that node's dial (`dialDeferral`).
      let isReleased = isPeer && !isFailure && candidates[index].phase == .served
      guard isThisLink || isReleased || isPeer && retryAfterSeconds > 0 else { continue }
      let asked = TimeSpan.seconds(UInt64(retryAfterSeconds))
      candidates[index].phase = .waiting(now + max(asked, pause(candidates[index])))
      // A node that asked not to be dialled is left out of the selection of links, so another node replaces it.
      if retryAfterSeconds > 0 && candidates[index].isSelected {
        candidates[index].failures = max(candidates[index].failures, Self.failuresMax)
      }
    }
    reviewServed(peer.high, now)
  }

  /// Updates which candidates are wanted. Returns false if nothing has changed since the last call. `standing` returns
  /// the state of the link to the node with a hint over a bearer.
  mutating func choose(now: Instant, standing: (_ hint: UInt64, _ bearer: BearerKind) -> Standing) -> Bool {
    if !isStale { return false }
    isStale = false
    hasDomains = candidates.contains { $0.isSelected }
    for index in candidates.indices {
      if candidates[index].isSelected {
        if isFirstOfItsDomain(index) { choose(in: candidates[index].domain, now, standing) }
      } else if !candidates[index].isHeard && !candidates[index].isClassic && !candidates[index].isNameless {
        setWanted(index, true, isMutual: candidates[index].hint != 0, now)
      }
    }
    if hasDomains || candidates.contains(where: { $0.isNameless }) { chooseTrials(now, standing) }
    chooseOverBluetooth(now, standing)
    chooseOverClassic(now, standing)
    isInCrowd = candidates.contains { $0.isInCrowd }
    return true
  }

  /// Records that links, or the calls of parked neighbours, have changed.
  mutating func standingChanged() { isStale = true }

  private mutating func choose(in domain: UInt32, _ now: Instant, _ standing: (UInt64, BearerKind) -> Standing) {
    var selection = LinkSelection(local: localHint, relays: relays)
    let isDoubtful = isDoubtful(domain)
    for candidate in candidates where candidate.domain == domain && candidate.isSelected && candidate.relays {
      let isLinked = standing(candidate.hint, candidate.bearer) == .linked
      if isLinked || candidate.failures < Self.failuresMax && (candidate.isProven || !isDoubtful) {
        selection.add(candidate.hint)
      }
    }
    for index in candidates.indices where candidates[index].domain == domain && candidates[index].isSelected {
      let (hint, relays) = (candidates[index].hint, candidates[index].relays)
      let isUnproven =
        isDoubtful && !candidates[index].isProven && standing(hint, candidates[index].bearer) != .linked
      let isChosen = !isUnproven && selection.wants(hint, relays: relays)
      let isDemanded = demand.contains(hint)
      // The other end counts the same bytes of traffic, so that node wants the link too.
      let isMutual = isChosen ? selection.isMutual(relays: relays) : isDemanded
      candidates[index].isInCrowd = selection.isCrowd && !isDemanded
      setWanted(index, isChosen || isDemanded, isMutual: isMutual, now)
    }
  }

  mutating func setWanted(_ index: Int, _ isWanted: Bool, isMutual: Bool, _ now: Instant) {
    if isWanted && !candidates[index].isWanted, case .waiting(let start) = candidates[index].phase {
      let waits = isMutual && candidates[index].hint < localHint
      candidates[index].phase = .waiting(max(start, waits ? now + Self.dialDeferral : now))
      candidates[index].wantedAt = now
    }
    candidates[index].isWanted = isWanted
  }

  private func isFirstOfItsDomain(_ index: Int) -> Bool {
    for other in 0..<index where candidates[other].isSelected && candidates[other].domain == candidates[index].domain {
      return false
    }
    return true
  }

  private mutating func domainChanged(_ domain: UInt32, _ now: Instant) {
    for index in candidates.indices where candidates[index].domain == domain { candidates[index].domainChangedAt = now }
  }

  /// Opens a window in which traffic is counted, because a payload of a peer was counted.
  mutating func openTrafficWindow(now: Instant) { demand.openWindow(now: now) }

  /// Records heavy traffic with the node of this hint. The node gets a direct link if discovery has found it in a
  /// domain.
  mutating func addDemand(_ hint: UInt64, from holder: Int, now: Instant) {
    guard candidates.contains(where: { $0.isSelected && $0.hint == hint }) else { return }
    if demand.add(hint, from: holder, now: now) { isStale = true }
  }

  mutating func closeTrafficWindow(now: Instant) {
    if demand.closeWindow(now: now) { isStale = true }
  }

  /// When the domains of a node last changed, if the node is known over `bearer` and none of its candidates is wanted;
  /// otherwise nil.
  func domainChange(ofUnwanted hint: UInt64, _ bearer: BearerKind) -> Instant? {
    var changedAt: Instant?
    for candidate in candidates where candidate.hint == hint && candidate.bearer == bearer {
      if candidate.isWanted { return nil }
      changedAt = max(changedAt ?? .zero, candidate.domainChangedAt)
    }
    return changedAt
  }

  /// Whether a wanted link in a crowded domain may come up soon, because its dials have not failed.
  func makesLinksInCrowd(_ isUp: (_ hint: UInt64, _ bearer: BearerKind) -> Bool) -> Bool {
    candidates.contains { $0.isInCrowd && $0.isWanted && $0.failures == 0 && !isUp($0.hint, $0.bearer) }
  }

  /// Returns the handle of the next candidate to dial, and sets its phase to `.dialling`. Calls for frames are first,
  /// then candidates that are proven or have not failed, then all other candidates. Within each group the candidate
  /// that was due earliest is first. `isLinked` returns whether a link has a stream, `isReached` whether a route leads
  /// to a node. Call `choose` first.
  mutating func nextDial(
    now: Instant, isLinked: (_ hint: UInt64, _ bearer: BearerKind) -> Bool, isReached: (_ hint: UInt64) -> Bool
  ) -> UInt32? {
    for index in candidates.indices { candidates[index].lacksSlot = false }
    if isDiallingAll { return nil }
    while let index = longestDue(now) {
      let candidate = candidates[index]
      if candidate.hint != 0 && (isLinked(candidate.hint, candidate.bearer) || isDialling(like: candidate)) {
        candidates[index].phase = .served
      } else if candidate.isSpare && isReached(candidate.hint) {
        candidates[index].wasReached = true
        candidates[index].phase = .waiting(now + Self.spareInterval)
      } else if candidate.isSpare && candidate.wasReached {
        candidates[index].wasReached = false
        candidates[index].phase = .waiting(now + candidate.spareDeferral)
      } else if candidate.bearer == .bluetoothLE && bluetoothDials >= slots(for: candidate)
        || candidate.isClassic && candidates.contains(where: { $0.phase == .dialling && $0.bearer.isBluetooth })
      {
        candidates[index].lacksSlot = true
      } else {
        if case .waiting(let start) = candidate.phase { candidates[index].dialDueAt = start }
        candidates[index].phase = .dialling
        return candidate.handle
      }
    }
    return nil
  }

  /// The concurrent Bluetooth LE dials that are allowed for a candidate. A leaf keeps its last connection free for a
  /// relay, because a radio without a free connection does not receive advertisements.
  private func slots(for candidate: Candidate) -> Int {
    min(Self.bluetoothDialsMax, relays || candidate.relays ? bluetoothSlots : bluetoothSlots - 1)
  }

  private func longestDue(_ now: Instant) -> Int? {
    var longest: (index: Int, due: Instant)?
    for index in candidates.indices where candidates[index].isWanted && !candidates[index].lacksSlot {
      guard case .waiting(let start) = candidates[index].phase else { continue }
      let due = candidates[index].dialTime(start)
      if due > now { continue }
      if let known = longest {
        let (rank, former) = (rank(index), rank(known.index))
        if rank == former ? due >= known.due : rank > former { continue }
      }
      longest = (index, due)
    }
    return longest?.index
  }

  /// The rank of a candidate; a lower rank is dialled first. Unproven candidates with failed dials are last, so that
  /// new candidates are not delayed.
  private func rank(_ index: Int) -> Int {
    switch candidates[index].call {
    case .meeting: 0
    case .answers: 1
    case .frames: 2
    case .news: candidates[index].isProven || candidates[index].failures == 0 ? 3 : 4
    }
  }

  /// When `nextDial` may have a new result without a further event. A connection that becomes free is an event.
  var deadline: Instant {
    // No dial can begin before another one ends, which is an event.
    if isDiallingAll { return .never }
    var earliest = Instant.never
    for candidate in candidates where candidate.isWanted && !candidate.lacksSlot {
      if case .waiting(let start) = candidate.phase { earliest = min(earliest, candidate.dialTime(start)) }
    }
    return earliest
  }

  /// Reconsiders the served candidates of a node after a link or dial to that node ended. These candidates first wait
  /// for `dialDeferral`, because another link may replace the link that ended.
  private mutating func reviewServed(_ hint: UInt64, _ now: Instant) {
    for index in candidates.indices where candidates[index].hint == hint && candidates[index].phase == .served {
      candidates[index].phase = .waiting(now + Self.dialDeferral)
    }
  }

  /// The Bluetooth LE dials in progress, and the LE dials that wait for a connection.
  var bluetoothDials: Int { candidates.count { $0.phase == .dialling && $0.bearer == .bluetoothLE } }
  var dialsWithoutSlot: Int { candidates.count { $0.lacksSlot && !$0.isClassic } }

  /// Whether discovery knows the node with this hint over `bearer`.
  func knows(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    candidates.contains { $0.hint == hint && $0.bearer == bearer }
  }

  /// The node of a candidate, or nil if the candidate is unknown or has no hint.
  func target(_ handle: UInt32) -> (hint: UInt64, bearer: BearerKind)? {
    guard let index = index(of: handle), candidates[index].hint != 0 else { return nil }
    return (candidates[index].hint, candidates[index].bearer)
  }

  private func index(of handle: UInt32) -> Int? { candidates.firstIndex { $0.handle == handle } }

  private var isDiallingAll: Bool {
    var dials = 0
    for candidate in candidates where candidate.phase == .dialling { dials += 1 }
    return dials >= Self.dialsMax
  }

  private func isDialling(like other: Candidate) -> Bool {
    candidates.contains { $0.phase == .dialling && $0.hint == other.hint && $0.bearer == other.bearer }
  }

  /// The pause after a failure, lengthened at random by up to a quarter, so that two boxes do not dial simultaneously.
  private func pause(_ candidate: Candidate) -> TimeSpan {
    let doubled = Backoff.pause(after: Int(candidate.failures), first: Self.pauseMin, longest: Self.pauseMiddle)
    let base = candidate.failures < Self.retriesMax ? doubled : Self.pauseMax
    let spread = (localHint ^ UInt64(candidate.handle) &* 0x9E37_79B9_7F4A_7C15) >> 48
    return TimeSpan(nanoseconds: base.nanoseconds + base.nanoseconds / 4 * spread / 65_536)
  }
}
