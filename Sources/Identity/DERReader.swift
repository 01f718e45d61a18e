/// Reads DER elements (ITU-T X.690) from front to back. The reader supports only the subset that PKCS #12 and X.509
/// need: tags of one byte, and definite lengths of at most three bytes. The methods throw `.truncated` for a length
/// beyond the end of the bytes, and `.notPKCS12` for an unexpected tag.
package struct DERReader {
  package static let integer: UInt8 = 0x02
  package static let boolean: UInt8 = 0x01
  package static let octetString: UInt8 = 0x04
  package static let objectIdentifier: UInt8 = 0x06
  package static let sequence: UInt8 = 0x30
  /// The tag `[0]`, constructed.
  package static let context0: UInt8 = 0xA0
  /// The tag `[0]`, primitive.
  package static let context0Primitive: UInt8 = 0x80

  package private(set) var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  package var isEmpty: Bool { rest.isEmpty }

  /// The contents of the next element, whose tag must be `tag`.
  package mutating func take(_ tag: UInt8) throws(PKCS12Error) -> ArraySlice<UInt8> {
    guard let first = rest.first else { throw .truncated }
    if first != tag { throw .notPKCS12 }
    return try takeAny().contents
  }

  /// A reader of the contents of the next element, whose tag must be `tag`.
  package mutating func enter(_ tag: UInt8) throws(PKCS12Error) -> DERReader { DERReader(try take(tag)) }

  /// The next element: its contents without tag and length, and the complete element.
  package mutating func takeAny() throws(PKCS12Error) -> (contents: ArraySlice<UInt8>, whole: ArraySlice<UInt8>) {
    let start = rest.startIndex
    guard rest.count >= 2 else { throw .truncated }
    // A tag number above 30 continues in further bytes.
    if rest[start] & 0x1F == 0x1F { throw .notPKCS12 }
    var count = Int(rest[start + 1])
    var head = 2
    if count >= 0x80 {
      let digits = count - 0x80
      // 0x80 alone is BER's indefinite length.
      if digits == 0 || digits > 3 { throw .notPKCS12 }
      head += digits
      guard rest.count >= head else { throw .truncated }
      count = 0
      for index in 0..<digits { count = count << 8 | Int(rest[start + 2 + index]) }
    }
    guard rest.count - head >= count else { throw .truncated }
    let whole = rest[start..<start + head + count]
    rest = rest[(start + head + count)...]
    return (whole[(start + head)...], whole)
  }

  /// The value of the next element, which must be a non-negative INTEGER below 2³¹.
  package mutating func number() throws(PKCS12Error) -> Int {
    let bytes = try take(Self.integer)
    guard (1...5).contains(bytes.count), bytes.first! < 0x80 else { throw .notPKCS12 }
    var value = 0
    for byte in bytes { value = value << 8 | Int(byte) }
    guard value < 1 << 31 else { throw .notPKCS12 }
    return value
  }
}

extension DERReader {
  /// The contents of an element that is given with tag and length.
  package static func contents(_ element: ArraySlice<UInt8>) throws(PKCS12Error) -> ArraySlice<UInt8> {
    var reader = DERReader(element)
    return try reader.takeAny().contents
  }
}
