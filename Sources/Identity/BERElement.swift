/// Converts BER (ITU-T X.690, section 8) to DER, as far as PKCS #12 files use BER. For example, NSS writes indefinite
/// lengths, and octet strings in parts.
enum BERElement {
  /// The maximum nesting depth of elements. A usual PKCS #12 file has ten levels.
  private static let depthMax = 32

  /// The first element of `bytes` in DER: with definite lengths, and with each octet string in one piece.
  static func der(_ bytes: ArraySlice<UInt8>) throws(PKCS12Error) -> [UInt8] {
    var rest = bytes
    return try element(&rest, depth: 0)
  }

  private static func element(_ rest: inout ArraySlice<UInt8>, depth: Int) throws(PKCS12Error) -> [UInt8] {
    guard let tag = rest.popFirst(), let length = rest.popFirst() else { throw .truncated }
    // A tag number above 30 continues in further bytes.
    if tag & 0x1F == 0x1F || depth > depthMax { throw .notPKCS12 }
    let isConstructed = tag & 0x20 != 0
    var contents: [UInt8] = []
    if length == 0x80 {
      if !isConstructed { throw .notPKCS12 }
      while true {
        guard rest.count >= 2 else { throw .truncated }
        if rest.starts(with: [0, 0]) { break }
        contents += try part(&rest, of: tag, depth)
      }
      rest.removeFirst(2)
    } else {
      let count = try Self.count(length, &rest)
      guard rest.count >= count else { throw .truncated }
      var inner = rest.prefix(count)
      rest.removeFirst(count)
      if isConstructed {
        while !inner.isEmpty { contents += try part(&inner, of: tag, depth) }
      } else {
        contents = Array(inner)
      }
    }
    return [tag == constructedOctets ? DERReader.octetString : tag] + head(contents.count) + contents
  }

  /// The next element inside an element whose tag is `tag`. If the outer element is an octet string in parts, only the
  /// bytes of the next part are returned.
  private static func part(
    _ rest: inout ArraySlice<UInt8>, of tag: UInt8, _ depth: Int
  ) throws(PKCS12Error) -> [UInt8] {
    let part = try element(&rest, depth: depth + 1)
    if tag != constructedOctets { return part }
    var reader = DERReader(part[...])
    return Array(try reader.take(DERReader.octetString))
  }

  private static func count(_ length: UInt8, _ rest: inout ArraySlice<UInt8>) throws(PKCS12Error) -> Int {
    if length < 0x80 { return Int(length) }
    let digits = Int(length) - 0x80
    if digits > 3 { throw .notPKCS12 }
    guard rest.count >= digits else { throw .truncated }
    var count = 0
    for byte in rest.prefix(digits) { count = count << 8 | Int(byte) }
    rest.removeFirst(digits)
    return count
  }

  private static func head(_ count: Int) -> [UInt8] {
    if count < 0x80 { return [UInt8(count)] }
    if count < 0x100 { return [0x81, UInt8(count)] }
    if count < 0x10000 { return [0x82, UInt8(count >> 8), UInt8(count & 0xFF)] }
    return [0x83, UInt8(truncatingIfNeeded: count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
  }

  /// The tag of an octet string in parts (constructed).
  private static let constructedOctets: UInt8 = 0x24
}
