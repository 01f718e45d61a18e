import Primitives

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
    for offset in bytes.byteOffsets { append(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)) }
  }
}
