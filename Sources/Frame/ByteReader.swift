import Primitives

/// Reads big-endian fields from a span, in order. Every read is checked; a field that is not all there
/// throws `.truncated` and leaves the reader where it was.
public struct ByteReader: ~Escapable {
  private let bytes: RawSpan
  public private(set) var offset = 0

  @_lifetime(copy bytes)
  public init(_ bytes: RawSpan) { self.bytes = bytes }

  public var remaining: Int { bytes.byteCount - offset }

  public mutating func u8() throws(FrameRefusal) -> UInt8 {
    if remaining < 1 { throw .truncated }
    defer { offset += 1 }
    return bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  public mutating func u16() throws(FrameRefusal) -> UInt16 {
    if remaining < 2 { throw .truncated }
    defer { offset += 2 }
    return UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  public mutating func u32() throws(FrameRefusal) -> UInt32 {
    if remaining < 4 { throw .truncated }
    defer { offset += 4 }
    return UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  public mutating func u64() throws(FrameRefusal) -> UInt64 {
    if remaining < 8 { throw .truncated }
    defer { offset += 8 }
    return UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  public mutating func nodeID() throws(FrameRefusal) -> NodeID {
    if remaining < NodeID.byteCount { throw .truncated }
    let high = try u64()
    return NodeID(high: high, low: try u64())
  }

  /// The next `byteCount` bytes.
  @_lifetime(copy self)
  public mutating func span(_ byteCount: Int) throws(FrameRefusal) -> RawSpan {
    if byteCount < 0 || remaining < byteCount { throw .truncated }
    defer { offset += byteCount }
    return bytes.extracting(offset..<offset + byteCount)
  }
}
