/// Bounded reads of little-endian fields, as HCI, mgmt, L2CAP and ATT use them. A read past the end gives
/// nil and leaves the position alone.
struct ByteReader {
  private let bytes: [UInt8]
  private var position: Int

  init(_ bytes: [UInt8], from position: Int = 0) {
    self.bytes = bytes
    self.position = min(max(position, 0), bytes.count)
  }

  var remaining: Int { bytes.count - position }

  mutating func u8() -> UInt8? {
    guard remaining >= 1 else { return nil }
    position += 1
    return bytes[position - 1]
  }

  mutating func u16() -> UInt16? {
    guard remaining >= 2 else { return nil }
    position += 2
    return UInt16(bytes[position - 2]) | UInt16(bytes[position - 1]) << 8
  }

  mutating func u32() -> UInt32? {
    guard remaining >= 4, let low = u16(), let high = u16() else { return nil }
    return UInt32(high) << 16 | UInt32(low)
  }

  mutating func take(_ count: Int) -> [UInt8]? {
    guard count >= 0, remaining >= count else { return nil }
    position += count
    return Array(bytes[(position - count)..<position])
  }

  mutating func rest() -> [UInt8] {
    defer { position = bytes.count }
    return Array(bytes[position...])
  }
}

extension [UInt8] {
  mutating func append(u16 value: UInt16) {
    append(UInt8(truncatingIfNeeded: value))
    append(UInt8(truncatingIfNeeded: value >> 8))
  }

  mutating func append(u32 value: UInt32) {
    append(u16: UInt16(truncatingIfNeeded: value))
    append(u16: UInt16(truncatingIfNeeded: value >> 16))
  }

  /// Whether the bytes from `offset` on begin with `other`.
  func holds(_ other: [UInt8], at offset: Int) -> Bool {
    guard offset >= 0, count - offset >= other.count else { return false }
    for index in 0..<other.count where self[offset + index] != other[index] { return false }
    return true
  }
}
