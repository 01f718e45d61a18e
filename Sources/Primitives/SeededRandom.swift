/// A reproducible stream of random numbers for simulations, jitter and tests: SplitMix64 (Steele, Lea and Flood 2014).
/// A seed gives the same sequence on every machine. The numbers are predictable, so they are not suitable for keys.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number in `0 ..< bound`, or 0 when `bound` is 0. The bias is below 2⁻³² for bounds below 2³².
  public mutating func below(_ bound: UInt64) -> UInt64 {
    bound == 0 ? 0 : next().multipliedFullWidth(by: bound).high
  }

  /// True with a probability of `perThousand` / 1000.
  public mutating func chance(perThousand: UInt64) -> Bool { below(1000) < perThousand }
}
