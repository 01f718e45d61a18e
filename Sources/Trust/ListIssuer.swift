import CMbedTLS
import Identity

/// The name of a certification authority as stated in a certificate: as the subject of the authority's certificate, or
/// as the issuer of another certificate.
struct AuthorityName {
  /// The normalised name, which is equal for all spellings of one name. If the name is malformed, the value is the
  /// name's DER.
  let spelling: [UInt8]
  /// The identifier of the authority's key, or empty if the certificate states none.
  let keyIdentifier: [UInt8]

  /// Creates the name that an authority has in its own certificate.
  init(of authority: UnsafePointer<mbedtls_x509_crt>) {
    self.init(authority.pointee.subject_raw, authority.pointee.subject_key_id)
  }

  /// Creates the name of the authority that issued a certificate.
  init(ofIssuerOf certificate: UnsafePointer<mbedtls_x509_crt>) {
    self.init(certificate.pointee.issuer_raw, certificate.pointee.authority_key_id.keyIdentifier)
  }

  private init(_ name: mbedtls_x509_buf, _ keyIdentifier: mbedtls_x509_buf) {
    let der = Array(UnsafeRawBufferPointer(name))
    spelling = Self.spelling(der[...]) ?? der
    self.keyIdentifier = Array(UnsafeRawBufferPointer(keyIdentifier))
  }

  /// Normalises a Name in DER for comparison (RFC 5280, section 7.1, for ASCII characters). Names that differ only in
  /// string type, case or repeated blanks become equal. Returns nil if the DER is malformed.
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

  /// The contents of a string of the ASN.1 type `kind` in UTF-8, or nil if the contents are not text.
  private static func utf8(_ value: ArraySlice<UInt8>, _ kind: UInt8) -> [UInt8]? {
    switch kind {
    // In practice, a TeletexString contains ISO 8859-1.
    case teletexString: decoded(value, unitBytes: 1)
    case bmpString: decoded(value, unitBytes: 2)
    case universalString: decoded(value, unitBytes: 4)
    default: Array(value)
    }
  }

  /// Decodes characters of 1, 2 or 4 bytes. Characters of 2 bytes may be surrogate pairs, as in UTF-16.
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

/// The authority that issued a revocation list: the authority's name, and its key identifier if the list states one.
struct ListIssuer: Equatable {
  private let name: [UInt8]
  /// The key identifier (RFC 5280, section 5.2.1), or empty if the list states none.
  var keyIdentifier: [UInt8] = []

  /// Creates an issuer from its Name in DER. Returns nil if the name is malformed.
  init?(name: ArraySlice<UInt8>) {
    guard let spelling = AuthorityName.spelling(name) else { return nil }
    self.name = spelling
  }

  /// Whether `authority` is the issuer, which is true if the names or the key identifiers are equal. Equality of names
  /// or of key identifiers is enough, because a list that is not applied revokes nothing.
  func isNamed(_ authority: AuthorityName) -> Bool {
    if !keyIdentifier.isEmpty && authority.keyIdentifier == keyIdentifier { return true }
    return authority.spelling == name
  }

  /// Whether the subject of `certificate` is the issuer.
  func isNamed(by certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool { isNamed(AuthorityName(of: certificate)) }
}
