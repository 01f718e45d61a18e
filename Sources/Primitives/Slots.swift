/// Iterates over the slot numbers whose bits are set, in ascending order. The type is not a `Sequence`, because that
/// protocol can allocate arrays, and this module allocates nothing.
public struct Slots {
  private var bits: UInt64
  public init(_ bits: UInt64) { self.bits = bits }

  public mutating func next() -> Int? {
    if bits == 0 { return nil }
    defer { bits &= bits &- 1 }
    return bits.trailingZeroBitCount
  }
}
