import Primitives

/// The text that a PEM file may have outside of its blocks: the contents of a certificate or list as openssl, certtool
/// and NSS write them, the attributes of PKCS #12 bags, names of authorities, and comments.
///
/// Any other line is a fault, because it may be a block in another form, for example in JSON, HTML, a mail or a
/// hexadecimal dump. A block that is skipped may be a revocation list.
enum PEMText {
  /// The maximum length of a line of text in bytes. The longest usual line lists the alternative names of a server.
  static let lineBytesMax = 1024

  /// The reason why a line is no text, or nil if it is text. The line has no control characters, and no blank at its
  /// end.
  static func fault(in line: ArraySlice<UInt8>) -> StaticString? {
    if line.isEmpty { return nil }
    if line.count > lineBytesMax { return "a line of more than 1024 bytes outside of a block" }
    guard UTF8Text.isValid(line.span.bytes) else { return "text that is not UTF-8" }
    guard let plain = ascii(line) else { return "a Unicode line separator; end lines by a line feed" }
    let text = Array(plain.drop(while: isBlankByte))
    let hyphens: StaticString = "--"
    if matches(text, 0, hyphens) || matches(text, text.count - 2, hyphens) {
      return "neither a BEGIN line, an END line nor text"
    }
    if hasBoundary(text) { return "BEGIN or END of a block within text; each needs a line of its own" }
    // A line without a mark of its kind is the name of an authority, or a sentence.
    let isIndented = plain.count > text.count
    let isMarked = isIndented || text[0] == UInt8(ascii: "#") || isLabel(text)
    if hasBase64(text, isIndented: isIndented, runMin: isMarked ? runMin : shortRunMin) {
      return "base64 outside of a block: its BEGIN line is missing"
    }
    if hasDump(text, isIndented: plain.count - text.count >= 4 || plain[0] == 0x09) {
      return "a hexadecimal dump; use PEM or DER"
    }
    return !isMarked && text.contains(where: isForbiddenInNames) ? "neither a block nor text" : nil
  }

  /// Whether a line is the heading of the contents of a revocation list, as openssl and certtool write it.
  static func isListHeading(_ line: ArraySlice<UInt8>) -> Bool {
    let text = Array(line.drop(while: isBlankByte))
    for heading in ["Certificate Revocation List (CRL):", "X.509 Certificate Revocation List Information:"]
      as [StaticString]
    where text.count == heading.utf8CodeUnitCount && matches(text, 0, heading) { return true }
    return false
  }

  /// A line with one byte for each character: the dash for each character that looks like a dash, the ASCII character
  /// for each fullwidth form, and 0x80 for any other character. Returns nil if the line has a line separator.
  private static func ascii(_ line: ArraySlice<UInt8>) -> [UInt8]? {
    var decoder = UTF8()
    var iterator = line.makeIterator()
    var plain: [UInt8] = []
    while case .scalarValue(let scalar) = decoder.decode(&iterator) {
      switch scalar.value {
      case 0..<0x80: plain.append(UInt8(scalar.value))
      case 0x85, 0x2028, 0x2029: return nil
      case 0xA0, 0x2000...0x200A, 0x202F, 0x3000: plain.append(0x20)
      case 0xAD, 0x2010...0x2015, 0x2043, 0x2212, 0x2500, 0x2501, 0x2E3A, 0x2E3B, 0xFE58, 0xFE63:
        plain.append(UInt8(ascii: "-"))
      case 0xFF01...0xFF5E: plain.append(UInt8(scalar.value - 0xFF01 + 0x21))
      default: plain.append(0x80)
      }
    }
    return plain
  }

  // MARK: Boundaries of blocks

  /// Whether the text contains BEGIN or END and the kind of a block. Between the two words may be blanks, or a blank
  /// as JSON, HTML, URLs and mails encode it.
  private static func hasBoundary(_ text: [UInt8]) -> Bool {
    for index in text.indices {
      let word: Int
      if matches(text, index, "BEGIN") { word = 5 } else if matches(text, index, "END") { word = 3 } else { continue }
      // The hyphen before the word may be encoded, and then ends with the letter D.
      if index > 0 && isLetter(text[index - 1]) && !matches(text, index - 2, "2D") { continue }
      var kind = index + word
      guard kind < text.count else { continue }
      switch text[kind] {
      case 0x09, 0x20, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        while kind < text.count, !isLetter(text[kind]) { kind += 1 }
        if isKind(text, kind) { return true }
      case UInt8(ascii: "%"), UInt8(ascii: "\\"), UInt8(ascii: "&"), UInt8(ascii: "="):
        for offset in 1...8 where isKind(text, kind + offset) { return true }
      default: continue
      }
    }
    return false
  }

  /// Whether the label of a block begins at this index.
  private static func isKind(_ text: [UInt8], _ index: Int) -> Bool {
    for kind in [
      "X509", "X.509", "CRL", "CERT", "TRUSTED", "NEW CERT", "PKCS", "CMS", "PRIVATE", "PUBLIC", "ENCRYPTED", "EC P",
      "RSA P", "DSA P",
    ] as [StaticString] where matches(text, index, kind) { return true }
    return false
  }

  // MARK: Encoded bytes

  /// Whether the text contains so many base64 characters without a blank that the text may be base64 or hexadecimal
  /// digits. Names have few digits. A slash ends a run, because names of files have slashes.
  private static func hasBase64(_ text: [UInt8], isIndented: Bool, runMin: Int) -> Bool {
    var index = 0
    while index < text.count {
      guard isBase64(text[index]) else {
        index += 1
        continue
      }
      let start = index
      while index < text.count, isBase64(text[index]) { index += 1 }
      if index - start < runMin || isNumber(text, start..<index, isIndented: isIndented) { continue }
      let digits = text[start..<index].count { !isLetter($0) }
      let isName = isInLocation(text, start) || isPin(text, start)
      if digits > 1 && !(isName && index - start < lineOfBase64) { return true }
    }
    return false
  }

