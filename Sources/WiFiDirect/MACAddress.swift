/// A 48-bit hardware address.
public struct MACAddress: Equatable, Sendable {
  /// The address as a number; the first byte of the text is the most significant.
  public let value: UInt64

  /// Creates an address from the lower 48 bits.
  public init(_ value: UInt64) { self.value = value & 0xFFFF_FFFF_FFFF }

  /// Parses the form "42:00:00:00:01:00"; nil for anything else.
  public init?(parsing text: some Collection<UInt8>) {
    guard text.count == 17 else { return nil }
    var value: UInt64 = 0
    for (index, byte) in text.enumerated() {
      if index % 3 == 2 {
        guard byte == UInt8(ascii: ":") else { return nil }
      } else {
        guard let digit = hexadecimalDigit(byte) else { return nil }
        value = value << 4 | UInt64(digit)
      }
    }
    self.init(value)
  }

  /// The address in the form "42:00:00:00:01:00".
  public var text: String {
    var bytes: [UInt8] = []
    for index in UInt64(0)..<6 {
      if index > 0 { bytes.append(UInt8(ascii: ":")) }
      appendHexadecimal(&bytes, UInt8(truncatingIfNeeded: value >> (40 - 8 * index)))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}

func appendHexadecimal(_ bytes: inout [UInt8], _ byte: UInt8) {
  for digit in [byte >> 4, byte & 15] {
    bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
  }
}

/// The number as 16 lower-case digits.
func hexadecimal(_ word: UInt64) -> String {
  var bytes: [UInt8] = []
  for index in UInt64(0)..<8 { appendHexadecimal(&bytes, UInt8(truncatingIfNeeded: word >> (56 - 8 * index))) }
  return String(decoding: bytes, as: UTF8.self)
}

/// The bytes as two lower-case digits each.
func hexadecimal(_ bytes: [UInt8]) -> String {
  var text: [UInt8] = []
  for byte in bytes { appendHexadecimal(&text, byte) }
  return String(decoding: text, as: UTF8.self)
}
