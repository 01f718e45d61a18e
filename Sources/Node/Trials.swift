import Primitives

/// Candidates that are dialled in turn because nothing speaks for them but an announcement, and anybody on a network can
/// announce any number of nodes.
///
/// The links in a broadcast domain follow from the ids of all its nodes, so invented ones would take the places of
/// the real ones next to a node. As soon as some of the chosen ones do not answer, the domain is doubtful: only nodes that
/// have proved their key count, and the others have one dial each: of those with the fewest failures the newcomers in their order,
/// then the newest, and beside it the oldest. So a real node that comes is dialled soon, however many invented ones there are.
///
/// docs/protocol.md, "Who links with whom".
extension Connector {
  /// A domain is doubtful when so many of its nodes, none of them proven, failed `failuresMax` times: as many as a node dials in
  /// a crowd.
  static let unansweredMax = 4
  /// Unproven candidates dialled at once, by a node with fewer than `trialLinks` links in the domain: two dials are left for others.
  static let trialsMax = 6
  /// A node with so many links in a domain has what it needs there, and tries one candidate at a time.
  static let trialLinks = 4

  /// A domain, as far as it is known.
  private struct Domain {
    let number: UInt32
    let isDoubtful: Bool
    var links = 0
  }

  /// How long a candidate is a newcomer. In that time announcements bring at most as many as are dialled, once their first burst is over
  /// (`DialBudget` in Discovery).
  static let newTime = TimeSpan.seconds(10)

  func isDoubtful(_ domain: UInt32) -> Bool {
    candidates.count {
      $0.domain == domain && $0.isSelected && !$0.isProven && $0.failures >= Self.failuresMax
    } >= Self.unansweredMax
  }

  /// Chooses those whose turn it is. Call it after the choice in all domains.
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

  /// Among those that failed least: the newcomers in their order, then the newest one; for the last place the oldest.
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
    // A leaf links with leaves only where it has no relay.
    return domain.isDoubtful && (candidate.relays || !relays && domain.links == 0)
  }
}
