import CFormats
import Primitives

/// Checks each line of a configuration file before libinih parses the file. Rejects everything that libinih would
/// silently skip.
///
/// libinih ends a line only at a line feed, and splits a line that is too long. The parser ignores text after a
/// section's name, and sections without keys.
enum ConfigurationLines {
  static func check(_ bytes: [UInt8], _ file: String) throws(ConfigurationError) {
    let keys = configurationKeys
    var number = 0
    for whole in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
      number += 1
      let location = "\(file):\(number)"
      // Line ends of Windows (CR LF) and a leading byte order mark are accepted.
      var line = whole.last == 0x0D ? whole.dropLast() : whole
      if number == 1, line.starts(with: byteOrderMark) { line = line.dropFirst(byteOrderMark.count) }
      if let problem = forbidden(in: line) { throw ConfigurationError("\(location): \(problem)") }
      if line.count > Int(CFORMATS_INI_LINE_MAX) {
        throw ConfigurationError(
          "\(location): longer than \(CFORMATS_INI_LINE_MAX) bytes; cut it, or use several lines")
      }
      let text = ByteString(line).trimmed
      if text.bytes.first == UInt8(ascii: "[") { try checkSection(text, location, keys) }
      if hidesSecret(text, keys) {
        throw ConfigurationError(
          "\(location): a secret key within the value of another key; give each a line of its own")
      }
    }
  }

  private static func checkSection(_ text: ByteString, _ location: String, _ keys: [ConfigurationKey])
    throws(ConfigurationError)
  {
    // libinih reports a section without a closing bracket, so it needs no check here.
    guard let end = text.bytes.firstIndex(of: UInt8(ascii: "]")) else { return }
    let section = ByteString(text.bytes[..<end].dropFirst())
    if !keys.contains(where: { section.equals($0.section) }) {
      let shown = ShownLine(text.bytes, keys).section(section)
      throw ConfigurationError("\(location): unknown section [\(shown)]; expected \(sectionNames(keys))")
    }
    let rest = ByteString(text.bytes[(end + 1)...]).trimmed
    if let first = rest.bytes.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";") {
      throw ConfigurationError(
        "\(location): text behind [\(section.string)]; expected the end of the line, and each key on a line of its own")
    }
  }

  /// Whether the value of a key that is not secret contains a secret key with its value. If a value with a secret key
  /// were accepted, the secret would be shown in texts, or announced as a part of a name.
  private static func hidesSecret(_ text: ByteString, _ keys: [ConfigurationKey]) -> Bool {
    if text.bytes.first == UInt8(ascii: "#") || text.bytes.first == UInt8(ascii: ";") { return false }
    guard let sign = text.bytes.firstIndex(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }) else {
      return false
    }
    let name = ByteString(text.bytes[..<sign]).trimmed
    if keys.contains(where: { $0.isSecret && name.equals($0.name) }) { return false }
    return ShownLine.hasSecretEntry(text.bytes[(sign + 1)...], keys)
  }

  /// The reason why a line is rejected: bytes that are not text, or characters that some programs treat as a line end.
  private static func forbidden(in line: ArraySlice<UInt8>) -> StaticString? {
    // The file must be UTF-8, because the byte 0x85 is a line end in some single-byte encodings.
    if !UTF8Text.isValid(line.span.bytes) { return "not UTF-8; save the file as UTF-8" }
    for (index, byte) in zip(line.indices, line) {
      switch byte {
      case 0: return "a zero byte; expected plain text in UTF-8"
      case 0x0D: return "a carriage return within a line; end lines by a line feed (Unix) or by both (Windows)"
      case 0x09: continue
      case 0..<0x20, 0x7F: return "a control character; expected plain text"
      // The characters NEL (next line), line separator and paragraph separator.
      case 0xC2 where line[index...].starts(with: [0xC2, 0x85]),
        0xE2 where line[index...].starts(with: [0xE2, 0x80, 0xA8]) || line[index...].starts(with: [0xE2, 0x80, 0xA9]):
        return "a Unicode line separator; end lines by a line feed"
      default: continue
      }
    }
    return nil
  }

  static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
}
