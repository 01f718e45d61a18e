/// The P2P device name of a node, such as "Causeway-0123456789abcdef". The digits are the node's hint, the first 8
/// bytes of its id.
enum DeviceName {
  /// The maximum length of a device name in bytes (Wi-Fi Simple Configuration 2.0.8, table 28).
  static let bytesMax = 32
  /// The maximum length of the prefix in bytes: the hyphen and 16 digits need 17.
  static let prefixBytesMax = bytesMax - 17

  static func make(prefix: String, hint: UInt64) -> String { "\(prefix)-\(hexadecimal(hint))" }

  static func has(_ name: String, prefix: String) -> Bool { name.utf8.starts(with: prefix.utf8) }

  /// The hint at the end of a name, or 0 if the name has none.
  static func hint(of name: String) -> UInt64 {
    let tail = Array(name.utf8.suffix(17))
    guard tail.count == 17, tail[0] == UInt8(ascii: "-") else { return 0 }
    var value: UInt64 = 0
    for byte in tail[1...] {
      guard let digit = hexadecimalDigit(byte) else { return 0 }
      value = value << 4 | UInt64(digit)
    }
    return value
  }
}
