/// Big-endian fields at known offsets. The caller has checked the length: an offset out of bounds is a fault of ours
/// and traps. `ByteReader` checks each field instead.
extension RawSpan {
  @inlinable public func octet(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
  @inlinable public func word16(_ offset: Int) -> UInt16 {
    UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }
  @inlinable public func word32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  @inlinable public func word64(_ offset: Int) -> UInt64 {
    UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}

extension UnsafeMutableRawBufferPointer {
  @inlinable public func store<T: FixedWidthInteger>(bigEndian value: T, at offset: Int) {
    precondition(offset >= 0 && offset + MemoryLayout<T>.size <= count)
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: T.self)
  }
}
