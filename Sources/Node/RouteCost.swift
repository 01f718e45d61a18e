import Mesh
import Primitives

/// Charges computations of routes to the links that caused them.
///
/// A member can describe a network of many invented relays with many links each, and change one cost at a time. Each
/// computation of such a network takes as long as several signature checks, so it is charged as that many checks
/// (`CheckBudget`). In networks of the usual size a computation takes a fraction of a check, and is charged by the sum.
struct RouteCost {
  /// The links that delivered changed topologies since the last computation, one bit each.
  private var changers: UInt64 = 0
  /// The steps of computations that are not charged yet, less than the steps of a check.
  private var steps = 0
  /// The earliest time of the next removal of expired advertisements.
  private(set) var expiryDue = Instant.zero

  /// Records that link `slot` delivered a changed topology.
  mutating func note(changeFrom slot: Int) { changers |= 1 << UInt64(slot) }

  /// Whether expired advertisements may be removed now. A removal leads to a computation, and a member can let its
  /// advertisements expire one by one.
  mutating func mayExpire(_ now: Instant) -> Bool {
    if expiryDue > now { return false }
    expiryDue = now + Limits.expiryPause
    return true
  }

  /// Adds the steps of a computation, and charges the checks that they amount to. The links that delivered changes pay
  /// equal parts. If no link delivered a change, nobody pays: the links of this node changed.
  mutating func charge(_ computed: Int, to budget: inout CheckBudget, now: Instant) {
    if changers == 0 { return }
    steps += computed / changers.nonzeroBitCount
    let checks = steps / Limits.routeStepsPerCheck
    steps -= checks * Limits.routeStepsPerCheck
    while changers != 0 {
      let slot = changers.trailingZeroBitCount
      changers &= changers - 1
      if checks > 0 { budget.charge(checks, to: slot, now: now) }
    }
  }
}
