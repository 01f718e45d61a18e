/// The rule by which holders share a capacity. `FairShare` applies it to the units of links. Units of users are counted
/// where they are kept.
///
/// A holder may take units if it then holds no more than `factor` times the capacity that was free before. This is the
/// dynamic threshold of Choudhury and Hahne (1998). With a factor of 2, one greedy holder gets two thirds of the
/// capacity, two get two fifths each, and k get 2/(2k + 1) each. The last part stays free for a newcomer. `reserve`
/// units are kept for favoured holders, such as the operator, who may take everything that is free.
@frozen
public struct ShareRule: Sendable {
  /// All units, including the reserve.
  public let capacity: Int
  public let reserve: Int
  public let factor: Int

  public init(capacity: Int, reserve: Int = 0, factor: Int = 1) {
    precondition(capacity >= reserve && reserve >= 0 && factor > 0)
    self.capacity = capacity
    self.reserve = reserve
    self.factor = factor
  }

  /// Whether a holder that has `held` of the `taken` units may take `units` more. A holder that has none may take one
  /// unit while one outside the reserve is free.
  public func mayTake(_ units: Int, held: Int, taken: Int, isFavoured: Bool = false) -> Bool {
    if isFavoured { return units <= capacity - taken }
    return Self.allows(units, held: held, free: capacity - reserve - taken, factor: factor)
  }

  /// The most bytes that a holder may take. Afterwards it holds at most `factor` times the bytes that are still free,
  /// so a single large request cannot circumvent the rule.
  public func bytesMax(held: Int, taken: Int, isFavoured: Bool = false) -> Int {
    if isFavoured { return max(capacity - taken, 0) }
    let free = capacity - reserve - taken
    return free <= 0 ? 0 : max((factor * free - held) / (factor + 1), 0)
  }

  /// The bare rule. `free` are the free units that the holder may use.
  @inlinable public static func allows(_ units: Int, held: Int, free: Int, factor: Int) -> Bool {
    units <= free && held + units <= factor * free
  }
}
