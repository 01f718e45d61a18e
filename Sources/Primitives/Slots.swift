/// The slots whose bits are set, ascending. Not a `Sequence`: that protocol can make arrays, which the core's modules may not.
public struct Slots {
  private var bits: UInt64
  public init(_ bits: UInt64) { self.bits = bits }

  public mutating func next() -> Int? {
    if bits == 0 { return nil }
    defer { bits &= bits &- 1 }
    return bits.trailingZeroBitCount
  }
}
