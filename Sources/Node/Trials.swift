import Primitives

/// Candidates that are dialled in turn because only an announcement vouches for them, and anyone on a network can
/// announce any number of nodes.
///
/// The links in a broadcast domain are derived from the ids of its nodes, so invented nodes would displace the real
/// neighbours of a node. When several chosen nodes do not answer, the domain becomes doubtful. Then only nodes that
/// have proved their key count, and the others are dialled in turn. Those with the fewest failures come first:
/// newcomers in their order, then the newest, and in parallel the oldest. A real newcomer is thus dialled soon,
/// regardless of the number of invented ones.
///
/// docs/protocol.md, "Who links with whom".
extension Connector {
  /// A domain is doubtful when this many of its unproven nodes failed `failuresMax` times. A node dials as many in a
  /// crowded domain.
  static let unansweredMax = 4
  /// Unproven candidates that are dialled concurrently by a node with fewer than `trialLinks` links in the domain. Two
  /// dials are left for others.
  static let trialsMax = 6
  /// A node with this many links in a domain has enough, and tries one candidate at a time.
  static let trialLinks = 4

  /// The known state of a domain.
  private struct Domain {
    let number: UInt32
    let isDoubtful: Bool
    var links = 0
  }

  /// How long a candidate is a newcomer. After their initial burst, announcements bring at most as many candidates in
  /// this time as are dialled (`DialBudget` in Discovery).
  static let newTime = TimeSpan.seconds(10)

  func isDoubtful(_ domain: UInt32) -> Bool {
    candidates.count {
      $0.domain == domain && $0.isSelected && !$0.isProven && $0.failures >= Self.failuresMax
    } >= Self.unansweredMax
  }

  /// Chooses the candidates whose turn it is. Call it after the selection in all domains.
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
      guard let place = domains.firstIndex(where: { $0.number == candidate.domain }) else { continue }
      if standing(candidate.hint, candidate.bearer) == .linked { domains[place].links += 1 }
    }
    var trials = candidates.count { $0.phase == .dialling && isOnTrial($0, domains) }
    while trials < Self.trialsMax, let index = nextTrial(trials, domains, now) {
      candidates[index].isTrial = true
      setWanted(index, true, isMutual: false, now)
      trials += 1
    }
  }

  /// The next trial among those that failed least: newcomers in their order, then the newest. The last trial goes to
  /// the oldest.
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
    // A leaf links with leaves only if it has no relay.
    return domain.isDoubtful && (candidate.relays || !relays && domain.links == 0)
  }
}
