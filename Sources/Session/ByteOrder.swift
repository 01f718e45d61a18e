/// Big-endian fields. Callers have checked the length: an offset out of bounds is a fault of ours and traps.
extension RawSpan {
  func octet(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
  func word32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  func word64(_ offset: Int) -> UInt64 {
    UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
  func octets(_ range: Range<Int>) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      for index in 0..<range.count { buffer.initializeElement(at: index, to: octet(range.lowerBound + index)) }
      count = range.count
    }
  }
}

extension [UInt8] {
  mutating func append<T: FixedWidthInteger>(bigEndian value: T) {
    for index in 0..<MemoryLayout<T>.size {
      append(UInt8(truncatingIfNeeded: value >> T(8 * (MemoryLayout<T>.size - 1 - index))))
    }
  }
}
