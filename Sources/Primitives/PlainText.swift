/// UTF-8 functions that need no Unicode tables, because they test only well-formedness (RFC 3629, section 4).
public enum UTF8Text {
  /// Whether the bytes are well-formed: no overlong form, no surrogate, and nothing above U+10FFFF.
  public static func isValid(_ bytes: RawSpan) -> Bool {
    var offset = 0
    while offset < bytes.byteCount {
      guard let length = sequenceLength(bytes, at: offset) else { return false }
      offset += length
    }
    return true
  }

  /// The length of the longest prefix of valid `bytes` that has at most `byteCountMax` bytes and splits no character.
  public static func prefixLength(_ bytes: RawSpan, byteCountMax: Int) -> Int {
    guard bytes.byteCount > byteCountMax else { return bytes.byteCount }
    var length = byteCountMax
    while length > 0, bytes.octet(length) & 0xc0 == 0x80 { length -= 1 }
    return length
  }

  /// The length in bytes of the character at `offset`, or nil if the character is malformed. `offset` must be within
  /// the bytes.
  public static func sequenceLength(_ bytes: RawSpan, at offset: Int) -> Int? {
    let first = bytes.octet(offset)
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xbf
    switch first {
    case 0x00...0x7f: return 1
    case 0xc2...0xdf: length = 2
    case 0xe0: (length, second) = (3, 0xa0...0xbf)
    case 0xed: (length, second) = (3, 0x80...0x9f)
    case 0xe1...0xef: length = 3
    case 0xf0: (length, second) = (4, 0x90...0xbf)
    case 0xf4: (length, second) = (4, 0x80...0x8f)
    case 0xf1...0xf3: length = 4
    default: return nil
    }
    guard offset + length <= bytes.byteCount, second.contains(bytes.octet(offset + 1)) else { return nil }
    for index in 2..<max(2, length) where bytes.octet(offset + index) & 0xc0 != 0x80 { return nil }
    return length
  }
}

/// Whether `bytes` are UTF-8 without control characters (U+0000–U+001F, U+007F–U+009F).
public func isPlainText(_ bytes: RawSpan) -> Bool {
  var offset = 0
  while offset < bytes.byteCount {
    guard let length = UTF8Text.sequenceLength(bytes, at: offset) else { return false }
    switch bytes.octet(offset) {
    case 0x00...0x1F, 0x7F: return false
    case 0xC2: if bytes.octet(offset + 1) <= 0x9F { return false }
    default: break
    }
    offset += length
  }
  return true
}

/// Whether `bytes` are a service type: 1 to 15 of `a–z 0–9 -`, with at least one letter. A hyphen is neither the first
/// nor the last character, nor next to another hyphen (RFC 6335, section 5.1).
public func isServiceType(_ bytes: RawSpan) -> Bool {
  var hasLetter = false
  var previous = UInt8(ascii: "-")
  for offset in bytes.byteOffsets {
    let byte = bytes.octet(offset)
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): hasLetter = true
    case UInt8(ascii: "0")...UInt8(ascii: "9"): break
    case UInt8(ascii: "-"): if previous == byte { return false }
    default: return false
    }
    previous = byte
  }
  return hasLetter && previous != UInt8(ascii: "-") && bytes.byteCount <= Limits.serviceTypeBytesMax
}
