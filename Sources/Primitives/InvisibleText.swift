/// Whether a character is invisible: a control character (general category Cc), a line or paragraph separator, a
/// direction mark or another Default_Ignorable_Code_Point (Unicode 16, DerivedCoreProperties.txt). Such characters
/// control terminals, reorder a line, or make two different names look alike.
public func isInvisible(_ scalar: UInt32) -> Bool {
  switch scalar {
  case 0...0x1F, 0x7F...0x9F, 0xAD, 0x34F, 0x61C, 0x115F...0x1160, 0x17B4...0x17B5, 0x180B...0x180F: true
  case 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0x3164, 0xFE00...0xFE0F, 0xFEFF, 0xFFA0: true
  case 0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A, 0xE0000...0xE0FFF: true
  default: false
  }
}

/// Whether a word consists of as many hexadecimal digits, of either case, as a displayed node id: 8 or 32. Names must
/// not, because they would be mistaken for an id.
public func looksLikeNodeID(_ word: RawSpan) -> Bool {
  guard word.byteCount == 8 || word.byteCount == 2 * NodeID.byteCount else { return false }
  for offset in word.byteOffsets {
    switch word.octet(offset) {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: continue
    default: return false
    }
  }
  return true
}
