/// The rule by which holders share a capacity. `FairShare` counts the units of links by it. Units of users are counted where
/// they are kept.
///
/// A holder may take units while it then holds no more than `factor` times what was free before (the dynamic threshold of
/// Choudhury and Hahne, 1998). With a factor of 2 a single greedy holder gets two thirds of the capacity, two get two
/// fifths each, k get 2/(2k + 1) each, and a newcomer finds the last part. `reserve` units are kept for favoured holders,
/// such as the operator, who may take whatever is free.
@frozen
public struct ShareRule: Sendable {
  /// All units, the reserve included.
  public let capacity: Int
  public let reserve: Int
  public let factor: Int

  public init(capacity: Int, reserve: Int = 0, factor: Int = 1) {
    precondition(capacity >= reserve && reserve >= 0 && factor > 0)
    self.capacity = capacity
    self.reserve = reserve
    self.factor = factor
  }

  /// Whether a holder that has `held` of the `taken` units may take `units` more. Everybody may take one unit while one is
  /// free that is not kept for others.
  public func mayTake(_ units: Int, held: Int, taken: Int, isFavoured: Bool = false) -> Bool {
    if isFavoured { return units <= capacity - taken }
    return Self.allows(units, held: held, free: capacity - reserve - taken, factor: factor)
  }

  /// The most that a holder may take of a capacity in bytes: afterwards it holds no more than `factor` times what is free
  /// then, so that one great piece is no way around the rule.
  public func bytesMax(held: Int, taken: Int, isFavoured: Bool = false) -> Int {
    if isFavoured { return max(capacity - taken, 0) }
    let free = capacity - reserve - taken
    return free <= 0 ? 0 : max((factor * free - held) / (factor + 1), 0)
  }

  /// The rule alone: `free` units are free that the holder may have.
  @inlinable public static func allows(_ units: Int, held: Int, free: Int, factor: Int) -> Bool {
    units <= free && held + units <= factor * free
  }
}
