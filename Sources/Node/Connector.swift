import Primitives

/// Which candidate to dial, and when.
///
/// Candidates of a broadcast domain are dialled when `LinkSelection` or `TrafficDemand` wants them; those over Bluetooth, of both
/// kinds, as `BluetoothChoice.swift` says; all others always.
/// Of two nodes that both want a link the one with the lower id dials at once. The other dials only when no link was
/// made in time, because the first may be unable to. A failed dial is retried with growing pauses.
struct Connector {
  struct Candidate {
    var handle: UInt32
    var bearer: BearerKind
    /// First 8 bytes of the id, claimed by discovery or learned from a link; 0 when unknown.
    var hint: UInt64
    /// The broadcast domain where it was found; 0 for none.
    var domain: UInt32
    /// It forwards for others, as far as discovery says.
    var relays: Bool
    var phase: Phase
    /// Failed dials and closed links since a link last came up.
    var failures: UInt32 = 0
    let foundAt: Instant
    /// Its node has proved its key on a link.
    var isProven = false
    /// It is dialled in its turn as one of those that nothing is known of (`Trials.swift`).
    var isTrial = false
    /// A link with it is wanted; else it is not dialled.
    var isWanted: Bool
    /// Since when it has been wanted.
    var wantedAt = Instant.zero
    /// When a candidate of its domain was last found or lost.
    var domainChangedAt: Instant
    /// Its domain is crowded: a link in haste would soon be one too many.
    var isInCrowd = false
    /// It is dialled only when no way has led to it for `spareDeferral`.
    var isSpare = false
    var spareDeferral = TimeSpan(nanoseconds: 0)
    /// A way led to it when it was last looked at.
    var wasReached = false
    /// How it is called, if its link is parked.
    var call = Call.news
    /// Since when the dial under way had been due.
    var dialDueAt = Instant.zero
    /// Its dial is due, but the adapter has no place for it now, or is busy with another one.
    var lacksPlace = false

    /// Whether `LinkSelection` decides on it.
    var isSelected: Bool { domain != 0 && hint != 0 }
    /// It was heard over Bluetooth, where places are few and hearing is not mutual.
    var isHeard: Bool { bearer == .bluetoothLE && domain == 0 && hint != 0 }
    /// It answered an inquiry.
    var isClassic: Bool { bearer == .bluetoothClassic }

    /// It was announced in a domain without saying of which node.
    var isNameless: Bool { domain != 0 && hint == 0 }

    /// When it may be dialled, if it is to be dialled from `start` on.
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
    /// This dial led to the link in this slot.
    case linked(Int)
    /// Another link or dial leads to the same node over the same bearer. Looked at again when one of them ends.
    case served
  }

  /// What this node has with the node of a candidate, over the candidate's bearer.
  enum Standing: Equatable {
    case none
    /// A link with a stream.
    case linked
    /// A parked link, to be left alone or to be dialled.
    case parked
    case called(Call)
  }

  /// The reason for a call of a parked neighbour. A later case is dialled before an earlier one.
  enum Call: UInt8 {
    case news
    /// Frames wait for it.
    case frames
    /// Their sender is here and may leave again, or they have waited for `Parking.answerPatience`.
    case answers
  }

  /// Dials under way at once, over all bearers.
  static let dialsMax = 8
  /// Of these over Bluetooth, where a radio makes one connection at a time: one that connects, and one that shakes hands.
  /// A dial that waits in the radio would be made although the other end has come by itself.
  static let bluetoothDialsMax = 2
  /// How long the node with the higher id waits for the other to dial.
  static let dialDeferral = TimeSpan.seconds(2)
  /// When a spare candidate to which a way led is looked at again.
  static let spareInterval = TimeSpan.seconds(10)
  /// In a domain a dial waits until no candidate has come or gone for `calm`, at most `patience`; in a crowded one longer:
  /// when many nodes start at once, nobody knows yet who stays next to whom.
  static let calm = TimeSpan.milliseconds(250)
  static let patience = TimeSpan.seconds(1)
  static let crowdCalm = TimeSpan.milliseconds(500)
  static let crowdPatience = TimeSpan.seconds(3)
  /// The pause after a failed dial doubles from `pauseMin` to `pauseMiddle`, so that a box that restarts is reached
  /// within seconds. After `retriesMax` failures in a row it is not restarting, and `pauseMax` spares the channel.
  static let pauseMin = TimeSpan.milliseconds(250)
  static let pauseMiddle = TimeSpan.seconds(3)
  static let pauseMax = TimeSpan.seconds(30)
  static let retriesMax: UInt32 = 16
  /// After so many failures in a row another node of the domain takes a candidate's place, until a dial succeeds.
  static let failuresMax: UInt32 = 2

