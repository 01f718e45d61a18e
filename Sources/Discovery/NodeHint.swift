/// The first 8 bytes of the node id that a DNS-SD record claims. The claim is not authenticated.
enum NodeHint {
  private static let digitsMax = 32

  /// The hint in an instance name: 32 hexadecimal digits, perhaps followed by the suffix of a name conflict, such as "
  /// #2". nil for any other name.
  static func ofInstanceName(_ name: [UInt8]) -> UInt64? {
    guard let hint = ofDigits(name[...]) else { return nil }
    let suffix = name[digitsMax...]
    if suffix.isEmpty { return hint }
    guard suffix.count > 2, suffix.starts(with: [0x20, 0x23]) else { return nil }  // " #"
    return suffix.dropFirst(2).allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? hint : nil
  }

  /// The hint in one string of a TXT record: "id=" and 32 hexadecimal digits. nil for any other string. Keys are
  /// case-insensitive (RFC 6763, section 6.4).
  static func ofTXTString(_ string: [UInt8]) -> UInt64? {
    guard string.count == 3 + digitsMax, string[0] | 0x20 == 0x69, string[1] | 0x20 == 0x64, string[2] == 0x3D else {
      return nil
    }
    return ofDigits(string[3...])
  }

  private static func ofDigits(_ digits: ArraySlice<UInt8>) -> UInt64? {
    guard digits.count >= digitsMax else { return nil }
    var hint: UInt64 = 0
    for (index, byte) in digits.prefix(digitsMax).enumerated() {
      guard let digit = value(byte) else { return nil }
      if index < 16 { hint = hint << 4 | UInt64(digit) }
    }
    return hint
  }

  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}
