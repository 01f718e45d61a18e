/// A capacity that is shared by holders. The holders are the node's links, numbered by link slot, and the node itself.
/// The owner of a capacity may give the numbers of the link slots to other holders.
///
/// The share applies `ShareRule` with a factor of 1. Under this rule, each of k greedy holders gets 1/(k + 1) of the
/// capacity, and the same amount stays free for a new holder. A holder without units may take one unit while a unit is
/// free.
@frozen
public struct FairShare {
  /// The holder number of the node itself. A link's holder number is its slot.
  public static let ownHolder = Limits.linksMax
  public static let holders = Limits.linksMax + 1
  /// The number of holders for which the arrays of this type have elements.
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

  /// Units that no holder has.
  @inlinable public var free: Int { unheld }

  // The next two methods change nothing, and are `mutating` because Swift 6.3.1 copies a borrowed share completely to
  // read one element.

  /// The units that a holder has.
  @inlinable public mutating func held(by holder: Int) -> Int { Int(used[holder]) }

  /// Whether a holder may take `units` more.
  @inlinable public mutating func mayTake(_ units: Int, by holder: Int) -> Bool {
    ShareRule.allows(units, held: held(by: holder), free: free, factor: 1)
  }

  /// Takes units for a holder. Traps when fewer units are free.
  @inlinable public mutating func take(_ units: Int, by holder: Int) {
    precondition(units <= unheld)
    used[holder] += UInt16(units)
    unheld -= units
  }

  /// Returns units of a holder. Traps when the holder has fewer units.
  @inlinable public mutating func giveBack(_ units: Int, by holder: Int) {
    used[holder] -= UInt16(units)
    unheld += units
  }

  /// Takes back up to `units` units from the holders that have units. Each takes its turn to return one unit (round
  /// robin).
  public mutating func reclaim(_ units: Int) {
    var left = min(units, capacity - free)
    while left > 0 {
      turn = turn + 1 == Self.holders ? 0 : turn + 1
      if used[turn] == 0 { continue }
      giveBack(1, by: turn)
      left -= 1
    }
  }

  /// The entry to evict from a full table that links share: the oldest entry of the holder with the most entries.
  /// `holder` and `order` return the holder of an entry, and the number of the entry, which increases with each new
  /// entry. `count` is at most 65535.
  public static func oldestOfLargest(_ count: Int, holder: (Int) -> Int, order: (Int) -> UInt64) -> Int {
    var share = FairShare(capacity: count)
    for index in 0..<count { share.take(1, by: holder(index)) }
    var oldest = 0
    var most = 0
    for index in 0..<count {
      let held = share.held(by: holder(index))
      if held > most || held == most && order(index) < order(oldest) { (oldest, most) = (index, held) }
    }
    return oldest
  }
}

/// A rate that is shared by the holders of a `FairShare`. Units that were taken become free again over time, in equal
/// parts for all holders that have units. A single holder gets the complete rate, and each of k greedy holders gets 1/k
/// of the rate.
public struct FairRate {
  private var share: FairShare
  private let interval: TimeSpan
  private var reclaimedAt = Instant.zero
  /// The number of units that each holder used beyond its share.
  private var owed = FixedArray<65, UInt16>(repeating: 0)

  /// Allows a burst of `burst` units for all holders together, and `perSecond` units per second on average.
  public init(burst: Int, perSecond: UInt64) {
    share = FairShare(capacity: burst)
    interval = .seconds(1) / perSecond
  }

  /// Takes one unit. Returns false when the holder has used its share.
  public mutating func take(by holder: Int, now: Instant) -> Bool { take(upTo: 1, by: holder, now: now) == 1 }

  /// Takes up to `units` units for a holder, and returns the number taken. At least `sparing` units of the holder's
  /// share remain available to the holder.
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

  /// Charges units that a holder has already used. The holder owes the units that exceed its share, up to half of the
  /// burst. A holder with debt gets no further units until the debt is paid from units that become free.
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

  /// Returns units that a holder took and did not use.
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
