import Primitives

extension NodeID {
  /// All 32 hexadecimal digits.
  public var text: String {
    var builder = TextBuilder()
    builder.add(hex: high, digits: 16)
    builder.add(hex: low, digits: 16)
    return String(decoding: builder.bytes, as: UTF8.self)
  }

  /// The first 8 hexadecimal digits, for display.
  public var shortText: String {
    var builder = TextBuilder()
    builder.add(hex: high >> 32, digits: 8)
    return String(decoding: builder.bytes, as: UTF8.self)
  }

  /// Whether the id starts with `word`, which must be at least 4 hexadecimal digits.
  public func begins(withDigits word: [UInt8]) -> Bool {
    guard (4...2 * NodeID.byteCount).contains(word.count) else { return false }
    for (index, byte) in word.enumerated() {
      let pair = self.byte(index / 2)
      if hexDigit(byte) != (index % 2 == 0 ? pair >> 4 : pair & 15) { return false }
    }
    return true
  }
}

/// The value of a hexadecimal digit, or nil for another character.
public func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x41...0x46: byte - 0x41 + 10
  case 0x61...0x66: byte - 0x61 + 10
  default: nil
  }
}
