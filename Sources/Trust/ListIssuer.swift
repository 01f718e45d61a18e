import CMbedTLS
import Identity

/// How a certificate names an authority: its own subject, or the issuer that it states.
struct AuthorityName {
  /// The name for comparison: two spellings of one name are equal (`spelling`). The DER itself when that is malformed.
  let spelling: [UInt8]
  /// Empty when the certificate has none.
  let keyIdentifier: [UInt8]

  /// The name of this authority itself.
  init(of authority: UnsafePointer<mbedtls_x509_crt>) {
    self.init(authority.pointee.subject_raw, authority.pointee.subject_key_id)
  }

  /// The name of the authority that issued this certificate.
  init(ofIssuerOf certificate: UnsafePointer<mbedtls_x509_crt>) {
    self.init(certificate.pointee.issuer_raw, certificate.pointee.authority_key_id.keyIdentifier)
  }

  private init(_ name: mbedtls_x509_buf, _ keyIdentifier: mbedtls_x509_buf) {
    let der = Array(UnsafeRawBufferPointer(name))
    spelling = Self.spelling(der[...]) ?? der
    self.keyIdentifier = Array(UnsafeRawBufferPointer(keyIdentifier))
  }

  /// A Name in DER for comparison (RFC 5280, 7.1, for ASCII): the kind of string, upper case and repeated blanks make no
  /// difference. Nil when the DER is malformed.
  static func spelling(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    var whole = DERReader(name)
    guard var parts = try? whole.enter(DERReader.sequence), whole.isEmpty else { return nil }
    var spelling: [UInt8] = []
    while !parts.isEmpty {
      guard var attributes = try? parts.enter(Self.set) else { return nil }
      spelling.append(Self.set)
      while !attributes.isEmpty {
        guard var attribute = try? attributes.enter(DERReader.sequence),
          let type = try? attribute.take(DERReader.objectIdentifier), let kind = attribute.rest.first,
          let value = try? attribute.takeAny().contents, let text = utf8(value, kind)
        else { return nil }
        spelling.append(UInt8(truncatingIfNeeded: type.count))
        spelling += type
        spelling += folded(text)
        spelling.append(0)
      }
    }
    return spelling
  }

  private static let set: UInt8 = 0x31
  private static let teletexString: UInt8 = 0x14
  private static let universalString: UInt8 = 0x1C
  private static let bmpString: UInt8 = 0x1E

  /// The contents of a string of this kind in UTF-8; nil when they are no text.
  private static func utf8(_ value: ArraySlice<UInt8>, _ kind: UInt8) -> [UInt8]? {
    switch kind {
    // As everybody uses it: ISO 8859-1.
    case teletexString: decoded(value, unitBytes: 1)
    case bmpString: decoded(value, unitBytes: 2)
    case universalString: decoded(value, unitBytes: 4)
    default: Array(value)
    }
  }

  /// Characters of 1, 2 or 4 bytes; of 2 also surrogate pairs, as UTF-16 has them.
  private static func decoded(_ value: ArraySlice<UInt8>, unitBytes: Int) -> [UInt8]? {
    if value.count % unitBytes != 0 { return nil }
    var text: [UInt8] = []
    var unit: UInt32 = 0
    var highSurrogate: UInt32?
    for (index, byte) in value.enumerated() {
      unit = unit << 8 | UInt32(byte)
      if index % unitBytes != unitBytes - 1 { continue }
      var character = unit
      unit = 0
      if let high = highSurrogate {
        guard (0xDC00...0xDFFF).contains(character) else { return nil }
        character = 0x10000 + (high - 0xD800) << 10 + (character - 0xDC00)
        highSurrogate = nil
      } else if unitBytes == 2 && (0xD800...0xDBFF).contains(character) {
        highSurrogate = character
        continue
      }
      guard let scalar = UnicodeScalar(character), let encoded = UTF8.encode(scalar) else { return nil }
      for byte in encoded { text.append(byte) }
    }
    return highSurrogate == nil ? text : nil
  }

  private static func folded(_ text: [UInt8]) -> [UInt8] {
    var folded: [UInt8] = []
    for byte in text {
      if byte == 0x20 && (folded.isEmpty || folded.last == 0x20) { continue }
      folded.append((0x41...0x5A).contains(byte) ? byte + 0x20 : byte)
    }
    if folded.last == 0x20 { folded.removeLast() }
    return folded
  }
}

/// The authority that a revocation list is by: its name, and the identifier of its key if the list has one.
struct ListIssuer: Equatable {
  private let name: [UInt8]
  /// RFC 5280, 5.2.1; empty when the list has none.
  var keyIdentifier: [UInt8] = []

  /// `name` is a Name in DER. Nil when it is malformed.
  init?(name: ArraySlice<UInt8>) {
    guard let spelling = AuthorityName.spelling(name) else { return nil }
    self.name = spelling
  }

  /// Whether the list is by the authority of this name: the name or the key's identifier is the same. Either is enough,
  /// because a list that is not applied revokes nobody.
  func isNamed(_ authority: AuthorityName) -> Bool {
    if !keyIdentifier.isEmpty && authority.keyIdentifier == keyIdentifier { return true }
    return authority.spelling == name
  }

  /// Whether the list is by the authority of this certificate.
  func isNamed(by certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool { isNamed(AuthorityName(of: certificate)) }
}
