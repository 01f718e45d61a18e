import Primitives

/// Big-endian fields. Callers have checked the length: an offset out of bounds is a fault of ours and traps.
extension RawSpan {
  func octet(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
  func word16(_ offset: Int) -> UInt16 {
    UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }
  func word32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  func word64(_ offset: Int) -> UInt64 {
    UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}

extension UnsafeMutableRawBufferPointer {
  func store<T: FixedWidthInteger>(bigEndian value: T, at offset: Int) {
    precondition(offset >= 0 && offset + MemoryLayout<T>.size <= count)
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: T.self)
  }
}

extension Instant {
  /// The clock as it stands in segments: microseconds modulo 2³², never 0, which means "no timestamp".
  var timestamp: UInt32 {
    let microseconds = UInt32(truncatingIfNeeded: nanoseconds / 1_000)
    return microseconds == 0 ? 1 : microseconds
  }
}

extension UInt32 {
  /// Microseconds from `earlier` to this timestamp, negative when `earlier` is the later one (within 35 minutes).
  func elapsed(since earlier: UInt32) -> Int64 { Int64(Int32(bitPattern: self &- earlier)) }
}
