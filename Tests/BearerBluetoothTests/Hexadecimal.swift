/// Converts hexadecimal digits to bytes.
func bytes(_ hex: String) -> [UInt8] {
  let digits = Array(hex.utf8)
  return stride(from: 0, to: digits.count - 1, by: 2).map {
    UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)!
  }
}

/// Converts bytes to hexadecimal digits.
func hex(_ bytes: [UInt8]) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
