import Primitives

/// When links that this node dialled are closed because it no longer wants them: nodes that came later took their place.
///
/// A link has been unwanted for `calm`, and its domain did not change meanwhile: while many nodes come at once, nobody
/// knows yet who stays next to whom. In a domain that changes all the time `patienceMax` is enough. One link is closed
/// at a time, so that the network adapts before the next one.
struct SurplusLinks {
  static let calm = TimeSpan.seconds(10)
  static let patienceMax = TimeSpan.seconds(60)
  static let pause = TimeSpan.seconds(2)

  /// Since when a link has been unwanted, and when it is to be closed; `.never` for all others.
  private var since = Limits.PerLink<Instant>(repeating: .never)
  private var due = Limits.PerLink<Instant>(repeating: .never)
  /// No link is closed before this time.
  private var nextAt = Instant.zero

  /// The link of a slot is not wanted.
  mutating func add(_ slot: Int, domainChangedAt: Instant, now: Instant) {
    since[slot] = min(since[slot], now)
    due[slot] = min(max(since[slot], domainChangedAt) + Self.calm, since[slot] + Self.patienceMax)
  }

  /// It is wanted, or gone, or not this node's to close.
  mutating func remove(_ slot: Int) {
    since[slot] = .never
    due[slot] = .never
  }

  /// It cannot be closed yet.
  mutating func postpone(_ slot: Int, now: Instant) {
    since[slot] = now
    due[slot] = now + Self.calm
  }

  var deadline: Instant {
    var earliest = Instant.never
    for slot in due.indices { earliest = min(earliest, due[slot]) }
    return max(earliest, nextAt)
  }

  /// The link to close now.
  mutating func next(now: Instant) -> Int? {
    if nextAt > now { return nil }
    for slot in due.indices where due[slot] <= now {
      nextAt = now + Self.pause
      return slot
    }
    return nil
  }
}