  let localHint: UInt64
  let relays: Bool
  var candidates: [Candidate] = []
  /// Places of the Bluetooth adapter for dials, those under way included.
  var bluetoothPlaces = Int.max
  /// Counts how often a candidate has come, gone or got another hint.
  private(set) var candidateChanges: UInt64 = 0
  /// Candidates, links or the demand have changed since `choose`.
  private var isStale = false
  /// A domain is crowded.
  private(set) var isInCrowd = false
  /// There are candidates of broadcast domains.
  private(set) var hasDomains = false
  private(set) var demand = TrafficDemand()

  /// `relays`: whether this node forwards for others.
  init(local: NodeID, relays: Bool) {
    localHint = local.high
    self.relays = relays
    candidates.reserveCapacity(Limits.candidatesMax)
  }

  /// False when the table is full and the candidate was dropped.
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
      // What is to be dialled always stays so, in whichever domain the same address is found too.
      if candidates[index].domain != 0 { candidates[index].domain = candidate.domain }
      return true
    }
    if candidates.count == Limits.candidatesMax { return false }
    var new = Candidate(
      handle: candidate.handle, bearer: candidate.bearer, hint: candidate.hint, domain: candidate.domain,
      relays: candidate.relays, phase: .waiting(now), foundAt: now, isWanted: false, domainChangedAt: now)
    // `choose` decides on the others.
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

  /// A dial failed because a caller took the adapter's last place. It keeps its turn for the next one.
  mutating func dialLostPlace(_ handle: UInt32) {
    guard let index = index(of: handle) else { return }
    candidates[index].phase = .waiting(candidates[index].dialDueAt)
    isStale = true
  }

  /// A dial ended without a stream, but the neighbour had dialled, too, and there is a link.
  mutating func dialOvertaken(_ handle: UInt32) {
    guard let index = index(of: handle) else { return }
    candidates[index].phase = .served
    isStale = true
  }

  /// A link opened. `handle` is nil when the neighbour dialled.
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

  /// The link came up: count failures from zero again.
  mutating func linkUp(_ slot: Int) {
    isStale = true
    for index in candidates.indices where candidates[index].phase == .linked(slot) { candidates[index].failures = 0 }
  }

  /// A link to `peer` closed. Its candidates wait as long as the neighbour asked, or a short pause. `isFailure` is false
  /// for a link that one end no longer needed.
  mutating func linkClosed(
    _ slot: Int, peer: NodeID, retryAfterSeconds: UInt16, isFailure: Bool = true, now: Instant
  ) {
    isStale = true
    for index in candidates.indices {
      let isPeer = candidates[index].hint == peer.high
      let isThisLink = candidates[index].phase == .linked(slot)
      if isThisLink && isFailure { candidates[index].failures = min(candidates[index].failures + 1, Self.retriesMax) }
      // Who dialled a link that was closed in agreement does not dial again.
      let isReleased = isPeer && !isFailure && candidates[index].phase == .served
      guard isThisLink || isReleased || isPeer && retryAfterSeconds > 0 else { continue }
      let asked = TimeSpan.seconds(UInt64(retryAfterSeconds))
      candidates[index].phase = .waiting(now + max(asked, pause(candidates[index])))
      // Who asked not to be dialled leaves its place to another one.
      if retryAfterSeconds > 0 && candidates[index].isSelected {
        candidates[index].failures = max(candidates[index].failures, Self.failuresMax)
      }
    }
    reviewServed(peer.high, now)
  }

  /// Chooses the wanted candidates anew; false when nothing has changed since the last call. `standing` says what there is
  /// over `bearer` with the node of this hint.
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

  /// The links or the calls of parked neighbours have changed.
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
      // The other end counts the same bytes.
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

  /// A payload of a peer was counted.
  mutating func openTrafficWindow(now: Instant) { demand.openWindow(now: now) }

  /// Much passes to or from the node with this hint: it gets a direct link, if discovery shows it.
  mutating func addDemand(_ hint: UInt64, from holder: Int, now: Instant) {
    guard candidates.contains(where: { $0.isSelected && $0.hint == hint }) else { return }
    if demand.add(hint, from: holder, now: now) { isStale = true }
  }

  mutating func closeTrafficWindow(now: Instant) {
    if demand.closeWindow(now: now) { isStale = true }
  }

  /// When the domains of a node last changed that is known over `bearer` and of which no candidate is wanted; nil when
  /// one is, or none is known.
  func domainChange(ofUnwanted hint: UInt64, _ bearer: BearerKind) -> Instant? {
    var changedAt: Instant?
    for candidate in candidates where candidate.hint == hint && candidate.bearer == bearer {
      if candidate.isWanted { return nil }
      changedAt = max(changedAt ?? .zero, candidate.domainChangedAt)
    }
    return changedAt
  }

  /// Whether a link that is wanted in a crowded domain may soon be up: none has failed yet.
  func makesLinksInCrowd(_ isUp: (_ hint: UInt64, _ bearer: BearerKind) -> Bool) -> Bool {
    candidates.contains { $0.isInCrowd && $0.isWanted && $0.failures == 0 && !isUp($0.hint, $0.bearer) }
  }

  /// The next wanted candidate to dial: urgent ones, then those that have not failed and those that are proven, then the others;
  /// the longest due first. It is then in `.dialling`. `isReached` says whether a way leads to a node. Call `choose` first.
  mutating func nextDial(
    now: Instant, isLinked: (_ hint: UInt64, _ bearer: BearerKind) -> Bool, isReached: (_ hint: UInt64) -> Bool
  ) -> UInt32? {
    for index in candidates.indices { candidates[index].lacksPlace = false }
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
      } else if candidate.bearer == .bluetoothLE && bluetoothDials >= places(for: candidate)
        || candidate.isClassic && candidates.contains(where: { $0.phase == .dialling && $0.bearer.isBluetooth })
      {
        candidates[index].lacksPlace = true
      } else {
        if case .waiting(let start) = candidate.phase { candidates[index].dialDueAt = start }
        candidates[index].phase = .dialling
        return candidate.handle
      }
    }
    return nil
  }

  /// How many may be dialled at once. A leaf keeps its last place for a relay: a radio without a free place hears nobody.
  private func places(for candidate: Candidate) -> Int {
    min(Self.bluetoothDialsMax, relays || candidate.relays ? bluetoothPlaces : bluetoothPlaces - 1)
  }

  private func longestDue(_ now: Instant) -> Int? {
    var longest: (index: Int, due: Instant)?
    for index in candidates.indices where candidates[index].isWanted && !candidates[index].lacksPlace {
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

  /// Announced addresses where nobody answers do not make a newcomer wait.
  private func rank(_ index: Int) -> Int {
    switch candidates[index].call {
    case .answers: 0
    case .frames: 1
    case .news: candidates[index].isProven || candidates[index].failures == 0 ? 2 : 3
    }
  }

  /// When `nextDial` may have a new result. That a place is free again is an event.
  var deadline: Instant {
    // The end of a dial is an event.
    if isDiallingAll { return .never }
    var earliest = Instant.never
    for candidate in candidates where candidate.isWanted && !candidate.lacksPlace {
      if case .waiting(let start) = candidate.phase { earliest = min(earliest, candidate.dialTime(start)) }
    }
    return earliest
  }

  /// A link or a dial to a node has ended: candidates that it served wait for a link that may come in its place.
  private mutating func reviewServed(_ hint: UInt64, _ now: Instant) {
    for index in candidates.indices where candidates[index].hint == hint && candidates[index].phase == .served {
      candidates[index].phase = .waiting(now + Self.dialDeferral)
    }
  }

  /// Dials over Bluetooth that are under way, and those that wait for a place.
  var bluetoothDials: Int { candidates.count { $0.phase == .dialling && $0.bearer == .bluetoothLE } }
  var dialsWithoutPlace: Int { candidates.count { $0.lacksPlace && !$0.isClassic } }

  /// Discovery knows the node with this hint over `bearer`.
  func knows(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    candidates.contains { $0.hint == hint && $0.bearer == bearer }
  }

  /// The node that a candidate leads to; nil when it is gone, or named none.
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

  /// Randomised by up to a quarter, so that two boxes do not dial at the same time.
  private func pause(_ candidate: Candidate) -> TimeSpan {
    let doubled = TimeSpan(nanoseconds: Self.pauseMin.nanoseconds << UInt64(candidate.failures))
    let base = candidate.failures < Self.retriesMax ? min(doubled, Self.pauseMiddle) : Self.pauseMax
    let spread = (localHint ^ UInt64(candidate.handle) &* 0x9E37_79B9_7F4A_7C15) >> 48
    return TimeSpan(nanoseconds: base.nanoseconds + base.nanoseconds / 4 * spread / 65_536)
  }
}
