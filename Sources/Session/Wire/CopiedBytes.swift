/// Copies of byte arrays by one memory copy, for the data of applications, which can be large. Embedded Swift (6.3.1)
/// appends, initialises and moves the elements of an array one by one, even contiguous bytes. Copying bytes one by one
/// costs 1 ns for each byte of each copy.
extension [UInt8] {
  /// Appends the bytes of a span.
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

  /// Appends the bytes of another array.
  public mutating func append(copying other: [UInt8]) { append(copying: other.span.bytes) }
}

extension RawSpan {
  /// A copy of the bytes.
  public var copied: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(copying: self)
    return bytes
  }
}
