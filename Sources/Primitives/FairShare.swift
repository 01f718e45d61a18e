/// A capacity that holders share: the links of a node, by slot, and the node itself as the last holder.
///
/// `ShareRule` with factor 1: k greedy holders hold 1/(k + 1) of the capacity each, and a newcomer finds as much. Everybody
/// may take one unit while one is free.
@frozen
public struct FairShare {
  /// The number of the node itself. A link's is its slot.
  public static let ownHolder = Limits.linksMax
  public static let holders = Limits.linksMax + 1
  /// The holders that a share has places for.
  static let fits = FixedArray<65, UInt16>.count

  @usableFromInline var used = FixedArray<65, UInt16>(repeating: 0)
  @usableFromInline var turn = 0
  @usableFromInline var unheld: Int
  public let capacity: Int

  /// `capacity` is at most 65535.
  public init(capacity: Int) {
    precondition(capacity <= Int(UInt16.max))
    self.capacity = capacity
    unheld = capacity
  }

  /// Units that nobody holds.
  @inlinable public var free: Int { unheld }

  // The next two change nothing. Swift 6.3.1 reads an element of a share that is only borrowed from a copy of all of them.

  /// The units of a holder.
  @inlinable public mutating func held(by holder: Int) -> Int { Int(used[holder]) }

  /// Whether a holder may take `units` more.
  @inlinable public mutating func mayTake(_ units: Int, by holder: Int) -> Bool {
    ShareRule.allows(units, held: held(by: holder), free: free, factor: 1)
  }

  /// So many must be free.
  @inlinable public mutating func take(_ units: Int, by holder: Int) {
    precondition(units <= unheld)
    used[holder] += UInt16(units)
    unheld -= units
  }

  /// The holder must hold so many.
  @inlinable public mutating func giveBack(_ units: Int, by holder: Int) {
    used[holder] -= UInt16(units)
    unheld += units
  }

  /// Takes up to `units` back, one after the other, from the holders that have any: each in its turn.
  mutating func reclaim(_ units: Int) {
    var left = min(units, capacity - free)
    while left > 0 {
      turn = turn + 1 == Self.holders ? 0 : turn + 1
      if used[turn] == 0 { continue }
      giveBack(1, by: turn)
      left -= 1
    }
  }
}

/// A rate that holders share: what they take comes back by itself, in equal parts to all that hold something. A single
/// holder gets the whole rate, k greedy ones 1/k of it each.
public struct FairRate {
  private var share: FairShare
  private let interval: TimeSpan
  private var reclaimedAt = Instant.zero
  /// Units that holders have used beyond their shares.
  private var owed = FixedArray<65, UInt16>(repeating: 0)

  /// `burst` units at once by all together, then `perSecond`.
  public init(burst: Int, perSecond: UInt64) {
    share = FairShare(capacity: burst)
    interval = .seconds(1) / perSecond
  }

  /// Takes one unit; false when the holder has its share already.
  public mutating func take(by holder: Int, now: Instant) -> Bool { take(upTo: 1, by: holder, now: now) == 1 }

  /// Takes up to `units`, as many as the holder may have while `sparing` more would still be its. Returns how many.
  public mutating func take(upTo units: Int, by holder: Int, sparing: Int = 0, now: Instant) -> Int {
    reclaim(now)
    pay(by: holder)
    if owed[holder] > 0 { return 0 }
    var taken = 0
    while taken < units && share.mayTake(1 + sparing, by: holder) {
      share.take(1, by: holder)
      taken += 1
    }
    return taken
  }

  /// Takes units that a holder has used already. It owes those beyond its share, at most half of the burst, and pays them before it
  /// takes the next one.
  public mutating func charge(_ units: Int, to holder: Int, now: Instant) {
    reclaim(now)
    owed[holder] = UInt16(min(Int(owed[holder]) + units, share.capacity / 2))
    pay(by: holder)
  }

  private mutating func pay(by holder: Int) {
    while owed[holder] > 0 && share.mayTake(1, by: holder) {
      share.take(1, by: holder)
      owed[holder] -= 1
    }
  }

  /// Gives units back that were taken and not used.
  public mutating func giveBack(_ units: Int, by holder: Int) {
    share.giveBack(min(units, share.held(by: holder)), by: holder)
  }

  private mutating func reclaim(_ now: Instant) {
    let due = (now - reclaimedAt).nanoseconds / interval.nanoseconds
    if due >= UInt64(share.capacity) {
      share.reclaim(share.capacity)
      reclaimedAt = now
    } else if due > 0 {
      share.reclaim(Int(due))
      reclaimedAt = reclaimedAt + interval * due
    }
  }
}
