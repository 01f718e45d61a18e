import Primitives

/// Decides when to close links that this node dialled and no longer wants, because nodes that appeared later replaced
/// them.
///
/// A link is closed when it was unwanted, and its domain unchanged, for `calm`. While many nodes appear together, the
/// neighbours on the rings are unknown. In a domain that changes constantly, `patienceMax` suffices. Up to
/// `closedAtOnce` links are closed together, which is one topology change for others. Then none is closed for `pause`,
/// so that the network can adapt.
struct SurplusLinks {
  static let calm = TimeSpan.seconds(10)
  static let patienceMax = TimeSpan.seconds(60)
  static let pause = TimeSpan.seconds(2)
  static let closedAtOnce = 8

  /// When a link became unwanted, and when it is to be closed. `.never` for all others.
  private var since = Limits.PerLink<Instant>(repeating: .never)
  private var due = Limits.PerLink<Instant>(repeating: .never)
  /// The slots in `due` that are to be closed. `deadline` is read several times in a wake-up, and usually there are
  /// none.
  private var unwanted: UInt64 = 0
  /// When the next turn may begin, when the last one began, and how many links it has closed.
  private var nextAt = Instant.zero
  private var turnAt = Instant.zero
  private var closedInTurn = 0

  /// Adds the link of a slot that is no longer wanted.
  mutating func add(_ slot: Int, domainChangedAt: Instant, now: Instant) {
    unwanted |= 1 << UInt64(slot)
    since[slot] = min(since[slot], now)
    due[slot] = min(max(since[slot], domainChangedAt) + Self.calm, since[slot] + Self.patienceMax)
  }

  /// Removes a link that is wanted again, is gone, or is not this node's to close.
  mutating func remove(_ slot: Int) {
    if unwanted & 1 << UInt64(slot) == 0 { return }
    unwanted &= ~(1 << UInt64(slot))
    since[slot] = .never
    due[slot] = .never
  }

  /// Postpones a link that cannot be closed yet.
  mutating func postpone(_ slot: Int, now: Instant) {
    unwanted |= 1 << UInt64(slot)
    since[slot] = now
    due[slot] = now + Self.calm
  }

  var deadline: Instant {
    var earliest = Instant.never
    var slots = Slots(unwanted)
    while let slot = slots.next() { earliest = min(earliest, due[slot]) }
    return max(earliest, nextAt)
  }

  /// The next link to close now.
  mutating func next(now: Instant) -> Int? {
    if nextAt <= now { (turnAt, closedInTurn) = (now, 0) }
    guard turnAt == now, closedInTurn < Self.closedAtOnce else { return nil }
    var slots = Slots(unwanted)
    while let slot = slots.next() {
      if due[slot] > now { continue }
      nextAt = now + Self.pause
      closedInTurn += 1
      return slot
    }
    return nil
  }
}
