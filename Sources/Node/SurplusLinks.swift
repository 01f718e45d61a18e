import Primitives

/// Decides when to close surplus links. Surplus links were dialled by this node, which no longer wants them, because it
/// now prefers nodes that appeared later.
///
/// A link is closed when it was unwanted for `calm`, and its broadcast domain did not change in that time. While many
/// nodes appear together, the neighbours on the rings (`LinkSelection`) are unknown. In a domain that changes
/// constantly, a link is closed when it was unwanted for `patienceMax`.
///
/// Up to `closedAtOnce` links are closed in one turn, so other nodes receive one topology change for all of them. After
/// a turn, no link is closed for `pause`, so that the network can adapt.
struct SurplusLinks {
  static let calm = TimeSpan.seconds(10)
  static let patienceMax = TimeSpan.seconds(60)
  static let pause = TimeSpan.seconds(2)
  static let closedAtOnce = 8

  /// When the link of a slot became unwanted, and when it is to be closed. `.never` if the link is not surplus.
  private var since = Limits.PerLink<Instant>(repeating: .never)
  private var due = Limits.PerLink<Instant>(repeating: .never)
  /// The slots of surplus links, one bit each. Usually no link is surplus. `deadline` is read several times in a pass
  /// of the event loop, so it must be fast.
  private var unwanted: UInt64 = 0
  /// When the next turn may begin, when the last turn began, and how many links the last turn has closed.
  private var nextAt = Instant.zero
  private var turnAt = Instant.zero
  private var closedInTurn = 0

  /// Adds the link of a slot that is no longer wanted.
  mutating func add(_ slot: Int, domainChangedAt: Instant, now: Instant) {
    unwanted |= 1 << UInt64(slot)
    since[slot] = min(since[slot], now)
    due[slot] = min(max(since[slot], domainChangedAt) + Self.calm, since[slot] + Self.patienceMax)
  }

  /// Removes a link that is wanted again, has ended, or must not be closed by this node.
  mutating func remove(_ slot: Int) {
    if unwanted & 1 << UInt64(slot) == 0 { return }
    unwanted &= ~(1 << UInt64(slot))
    since[slot] = .never
    due[slot] = .never
  }

  /// Restarts the wait of a surplus link that cannot be closed yet.
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

  /// The slot of the next link to close now, or nil.
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
