import Primitives

/// The number of terminal columns that a character occupies. The width is 0 for common combining characters, 2 for wide
/// East Asian characters and symbols, and 1 otherwise. The ranges are complete blocks where possible, not single
/// characters (Unicode 16, EastAsianWidth.txt). The C library's `wcwidth` is not used, because that function needs a
/// locale. An invisible character has one column, because `TextBuilder.add(untrusted:)` shows it as “?”.
public func characterWidth(_ scalar: UInt32) -> Int {
  switch scalar {
  case 0x300...0x36F, 0x483...0x489, 0x591...0x5BD, 0x64B...0x65F, 0x900...0x902, 0x93C, 0x941...0x948, 0x94D: 0
  case 0xE31, 0xE34...0xE3A, 0xE47...0xE4E, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF, 0xFE20...0xFE2F: 0
  case 0x1F3FB...0x1F3FF: 0
  case 0x1100...0x115E, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F: 2
  case 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6: 2
  case 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF, 0x20000...0x3FFFD: 2
  default: 1
  }
}

/// The number of terminal columns that a text occupies.
public func textWidth(_ text: [UInt8]) -> Int {
  var width = 0
  forEachCharacter(text, from: 0) { _, _, columns in
    width += columns
    return true
  }
  return width
}

/// The length in bytes of the longest prefix of a text that fits into `columns` columns.
public func prefixLength(_ text: [UInt8], columns: Int) -> Int {
  var width = 0, end = 0
  forEachCharacter(text, from: 0) { offset, length, columnsOfOne in
    width += columnsOfOne
    if width > columns { return false }
    end = offset + length
    return true
  }
  return end
}

/// Calls `body` with the offset, length and columns of each UTF-8 character until `body` returns false. An invalid byte
/// is treated as a character of one column.
func forEachCharacter(_ text: [UInt8], from start: Int, _ body: (Int, Int, Int) -> Bool) {
  var offset = start
  while offset < text.count {
    let (length, scalar) = character(text, at: offset)
    if !body(offset, length, characterWidth(scalar)) { return }
    offset += length
  }
}

/// The length in bytes and the scalar value of the character at an offset. An invalid byte is one byte long and decodes
/// to U+FFFD.
func character(_ text: [UInt8], at offset: Int) -> (length: Int, scalar: UInt32) {
  guard let length = UTF8Text.sequenceLength(text.span.bytes, at: offset) else { return (1, 0xFFFD) }
  var scalar = UInt32(text[offset])
  if length > 1 { scalar &= 0x7F >> UInt32(length) }
  for index in 1..<max(length, 1) { scalar = scalar << 6 | UInt32(text[offset + index] & 0x3F) }
  return (length, scalar)
}
