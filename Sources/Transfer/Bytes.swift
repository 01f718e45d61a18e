/// Writes the fields of a record one after another. Integers are big-endian.
struct FieldWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ value: some FixedWidthInteger & UnsignedInteger) {
    for index in 1...(value.bitWidth / 8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> (value.bitWidth - 8 * index)))
    }
  }

  mutating func put(_ more: [UInt8]) { bytes += more }

  /// Writes the length of `text` in one byte, and then `text`, which has at most 255 bytes.
  mutating func put(text: [UInt8]) {
    put(UInt8(truncatingIfNeeded: text.count))
    put(text)
  }
}

/// Reads the fields of a record one after another. A record of a later protocol version may have more bytes after the
/// last known field, which are ignored.
struct FieldReader {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func bytes(_ count: Int) throws(TransferError) -> ArraySlice<UInt8> {
    guard count <= rest.count else { throw .recordField }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  private mutating func number(_ count: Int) throws(TransferError) -> UInt64 {
    var value: UInt64 = 0
    for byte in try bytes(count) { value = value &<< 8 | UInt64(byte) }
    return value
  }

  mutating func byte() throws(TransferError) -> UInt8 { UInt8(truncatingIfNeeded: try number(1)) }
  mutating func short() throws(TransferError) -> UInt16 { UInt16(truncatingIfNeeded: try number(2)) }
  mutating func word() throws(TransferError) -> UInt32 { UInt32(truncatingIfNeeded: try number(4)) }
  mutating func long() throws(TransferError) -> UInt64 { try number(8) }

  mutating func digest() throws(TransferError) -> Digest {
    guard let digest = Digest(try bytes(Digest.byteCount)) else { throw .recordField }
    return digest
  }

  mutating func name() throws(TransferError) -> [UInt8] {
    let name = try bytes(Int(try byte()))
    guard FileNames.isLegal(name) else { throw .name }
    return Array(name)
  }

  mutating func text() throws(TransferError) -> [UInt8] {
    let text = Array(try bytes(Int(try byte())))
    guard FileNames.isLegalText(text) else { throw .recordField }
    return text
  }
}
