import Primitives

/// Detects links that break often, by neighbour and bearer, in the manner of route flap damping (RFC 2439).
///
/// A link that breaks within `lifeMin` after coming up gets a penalty: twice the rest of its previous penalty, and at
/// least `penaltyOfOne`. Penalties halve in each `halfLife`. The link is quarantined until its penalty has decayed to
/// `penaltyOfOne`, so the first break causes no quarantine. A quarantined link is used only if no other route exists,
/// so routes do not flap with the link.
///
/// The entries of the table are divided among the addresses of neighbours (`SourceSlots`), not among their keys,
/// because new keys cost nothing.
public struct FlapDamping {
  /// A link that was up for at least this long has not flapped.
  public static let lifeMin = TimeSpan.seconds(30)
  static let halfLife = TimeSpan.seconds(30)
  static let penaltyOfOne: UInt32 = 1_000
  /// The highest penalty. The highest penalty decays to `penaltyOfOne` in two minutes.
  static let penaltyMax: UInt32 = 16_000

  private struct Entry {
    var peer = NodeID.none
    var bearer = BearerKind.ethernet
    var penalty: UInt32 = 0
    var at = Instant.zero
    var quarantinedUntil = Instant.zero
  }

  private var entries = FixedArray<64, Entry>(repeating: Entry())
  private var sources = SourceSlots()
  /// The number of entries that were ever used. Used entries come first in the table. In a stable network no entry was
  /// used, so nothing is scanned.
  private var used = 0

  public init() {}

  /// Records that a link to `peer` broke after being up for `life`. The entry is charged to `source`, the address of
  /// the neighbour. Returns the length of the link's quarantine, or nil without a quarantine.
  public mutating func linkBroke(
    _ peer: NodeID, _ bearer: BearerKind, from source: UInt64, life: TimeSpan, now: Instant
  ) -> TimeSpan? {
    if life >= Self.lifeMin { return nil }
    let index = find(peer, bearer) ?? index(for: source, now)
    used = max(used, index + 1)
    if entries[index].peer != peer || entries[index].bearer != bearer {
      entries[index] = Entry(peer: peer, bearer: bearer)
    }
    let left = Self.decayed(entries[index].penalty, now - entries[index].at)
    let penalty = min(max(left * 2, Self.penaltyOfOne), Self.penaltyMax)
    let rest = Self.timeToOne(penalty)
    sources[index] = source
    entries[index].penalty = penalty
    entries[index].at = now
    entries[index].quarantinedUntil = now + rest
    return rest.nanoseconds == 0 ? nil : rest
  }

  public func isQuarantined(_ peer: NodeID, _ bearer: BearerKind, now: Instant) -> Bool {
    guard let index = find(peer, bearer) else { return false }
    return entries[index].quarantinedUntil > now
  }

  /// The time at which the next quarantine after `now` ends.
  public func deadline(after now: Instant) -> Instant {
    var earliest = Instant.never
    for index in 0..<used where entries[index].quarantinedUntil > now {
      earliest = min(earliest, entries[index].quarantinedUntil)
    }
    return earliest
  }

  /// The rest of a penalty after `time`: halved in every half-life, and linear in between.
  static func decayed(_ penalty: UInt32, _ time: TimeSpan) -> UInt32 {
    let halves = time.nanoseconds / halfLife.nanoseconds
    if halves >= 32 { return 0 }
    let left = UInt64(penalty) >> halves
    return UInt32(left - left / 2 * (time.nanoseconds % halfLife.nanoseconds) / halfLife.nanoseconds)
  }

  /// The time that a penalty takes to decay to `penaltyOfOne`.
  private static func timeToOne(_ penalty: UInt32) -> TimeSpan {
    var left = penalty
    var time = TimeSpan(nanoseconds: 0)
    while left >= 2 * penaltyOfOne {
      left /= 2
      time.nanoseconds += halfLife.nanoseconds
    }
    time.nanoseconds += halfLife.nanoseconds * UInt64(left - penaltyOfOne) * 2 / UInt64(left)
    return time
  }

  private func find(_ peer: NodeID, _ bearer: BearerKind) -> Int? {
    for index in 0..<used where entries[index].peer == peer && entries[index].bearer == bearer { return index }
    return nil
  }

  /// The entry that a newcomer gets: one whose penalty has decayed to zero. If there is none, the address with the most
  /// entries loses its entry with the least penalty.
  private func index(for source: UInt64, _ now: Instant) -> Int {
    let most = sources.most(beside: source)
    var weakest = 0
    var least = UInt32.max
    for index in entries.indices {
      let left = Self.decayed(entries[index].penalty, now - entries[index].at)
      if left == 0 { return index }
      if left < least && sources.held(by: sources[index], beside: source) == most { (weakest, least) = (index, left) }
    }
    return weakest
  }
}
