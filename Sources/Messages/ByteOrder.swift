import Primitives

extension RawSpan {
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
