import Primitives

/// When links that this node dialled are closed because it no longer wants them: nodes that came later took their place.
///
/// A link has been unwanted for `calm`, and its domain did not change meanwhile: while many nodes come at once, nobody
/// knows yet who stays next to whom. In a domain that changes all the time `patienceMax` is enough. Up to `closedAtOnce`
/// links are closed together, which is one change of topology for others; then none for `pause`, so that the network
/// adapts.
struct SurplusLinks {
  static let calm = TimeSpan.seconds(10)
  static let patienceMax = TimeSpan.seconds(60)
  static let pause = TimeSpan.seconds(2)
  static let closedAtOnce = 8

  /// Since when a link has been unwanted, and when it is to be closed; `.never` for all others.
  private var since = Limits.PerLink<Instant>(repeating: .never)
  private var due = Limits.PerLink<Instant>(repeating: .never)
  /// The slots in `due` that are to be closed. `deadline` is asked for several times in a wake-up: none is the usual case.
  private var unwanted: UInt64 = 0
  /// When the next turn may begin; when the last one began, and how many links it has closed.
  private var nextAt = Instant.zero
  private var turnAt = Instant.zero
  private var closedInTurn = 0

  /// The link of a slot is not wanted.
  mutating func add(_ slot: Int, domainChangedAt: Instant, now: Instant) {
    unwanted |= 1 << UInt64(slot)
    since[slot] = min(since[slot], now)
    due[slot] = min(max(since[slot], domainChangedAt) + Self.calm, since[slot] + Self.patienceMax)
  }

  /// It is wanted, or gone, or not this node's to close.
  mutating func remove(_ slot: Int) {
    if unwanted & 1 << UInt64(slot) == 0 { return }
    unwanted &= ~(1 << UInt64(slot))
    since[slot] = .never
    due[slot] = .never
  }

  /// It cannot be closed yet.
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
