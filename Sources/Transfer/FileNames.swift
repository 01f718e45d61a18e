/// Rules for file names. File names come from other nodes and are untrusted. A file name is never a path, but names one
/// entry of one folder.
public enum FileNames {
  /// Whether a name is legal. A legal name has 1 to 255 bytes of UTF-8, is not `.` or `..`, and contains none of these
  /// characters:
  ///
  /// - `/`
  /// - control characters (U+0000–001F, 007F–009F)
  /// - characters that break lines or change the reading direction (U+2028–202E, U+2066–2069)
  public static func isLegal(_ name: some Collection<UInt8>) -> Bool {
    guard (1...TransferLimits.nameBytesMax).contains(name.count) else { return false }
    let dot = UInt8(ascii: ".")
    if name.count <= 2, name.allSatisfy({ $0 == dot }) { return false }
    return isText(Array(name)) { scalar in
      scalar != 0x2f && !isControl(scalar) && !(0x2028...0x202e).contains(scalar) && !(0x2066...0x2069).contains(scalar)
    }
  }

  /// Whether a text in a record is legal: at most 200 bytes of UTF-8 without control characters.
  public static func isLegalText(_ text: [UInt8]) -> Bool {
    text.count <= TransferLimits.textBytesMax && isText(text) { !isControl($0) }
  }

  /// The name that an item receives in the destination directory. A leading `.` or `-` is replaced by `_`. So the item
  /// is not hidden, and commands do not read its name as an option.
  public static func visible(_ name: [UInt8]) -> [UInt8] {
    guard let first = name.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "-") else { return name }
    return [UInt8(ascii: "_")] + name.dropFirst()
  }

  /// The name with a number, for a destination where the name exists: `foto.jpg`, `foto-2.jpg`, `foto-3.jpg` … The
  /// result has at most 255 bytes. A longer name is truncated before the number, between two characters.
  public static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] {
    guard number > 1 else { return name }
    let tail = Array("-\(number)".utf8)
    var stem = name[...], ending = name[name.endIndex...]
    // A dot at the beginning does not start an extension. A long part after the last dot is not an extension either.
    if let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0, name.count - dot <= 32 {
      (stem, ending) = (name[..<dot], name[dot...])
    }
    let room = TransferLimits.nameBytesMax - tail.count - ending.count
    return Array(cut(stem, room)) + tail + ending
  }

  /// The name of the folder in which an incomplete resource is stored (a partial). The name is hidden. The folder's
  /// name contains the resource's name if the limit of 255 bytes permits.
  public static func partial(_ name: [UInt8], _ key: Digest) -> [UInt8] {
    let tail = [UInt8(ascii: ".")] + key.hexadecimal(bytes: 16) + partialEnding
    let whole = [UInt8(ascii: ".")] + name + tail
    return whole.count <= TransferLimits.nameBytesMax ? whole : tail
  }

  public static func isPartial(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") && name.count > 33 && Array(name.suffix(partialEnding.count)) == partialEnding
  }

  private static let partialEnding = Array(".causeway-part".utf8)

  /// The longest prefix of a text with at most `bytesMax` bytes that does not end inside a character.
  static func cut(_ text: ArraySlice<UInt8>, _ bytesMax: Int) -> ArraySlice<UInt8> {
    guard text.count > bytesMax else { return text }
    var end = text.startIndex + bytesMax
    while end > text.startIndex, text[end] & 0xc0 == 0x80 { end -= 1 }
    return text[..<end]
  }

  /// The explanation as a field of a transfer record: truncated to 200 bytes, and empty if the text has a forbidden
  /// character.
  public static func explanation(_ text: [UInt8]) -> [UInt8] {
    let short = Array(cut(text[...], TransferLimits.textBytesMax))
    return isLegalText(short) ? short : []
  }

  private static func isControl(_ scalar: UInt32) -> Bool { scalar < 0x20 || (0x7f...0x9f).contains(scalar) }

  /// Whether a text is well-formed UTF-8 (The Unicode Standard, table 3-7) and `isAllowed` is true for each scalar.
  private static func isText(_ text: [UInt8], _ isAllowed: (UInt32) -> Bool) -> Bool {
    var offset = 0
    while offset < text.count {
      let first = text[offset], length: Int, least: UInt32
      var scalar: UInt32
      switch first {
      case 0..<0x80: (length, scalar, least) = (1, UInt32(first), 0)
      case 0xc2..<0xe0: (length, scalar, least) = (2, UInt32(first & 0x1f), 0x80)
      case 0xe0..<0xf0: (length, scalar, least) = (3, UInt32(first & 0x0f), 0x800)
      case 0xf0..<0xf5: (length, scalar, least) = (4, UInt32(first & 0x07), 0x1_0000)
      default: return false
      }
      guard offset + length <= text.count else { return false }
      for byte in text[(offset + 1)..<(offset + length)] {
        guard byte & 0xc0 == 0x80 else { return false }
        scalar = scalar &<< 6 | UInt32(byte & 0x3f)
      }
      guard scalar >= least, scalar <= 0x10_ffff, !(0xd800...0xdfff).contains(scalar), isAllowed(scalar) else {
        return false
      }
      offset += length
    }
    return true
  }
}