  /// The length of a run that is base64 or hexadecimal digits, and of such a run in a name.
  private static let runMin = 24
  private static let shortRunMin = 16
  /// The length of a line of base64 in a block.
  private static let lineOfBase64 = 64

  /// Whether a run is a serial number, a key identifier or a hash behind its label. A serial number of 20 bytes has 40
  /// hexadecimal or 49 decimal digits.
  private static func isNumber(_ text: [UInt8], _ run: Range<Int>, isIndented: Bool) -> Bool {
    guard text[run].allSatisfy(isHexadecimal), run.count <= 49 || run.count == 64 else { return false }
    switch run.upperBound < text.count ? text[run.upperBound] : 0x20 {
    case 0x20, UInt8(ascii: ","), UInt8(ascii: "/"), UInt8(ascii: ")"): break
    default: return false
    }
    if run.lowerBound == 0 { return isIndented && run.count == 40 && run.upperBound == text.count }
    return isLabelled(text, run.lowerBound)
  }

  /// Whether a label ends before this index, perhaps followed by blanks.
  private static func isLabelled(_ text: [UInt8], _ index: Int) -> Bool {
    var label = text[..<index]
    while let last = label.last, isBlankByte(last) { label.removeLast() }
    guard label.count > 1 else { return false }
    return label.last == UInt8(ascii: ":") || label.last == UInt8(ascii: "=")
  }

  /// Whether a URL begins before this index, and contains it.
  private static func isInLocation(_ text: [UInt8], _ index: Int) -> Bool {
    let word = text[..<index].lastIndex { isBlankByte($0) || $0 == UInt8(ascii: ",") } ?? 0
    return (word..<index).contains { matches(text, $0, "://") }
  }

  /// Whether the hash of a key begins at this index, as certtool writes it.
  private static func isPin(_ text: [UInt8], _ index: Int) -> Bool {
    let label: StaticString = "pin-sha256:"
    return matches(text, index - label.utf8CodeUnitCount, label)
  }

  /// Whether the text contains a sequence of hexadecimal numbers of 2, 4 or 8 digits. Colons separate the bytes of keys
  /// and hashes, in an indented line or behind a label. Blanks separate those of the identifier of a PKCS #12 bag.
  private static func hasDump(_ text: [UInt8], isIndented: Bool) -> Bool {
    if matches(text, 0, "localKeyID:") { return false }
    var digits = 0
    var start = 0
    var hasOnlyColons = true
    var index = 0
    while index < text.count {
      if !isDigitOrLetter(text[index]) {
        // The separators of a sequence.
        switch text[index] {
        case UInt8(ascii: ":"): break
        case 0x09, 0x20, UInt8(ascii: ","), UInt8(ascii: "-"), UInt8(ascii: "\\"), UInt8(ascii: "%"):
          hasOnlyColons = false
        default: digits = 0
        }
        index += 1
        continue
      }
      let first = index
      while index < text.count, isDigitOrLetter(text[index]) { index += 1 }
      var word = text[first..<index]
      if matches(text, first, "0x") {
        word = word.dropFirst(2)
      } else if matches(text, first, "x") {
        word.removeFirst()
      }
      guard word.count == 2 || word.count == 4 || word.count == 8, word.allSatisfy(isHexadecimal) else {
        digits = 0
        continue
      }
      if digits == 0 { (start, hasOnlyColons) = (first, true) }
      digits += word.count
      let isKey = hasOnlyColons && (start == 0 ? isIndented : isLabelled(text, start))
      if digits >= runMin && !isKey { return true }
    }
    return false
  }

  // MARK: Characters

  /// Whether a line has a label: a name, and a value behind a colon or an equals sign.
  private static func isLabel(_ text: [UInt8]) -> Bool {
    if text.contains(UInt8(ascii: "=")) || text.last == UInt8(ascii: ":") { return true }
    return text.indices.dropLast().contains { text[$0] == UInt8(ascii: ":") && isBlankByte(text[$0 + 1]) }
  }

  /// Whether a character occurs in source code, markup and binary files, but not in names and sentences.
  private static func isForbiddenInNames(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "["),
      UInt8(ascii: "]"), UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "~"), UInt8(ascii: "|"),
      UInt8(ascii: "`"), UInt8(ascii: "$"), UInt8(ascii: "%"):
      true
    default: false
    }
  }

  private static func isBlankByte(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) && byte < 0x80 }

  private static func isDigitOrLetter(_ byte: UInt8) -> Bool { isLetter(byte) || (0x30...0x39).contains(byte) }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20) && byte < 0x80
  }

  private static func isBase64(_ byte: UInt8) -> Bool { isDigitOrLetter(byte) || byte == UInt8(ascii: "+") }

  /// Whether `word` begins at this index. The case of letters does not count.
  private static func matches(_ text: [UInt8], _ index: Int, _ word: StaticString) -> Bool {
    guard index >= 0, index + word.utf8CodeUnitCount <= text.count else { return false }
    for offset in 0..<word.utf8CodeUnitCount {
      let byte = text[index + offset]
      let wanted = word.utf8Start[offset]
      if byte != wanted && !(isLetter(byte) && isLetter(wanted) && byte | 0x20 == wanted | 0x20) { return false }
    }
    return true
  }
}
