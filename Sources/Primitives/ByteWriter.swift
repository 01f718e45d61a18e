/// Writes the fields that `ByteReader` reads, front to back, into memory of fixed size. A field that does not fit is a
/// bug of the caller and traps.
extension OutputRawSpan {
  @_lifetime(self: copy self)
  public mutating func append(bigEndian value: UInt16) { append(value.bigEndian, as: UInt16.self) }

  @_lifetime(self: copy self)
  public mutating func append(bigEndian value: UInt32) { append(value.bigEndian, as: UInt32.self) }

  @_lifetime(self: copy self)
  public mutating func append(bigEndian value: UInt64) { append(value.bigEndian, as: UInt64.self) }

  @_lifetime(self: copy self)
  public mutating func append(_ node: NodeID) {
    append(bigEndian: node.high)
    append(bigEndian: node.low)
  }

  @_lifetime(self: copy self)
  public mutating func append(bytes: RawSpan) {
    for offset in bytes.byteOffsets { append(bytes.octet(offset)) }
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Writes fields from the start of the buffer. The buffer must be long enough for the fields. The bytes after the
  /// fields are unchanged.
  @inlinable public func write(_ body: (inout OutputRawSpan) -> Void) {
    var output = OutputRawSpan(buffer: self, initializedCount: 0)
    body(&output)
    _ = output.finalize(for: self)
  }
}

/// Appends the fields that `ByteReader` reads to arrays, which grow. The extension is generic and inlinable, so the
/// calling module allocates. `Primitives` itself is built without allocations.
extension RangeReplaceableCollection<UInt8> {
  @inlinable public mutating func append<Number: FixedWidthInteger>(bigEndian value: Number) {
    for index in 1...Number.bitWidth / 8 { append(UInt8(truncatingIfNeeded: value >> (Number.bitWidth - 8 * index))) }
  }

  @inlinable public mutating func append<Number: FixedWidthInteger>(littleEndian value: Number) {
    append(bigEndian: value.byteSwapped)
  }

  @inlinable public mutating func append(_ node: NodeID) {
    append(bigEndian: node.high)
    append(bigEndian: node.low)
  }
}
