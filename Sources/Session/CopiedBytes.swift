/// Bytes that are copied all at once: those of applications, which may be many. Embedded Swift (6.3.1) appends, initialises and
/// moves the elements of an array one by one, also where they are bytes behind each other: 1 ns each, at every copy.
extension [UInt8] {
  /// The bytes of a span, behind those that are here.
  public mutating func append(copying bytes: RawSpan) {
    if capacity < count + bytes.byteCount && !isEmpty {
      var larger: [UInt8] = []
      larger.reserveCapacity(Swift.max(count + bytes.byteCount, 2 * capacity))
      larger.append(copying: span.bytes)
      self = larger
    }
    append(addingCapacity: bytes.byteCount) { room in
      room.withUnsafeMutableBufferPointer { buffer, count in
        let free = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
        bytes.withUnsafeBytes { free.copyMemory(from: $0) }
        count += bytes.byteCount
      }
    }
  }

  /// The bytes of another array, behind those that are here.
  public mutating func append(copying other: [UInt8]) { append(copying: other.span.bytes) }
}

extension RawSpan {
  /// The bytes.
  public var copied: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(copying: self)
    return bytes
  }
}
