import Primitives

/// Names of resources are not trusted. They become file names only through `sanitised`.
public enum ResourceName {
  /// Whether `name` is usable as a file name unchanged.
  public static func isSafe(_ name: [UInt8]) -> Bool { !name.isEmpty && sanitised(name) == name }

  /// A safe file name made from `name`:
  /// - `/`, `\`, control characters (U+0000–001F, U+007F–009F), line separators (U+2028–2029) and characters that
  ///   change the reading direction (U+202A–202E, U+2066–2069) become `_` each;
  /// - bytes that are not UTF-8 become `_` each;
  /// - a leading `.` or `-` becomes `_`: no `.`, no `..`, no hidden file, no command option;
  /// - it is cut to `MessageLimits.safeNameBytesMax` bytes, never within a character;
  /// - an empty name becomes `unnamed`.
  public static func sanitised(_ name: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    let bytes = name.span.bytes
    var offset = 0
    while offset < name.count {
      guard let length = UTF8Text.sequenceLength(bytes, at: offset) else {
        result.append(replacement)
        offset += 1
        continue
      }
      if isUnsafe(name, offset, length) {
        result.append(replacement)
      } else {
        for index in 0..<length { result.append(name[offset + index]) }
      }
      offset += length
    }
    if let first = result.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "-") { result[0] = replacement }
    let length = UTF8Text.prefixLength(result.span.bytes, byteCountMax: MessageLimits.safeNameBytesMax)
    result.removeLast(result.count - length)
    return result.isEmpty ? Array("unnamed".utf8) : result
  }

  private static let replacement = UInt8(ascii: "_")

  private static func isUnsafe(_ name: [UInt8], _ offset: Int, _ length: Int) -> Bool {
    let first = name[offset]
    switch length {
    case 1: return first < 0x20 || first == 0x7f || first == UInt8(ascii: "/") || first == UInt8(ascii: "\\")
    case 2: return first == 0xc2 && name[offset + 1] < 0xa0
    case 3:
      guard first == 0xe2 else { return false }
      let last = name[offset + 2]
      return (name[offset + 1] == 0x80 && (0xa8...0xae).contains(last))
        || (name[offset + 1] == 0x81 && (0xa6...0xa9).contains(last))
    default: return false
    }
  }
}
