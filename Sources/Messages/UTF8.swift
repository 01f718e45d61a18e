import Primitives

/// UTF-8 without Unicode tables: only checks well-formedness (RFC 3629 section 4).
public enum UTF8Text {
  /// Whether the bytes are well-formed: no overlong form, no surrogate, nothing above U+10FFFF.
  public static func isValid(_ bytes: RawSpan) -> Bool {
    var offset = 0
    while offset < bytes.byteCount {
      guard let length = sequenceLength(bytes, at: offset) else { return false }
      offset += length
    }
    return true
  }

  /// The longest prefix of at most `byteCountMax` bytes that does not end within a character of valid `bytes`.
  public static func prefixLength(_ bytes: [UInt8], byteCountMax: Int) -> Int {
    guard bytes.count > byteCountMax else { return bytes.count }
    var length = byteCountMax
    while length > 0, bytes[length] & 0xc0 == 0x80 { length -= 1 }
    return length
  }

  /// The length of the character at `offset`; nil when it is malformed.
  static func sequenceLength(_ bytes: RawSpan, at offset: Int) -> Int? {
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
