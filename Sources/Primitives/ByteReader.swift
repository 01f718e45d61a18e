/// Reads fields from bytes, front to back. Every read is checked against the end of the bytes.
///
/// Numbers of the Causeway protocol and of its files are big-endian. Numbers of Bluetooth's HCI, L2CAP and ATT
/// (`u16le`, `u32le`) are little-endian. A read of an incomplete field throws the error that was passed to the
/// initialiser. The reader then stays at the beginning of that field.
public struct ByteReader<TruncationError: Error>: ~Escapable {
  @usableFromInline let bytes: RawSpan
  @usableFromInline let truncated: TruncationError
  @usableFromInline var offset = 0

  @_lifetime(copy bytes)
  @inlinable public init(_ bytes: RawSpan, orThrow truncated: TruncationError) {
    self.bytes = bytes
    self.truncated = truncated
  }

  @inlinable public var remaining: Int { bytes.byteCount - offset }

  /// Moves past the next `byteCount` bytes and returns the offset at which they begin.
  @inlinable mutating func advance(_ byteCount: Int) throws(TruncationError) -> Int {
    if byteCount < 0 || remaining < byteCount { throw truncated }
    defer { offset += byteCount }
    return offset
  }

  @inlinable public mutating func u8() throws(TruncationError) -> UInt8 {
    let start = try advance(1)
    return bytes.octet(start)
  }

  @inlinable public mutating func u16() throws(TruncationError) -> UInt16 {
    let start = try advance(2)
    return bytes.word16(start)
  }

  @inlinable public mutating func u32() throws(TruncationError) -> UInt32 {
    let start = try advance(4)
    return bytes.word32(start)
  }

  @inlinable public mutating func u64() throws(TruncationError) -> UInt64 {
    let start = try advance(8)
    return bytes.word64(start)
  }

  @inlinable public mutating func u16le() throws(TruncationError) -> UInt16 {
    let start = try advance(2)
    return bytes.word16(start).byteSwapped
  }

  @inlinable public mutating func u32le() throws(TruncationError) -> UInt32 {
    let start = try advance(4)
    return bytes.word32(start).byteSwapped
  }

  @inlinable public mutating func nodeID() throws(TruncationError) -> NodeID {
    let start = try advance(NodeID.byteCount)
    return bytes.nodeID(start)
  }

  /// The next `byteCount` bytes.
  @_lifetime(copy self)
  @inlinable public mutating func span(_ byteCount: Int) throws(TruncationError) -> RawSpan {
    let start = try advance(byteCount)
    return bytes.extracting(start..<start + byteCount)
  }

  /// A copy of the next `byteCount` bytes.
  @inlinable public mutating func array(_ byteCount: Int) throws(TruncationError) -> [UInt8] {
    [UInt8](copying: try span(byteCount))
  }
}

/// Reads big-endian fields at given offsets, for views whose length was checked when they were created. An offset out
/// of bounds is a bug of the caller and traps.
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
  @inlinable public func nodeID(_ offset: Int) -> NodeID { NodeID(high: word64(offset), low: word64(offset + 8)) }
}

// The extension is generic and inlinable, so the calling module allocates the array. `Primitives` itself is built
// without allocations.
extension RangeReplaceableCollection<UInt8> {
  /// Creates a copy of the bytes of a span.
  @inlinable public init(copying bytes: RawSpan) {
    self.init()
    bytes.withUnsafeBytes { append(contentsOf: $0) }
  }
}
