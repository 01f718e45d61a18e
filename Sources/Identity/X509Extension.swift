import CMbedTLS

/// An extension of a certificate, of a revocation list, or of an entry of a list (RFC 5280, sections 4.1 and 5.1).
package struct X509Extension {
  /// The object identifier of the extension, in DER without tag and length.
  package let name: ArraySlice<UInt8>
  /// The index of the critical flag in the array from which the extension was read, or nil if the extension is not
  /// critical.
  package let criticalIndex: Int?
  /// The DER inside the OCTET STRING of the extension.
  package let value: ArraySlice<UInt8>

  package var isCritical: Bool { criticalIndex != nil }

  /// The last number of an object identifier below id-ce (2.5.29), or nil for other identifiers.
  package var number: UInt8? {
    name.count == 3 && name.starts(with: [0x55, 0x1D]) ? name.last : nil
  }

  /// Reads the extensions in a SEQUENCE. Returns nil if the extensions are malformed, or if an extension occurs twice.
  package static func all(in sequence: ArraySlice<UInt8>) -> [X509Extension]? {
    var whole = DERReader(sequence)
    guard var list = try? whole.enter(DERReader.sequence), whole.isEmpty else { return nil }
    var all: [X509Extension] = []
    while !list.isEmpty {
      guard let next = X509Extension(&list), !all.contains(where: { $0.name.elementsEqual(next.name) }) else {
        return nil
      }
      all.append(next)
    }
    return all
  }

  private init?(_ list: inout DERReader) {
    guard var fields = try? list.enter(DERReader.sequence), let name = try? fields.take(DERReader.objectIdentifier)
    else { return nil }
    self.name = name
    var critical: Int?
    if fields.rest.first == DERReader.boolean {
      guard let flag = try? fields.take(DERReader.boolean), flag.count == 1 else { return nil }
      if flag.first != 0 { critical = flag.startIndex }
    }
    criticalIndex = critical
    guard let value = try? fields.take(DERReader.octetString), fields.isEmpty else { return nil }
    self.value = value
  }

  /// The object identifier in dotted decimals, followed by its common name if the name is known here.
  package var text: String {
    switch number {
    case 30: "\(dottedName) (nameConstraints)"
    case 32: "\(dottedName) (certificatePolicies)"
    case 33: "\(dottedName) (policyMappings)"
    case 36: "\(dottedName) (policyConstraints)"
    case 54: "\(dottedName) (inhibitAnyPolicy)"
    default: dottedName
    }
  }

  private var dottedName: String {
    var text = ""
    var arc = 0
    for byte in name {
      // No registered extension has an arc of more than four bytes.
      if arc >> 21 != 0 { return "unknown" }
      arc = arc << 7 | Int(byte & 0x7F)
      if byte & 0x80 != 0 { continue }
      if text.utf8.isEmpty {
        text = arc < 80 ? "\(arc / 40).\(arc % 40)" : "2.\(arc - 80)"
      } else {
        text += ".\(arc)"
      }
      arc = 0
    }
    return text
  }
}

extension X509Extension {
  /// The first critical extension of a certificate in DER that this program does not process, or nil if there is none.
  ///
  /// A certificate with such an extension is refused (RFC 5280, section 4.2). The processed extensions are basic
  /// constraints, key usages, key identifiers and alternative names. Alternative names need no processing, because
  /// nodes are identified by keys. mbedTLS also accepts certificate policies with the value “any policy”.
  package static func unknownCritical(inCertificate der: [UInt8]) -> X509Extension? {
    var whole = DERReader(der[...])
    guard var certificate = try? whole.enter(DERReader.sequence), var body = try? certificate.enter(DERReader.sequence)
    else { return nil }
    while let tag = body.rest.first, let element = try? body.takeAny() {
      guard tag == extensionsTag, let all = all(in: element.contents) else { continue }
      return all.first { $0.isCritical && !$0.isProcessed }
    }
    return nil
  }

  /// Whether a certificate that mbedTLS has parsed has a critical extension that this program does not process.
  /// Certificate policies are not examined, because mbedTLS has accepted only policies that it processes.
  package static func hasUnknownCritical(_ certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool {
    let bytes = Array(UnsafeRawBufferPointer(certificate.pointee.v3_ext))
    if bytes.isEmpty { return false }
    guard let all = all(in: bytes[...]) else { return true }
    return all.contains { $0.isCritical && !$0.isProcessed && $0.number != policies }
  }

  /// The tag `[3]`, constructed: the extensions of a certificate.
  private static let extensionsTag: UInt8 = 0xA3
  /// The last number of the object identifier id-ce-certificatePolicies.
  private static let policies: UInt8 = 32

  private var isProcessed: Bool {
    switch number {
    // Subject key identifier, key usage, alternative names, basic constraints, authority key identifier, extended key
    // usage.
    case 14, 15, 17, 19, 35, 37: true
    default: false
    }
  }
}
