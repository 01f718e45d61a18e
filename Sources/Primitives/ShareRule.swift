/// The rule by which holders (links, users, members) share a capacity. `FairShare` applies the rule to links and counts
/// their units. For other holders, the caller counts the units.
///
/// A holder may take units if it afterwards has no more than `factor` times the capacity that was free before. This
/// rule is the dynamic threshold of Choudhury and Hahne (1998). With a factor of 2, one greedy holder gets two thirds
/// of the capacity. Two greedy holders get two fifths each, and k greedy holders get 2/(2k + 1) each. The rest of the
/// capacity stays free for a new holder. For favoured holders, such as the operator, `reserve` units are kept. A
/// favoured holder may take everything that is free.
@frozen
public struct ShareRule: Sendable {
  /// The number of all units, including the reserve.
  public let capacity: Int
  public let reserve: Int
  public let factor: Int

  public init(capacity: Int, reserve: Int = 0, factor: Int = 1) {
    precondition(capacity >= reserve && reserve >= 0 && factor > 0)
    self.capacity = capacity
    self.reserve = reserve
    self.factor = factor
  }

  /// Whether a holder that has `held` of the `taken` units may take `units` more. With a factor of at least 1, a holder
  /// without units may take one unit while a unit outside the reserve is free.
  public func mayTake(_ units: Int, held: Int, taken: Int, isFavoured: Bool = false) -> Bool {
    if isFavoured { return units <= capacity - taken }
    return Self.allows(units, held: held, free: capacity - reserve - taken, factor: factor)
  }

  /// The maximum number of bytes that a holder may take, if the units are bytes. Afterwards the holder has at most
  /// `factor` times the bytes that are still free. So a single large request cannot circumvent the rule.
  public func bytesMax(held: Int, taken: Int, isFavoured: Bool = false) -> Int {
    if isFavoured { return max(capacity - taken, 0) }
    let free = capacity - reserve - taken
    return free <= 0 ? 0 : max((factor * free - held) / (factor + 1), 0)
  }

  /// The rule for a holder without the reserve. `free` is the number of free units that the holder may use.
  @inlinable public static func allows(_ units: Int, held: Int, free: Int, factor: Int) -> Bool {
    units <= free && held + units <= factor * free
  }
}
