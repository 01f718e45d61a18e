import Primitives

/// Trials: candidates that are dialled in turn, because their nodes never proved a key. Only an announcement names
/// these nodes, and anyone on a network can announce any number of nodes.
///
/// The links in a broadcast domain are derived from the ids of its nodes, so invented nodes would displace the real
/// neighbours of a node. When `unansweredMax` unproven nodes do not answer, the domain becomes doubtful. In a doubtful
/// domain only nodes that have proved their key are considered for links. All other nodes of a doubtful domain are
/// dialled in turn.
///
/// Candidates with the fewest failures are dialled first. Among these candidates, newcomers are dialled in the order in
/// which they were found, then the newest candidate. One concurrent trial goes to the oldest candidate. A real newcomer
/// is thus dialled soon, regardless of the number of invented nodes.
///
/// docs/protocol.md, "Who links with whom".
extension Connector {
  /// A domain is doubtful when this many of its unproven nodes each failed to answer `failuresMax` dials. A relay wants
  /// this number of links in a crowded domain.
  static let unansweredMax = 4
  /// Trials that are dialled concurrently by a node with fewer than `trialLinks` links in the domain. Two of `dialsMax`
  /// dials are left for other candidates.
  static let trialsMax = 6
  /// A node with this many links in a domain has enough links, and dials one trial at a time.
  static let trialLinks = 4

  /// A broadcast domain, and the number of this node's links in it.
  private struct Domain {
    let number: UInt32
    let isDoubtful: Bool
    var links = 0
  }

  /// How long a candidate is a newcomer after being found. After an initial burst, announcements bring at most as many
  /// candidates in this time as are dialled (`DialBudget` in Discovery).
  static let newTime = TimeSpan.seconds(10)

  func isDoubtful(_ domain: UInt32) -> Bool {
    candidates.count {
      $0.domain == domain && $0.isSelected && !$0.isProven && $0.failures >= Self.failuresMax
    } >= Self.unansweredMax
  }

  /// Chooses the candidates that are dialled as trials now. Call this after the links in all domains were selected.
  mutating func chooseTrials(_ now: Instant, _ standing: (_ hint: UInt64, _ bearer: BearerKind) -> Standing) {
    var domains: [Domain] = []
    for index in candidates.indices where candidates[index].domain != 0 {
      candidates[index].isTrial = false
      if candidates[index].isNameless { setWanted(index, false, isMutual: false, now) }
      let number = candidates[index].domain
      if !domains.contains(where: { $0.number == number }) {
        domains.append(Domain(number: number, isDoubtful: isDoubtful(number)))
      }
    }
    if !domains.contains(where: { $0.isDoubtful }) && !candidates.contains(where: { $0.isNameless }) { return }
    for index in candidates.indices where candidates[index].domain != 0 && candidates[index].isProven {
      let candidate = candidates[index]
      guard let domain = domains.firstIndex(where: { $0.number == candidate.domain }) else { continue }
      if standing(candidate.hint, candidate.bearer) == .linked { domains[domain].links += 1 }
    }
    var trials = candidates.count { $0.phase == .dialling && isOnTrial($0, domains) }
    while trials < Self.trialsMax, let index = nextTrial(trials, domains, now) {
      candidates[index].isTrial = true
      setWanted(index, true, isMutual: false, now)
      trials += 1
    }
  }

  /// The next trial, among the candidates with the fewest failures: the newcomer found first or, without newcomers, the
  /// newest candidate. Without newcomers, the last of `trialsMax` trials goes to the oldest candidate.
  private func nextTrial(_ trials: Int, _ domains: [Domain], _ now: Instant) -> Int? {
    let isOldest = trials == Self.trialsMax - 1
    var next: (index: Int, failures: UInt32, isNew: Bool)?
    for index in candidates.indices where !candidates[index].isTrial {
      guard case .waiting = candidates[index].phase, isOnTrial(candidates[index], domains) else { continue }
      let failures = candidates[index].failures
      let isNew = now - candidates[index].foundAt < Self.newTime
      if let next {
        if failures > next.failures { continue }
        if failures == next.failures && (isNew == next.isNew ? isNew || isOldest : next.isNew) { continue }
      }
      let domain = domains.first { $0.number == candidates[index].domain }
      if trials > 0, let domain, domain.links >= Self.trialLinks { continue }
      next = (index, failures, isNew)
    }
    return next?.index
  }

  private func isOnTrial(_ candidate: Candidate, _ domains: [Domain]) -> Bool {
    guard !candidate.isProven, let domain = domains.first(where: { $0.number == candidate.domain }) else {
      return false
    }
    if candidate.isNameless { return true }
    // A leaf tries other leaves only while it has no link in the domain.
    return domain.isDoubtful && (candidate.relays || !relays && domain.links == 0)
  }
}
