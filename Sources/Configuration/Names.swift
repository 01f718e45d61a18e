import Primitives

/// The syntax of a node id.
public enum NodeIDSyntax {
  public static let accepted: StaticString = "node ids of 32 hexadecimal digits, at most 4"

  /// Parses a node id. Returns nil if the text is not exactly 32 hexadecimal digits.
  public static func parse(_ text: ByteString) -> NodeID? {
    guard text.bytes.count == 2 * NodeID.byteCount else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    for (index, byte) in text.bytes.enumerated() {
      guard let digit = ByteString.hexValue(byte) else { return nil }
      if index < 16 { words.0 = words.0 << 4 | UInt64(digit) } else { words.1 = words.1 << 4 | UInt64(digit) }
    }
    return NodeID(high: words.0, low: words.1)
  }
}

/// The syntax of a node's display name.
public enum DisplayNameSyntax {
  public static let bytesMax = Limits.displayNameBytesMax
  public static let accepted: StaticString =
    "1 to 63 bytes of UTF-8 without control characters, and not 8 or 32 hexadecimal digits, which would look like an id"

  /// Parses a display name. Returns nil if the name is invalid.
  public static func parse(_ bytes: ArraySlice<UInt8>) -> String? {
    guard !bytes.isEmpty, bytes.count <= bytesMax, !resemblesNodeID(bytes.span.bytes) else { return nil }
    return printable(bytes)
  }

  /// Returns the text if it is valid UTF-8 without control characters (Unicode general category Cc), otherwise nil.
  static func printable(_ bytes: ArraySlice<UInt8>) -> String? {
    isPlainText(bytes.span.bytes) ? String(decoding: bytes, as: UTF8.self) : nil
  }
}

/// The syntax of a service type (RFC 6335, section 5.1).
public enum ServiceTypeSyntax {
  public static let accepted: StaticString =
    "1 to 15 of a–z, 0–9 and hyphen, with a letter, no hyphen at an end nor two in a row"

  public static func parse(_ bytes: ArraySlice<UInt8>) -> String? {
    isServiceType(bytes.span.bytes) ? String(decoding: bytes, as: UTF8.self) : nil
  }
}

extension ServiceGroup {
  static func parse(_ text: ByteString) -> ServiceGroup? {
    guard let colon = text.bytes.firstIndex(of: UInt8(ascii: ":")),
      let type = ServiceTypeSyntax.parse(text.bytes[..<colon]),
      let group = ByteString(text.bytes[(colon + 1)...]).number(in: 0...UInt64(UInt32.max - 1))
    else { return nil }
    return ServiceGroup(type: type, group: UInt32(group))
  }
}

extension DiscoveryPair {
  /// The maximum length of one `key=value` in bytes (RFC 6763, section 6.1).
  public static let bytesMax = 255
  /// The maximum and the recommended size of all pairs together, in bytes. Each pair includes its length byte (RFC
  /// 6763, section 6.2).
  public static let totalBytesMax = 1300
  public static let totalBytesAdvised = 400
  public static let accepted: StaticString =
    """
    key=value, …: each at most 255 bytes of UTF-8 without control characters, the key printable ASCII and used once, \
    all together at most 1300 bytes
    """

  /// Parses one `key=value`. Returns nil if the text is invalid.
  public static func parse(_ text: ByteString) -> DiscoveryPair? {
    guard text.bytes.count <= bytesMax, let equals = text.bytes.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let key = text.bytes[..<equals]
    guard !key.isEmpty, key.allSatisfy({ (0x20...0x7E).contains($0) }),
      let value = DisplayNameSyntax.printable(text.bytes[(equals + 1)...])
    else { return nil }
    return DiscoveryPair(key: String(decoding: key, as: UTF8.self), value: value)
  }
}
