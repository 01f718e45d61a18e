import CMbedTLS
import Identity

/// The authority that a revocation list is by: its name, and the identifier of its key if the list has one.
struct ListIssuer: Equatable {
  /// Two spellings of one name are equal (see `spelling`).
  private let name: [UInt8]
  /// RFC 5280, 5.2.1; empty when the list has none.
  var keyIdentifier: [UInt8] = []

  /// `name` is a Name in DER. Nil when it is malformed.
  init?(name: ArraySlice<UInt8>) {
    guard let spelling = Self.spelling(name) else { return nil }
    self.name = spelling
  }

  /// Whether the list is by the authority of this certificate: the name or the key's identifier is the same. Either is
  /// enough, because a list that is not applied revokes nobody.
  func isNamed(by certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool {
    let identifier = UnsafeRawBufferPointer(certificate.pointee.subject_key_id)
    if !identifier.isEmpty && identifier.elementsEqual(keyIdentifier) { return true }
    return Self.spelling(Array(UnsafeRawBufferPointer(certificate.pointee.subject_raw))[...]) == name
  }

  /// A name for comparison (RFC 5280, 7.1, for ASCII): the kind of string, upper case and repeated blanks make no
  /// difference. Nil when the DER is malformed.
  private static func spelling(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    var whole = DERReader(name)
    guard var parts = try? whole.enter(DERReader.sequence), whole.isEmpty else { return nil }
    var spelling: [UInt8] = []
    while !parts.isEmpty {
      guard var attributes = try? parts.enter(Self.set) else { return nil }
      spelling.append(Self.set)
      while !attributes.isEmpty {
        guard var attribute = try? attributes.enter(DERReader.sequence),
          let type = try? attribute.take(DERReader.objectIdentifier), let kind = attribute.rest.first,
          let value = try? attribute.takeAny().contents
        else { return nil }
        spelling.append(UInt8(truncatingIfNeeded: type.count))
        spelling += type
        spelling += folded(kind == Self.bmpString ? narrow(value) : Array(value))
        spelling.append(0)
      }
    }
    return spelling
  }

  private static let set: UInt8 = 0x31
  private static let bmpString: UInt8 = 0x1E

  /// ASCII in 16-bit characters; others keep both bytes.
  private static func narrow(_ wide: ArraySlice<UInt8>) -> [UInt8] {
    var narrow: [UInt8] = []
    for (index, byte) in wide.enumerated() where !(index % 2 == 0 && byte == 0) { narrow.append(byte) }
    return narrow
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
