import CMbedTLS
import Identity

/// A revocation list (RFC 5280, section 5) of which this program understands every part.
///
/// A list revokes the certificates in its entries. A certificate need not be in the scope of a list to be trusted. So
/// the issuing distribution point is ignored if that extension only names the list's source, or limits the list to end
/// entities or authorities. The dates of a list are ignored, because an old list still revokes.
final class RevocationList {
  /// The result of reading a list.
  enum Reading {
    case list(RevocationList)
    /// The list is not understood. So the list may revoke any certificate that `issuer` issued, or any certificate at
    /// all if `issuer` is nil.
    case refused(StaticString, issuer: ListIssuer?)
    /// The bytes are not one complete list, and may be anything else.
    case unreadable
  }

  let issuer: ListIssuer
  private let list: UnsafeMutablePointer<mbedtls_x509_crl>
  /// The signed TBSCertList in DER.
  private let body: [UInt8]
  /// The file of the list, and the line if the file is PEM.
  let location: String
  /// The public key that signed the list, as far as known, so that not every handshake verifies the signature again.
  private var signer: [UInt8] = []
  /// The keys of anchors that did not sign the list.
  private var otherKeys: [[UInt8]] = []
  /// Whether the list's authority has issued any certificate that was evaluated so far.
  var hasApplied = false

  /// Reads one list in DER. mbedTLS also parses the list, but mbedTLS rejects every critical extension of a list and
  /// ignores the critical extensions of its entries.
  static func read(_ der: [UInt8], location: String = "") -> Reading {
    var outer = DERReader(der[...])
    guard var parts = try? outer.enter(DERReader.sequence), outer.isEmpty, let signed = try? parts.takeAny().whole,
      let contents = try? DERReader.contents(signed)
    else { return .unreadable }
    var body = DERReader(contents)
    if body.rest.first == DERReader.integer { _ = try? body.takeAny() }
    guard (try? body.take(DERReader.sequence)) != nil, let name = try? body.takeAny().whole,
      var issuer = ListIssuer(name: name)
    else { return .unreadable }
    var plain = der
    var refusal: Refusal?
    while let tag = body.rest.first {
      guard let element = try? body.takeAny() else { return .refused("malformed", issuer: issuer) }
      if tag == DERReader.context0 {
        readExtensions(element.contents, &issuer, &plain, &refusal)
      } else if tag == DERReader.sequence {
        readEntries(element.contents, &refusal)
      }
    }
    if let refusal { return .refused(refusal.text, issuer: refusal.isOfEverybody ? nil : issuer) }
    guard let list = RevocationList(plain, Array(signed), issuer, location) else {
      return .refused("malformed", issuer: issuer)
    }
    if !cmbedtls_list_is_strong(list.list) {
      return .refused("signed by a weak algorithm; SHA-256 or better is needed", issuer: issuer)
    }
    return .list(list)
  }

  private init?(_ plain: [UInt8], _ body: [UInt8], _ issuer: ListIssuer, _ location: String) {
    self.body = body
    self.location = location
    self.issuer = issuer
    list = .allocate(capacity: 1)
    mbedtls_x509_crl_init(list)
    if mbedtls_x509_crl_parse_der(list, plain, plain.count) != 0 { return nil }
  }

  deinit {
    mbedtls_x509_crl_free(list)
    list.deallocate()
  }

  /// Whether the key usage of an authority allows signing lists.
  static func mayBeSigned(by authority: UnsafePointer<mbedtls_x509_crt>) -> Bool {
    mbedtls_x509_crt_check_key_usage(authority, UInt32(MBEDTLS_X509_KU_CRL_SIGN)) == 0
  }

  /// Whether `authority` signed the list and the key usage of `authority` allows signing lists.
  func isSigned(by authority: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    guard Self.mayBeSigned(by: authority) else { return false }
    let key = UnsafeRawBufferPointer(authority.pointee.pk_raw)
    if key.elementsEqual(signer) { return true }
    // No other key signed the list too.
    if !signer.isEmpty || otherKeys.contains(where: { key.elementsEqual($0) }) { return false }
    guard cmbedtls_list_is_signed(list, body, body.count, &authority.pointee.pk) else { return false }
    signer = Array(key)
    return true
  }

  /// Checks the signature with the key of an anchor, and stores the result for later calls.
  func checkSignature(by anchor: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    if isSigned(by: anchor) { return true }
    otherKeys.append(Array(UnsafeRawBufferPointer(anchor.pointee.pk_raw)))
    return false
  }

  func revokes(_ certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool {
    mbedtls_x509_crt_is_revoked(certificate, list) != 0
  }

  /// The time at which the authority promised to issue the next list, in seconds since 1970, or nil if the list states
  /// no time.
  var nextUpdate: Int64? { list.pointee.next_update.year == 0 ? nil : Validity.seconds(list.pointee.next_update) }

  /// The name of the list's authority as text.
  var issuerText: String {
    var name = list.pointee.issuer
    return PeerChain.text(&name)
  }
}

/// The first reason why a list is not understood, and whether the list may revoke certificates of other authorities.
private struct Refusal {
  let text: StaticString
  var isOfEverybody: Bool
}

extension Refusal? {
  fileprivate mutating func add(_ text: StaticString, isOfEverybody: Bool = false) {
    self = Refusal(text: self?.text ?? text, isOfEverybody: isOfEverybody || self?.isOfEverybody ?? false)
  }
}

/// Checks the extensions of a list and stores the key identifier in `issuer`. Clears the critical flag of each
/// extension in `plain`, the copy that mbedTLS parses. Sets `refusal` if an extension prevents the use of the list.
private func readExtensions(
  _ sequence: ArraySlice<UInt8>, _ issuer: inout ListIssuer, _ plain: inout [UInt8], _ refusal: inout Refusal?
) {
  guard let all = X509Extension.all(in: sequence) else { return refusal.add("malformed extensions") }
  for next in all {
    switch next.number {
    case 20: break  // CRL number
    case 35: issuer.keyIdentifier = keyIdentifier(next.value)
    case 27: refusal.add("a delta list; use complete lists")
    case 28: readDistributionPoint(next.value, &refusal)
    default: if next.isCritical { refusal.add("a critical extension that is not supported") }
    }
    if let index = next.criticalIndex { plain[index] = 0 }
  }
}

/// The field `[0]` of an AuthorityKeyIdentifier (RFC 5280, section 4.2.1.1), or empty if the field is absent.
private func keyIdentifier(_ der: ArraySlice<UInt8>) -> [UInt8] {
  var whole = DERReader(der)
  guard var fields = try? whole.enter(DERReader.sequence) else { return [] }
  return (try? fields.take(DERReader.context0Primitive)).map { Array($0) } ?? []
}

/// Checks an IssuingDistributionPoint (RFC 5280, section 5.2.5). The field `[0]` names the source of the list. The
/// fields `[1]` and `[2]` limit the list to end entities or to authorities. These three fields are accepted.
private func readDistributionPoint(_ der: ArraySlice<UInt8>, _ refusal: inout Refusal?) {
  var whole = DERReader(der)
  guard var fields = try? whole.enter(DERReader.sequence), whole.isEmpty else {
    return refusal.add("a malformed issuing distribution point", isOfEverybody: true)
  }
  while let tag = fields.rest.first {
    guard let value = try? fields.takeAny().contents else {
      return refusal.add("a malformed issuing distribution point", isOfEverybody: true)
    }
    let isSet = value.contains { $0 != 0 }
    switch tag {
    case 0xA0, 0x81, 0x82: break
    case 0x83: refusal.add("a list for only some reasons; use one for all reasons")
    case 0x84: if isSet { refusal.add("an indirect list; use one list per authority", isOfEverybody: true) }
    case 0x85: if isSet { refusal.add("a list of attribute certificates") }
    default: refusal.add("an issuing distribution point that is not supported", isOfEverybody: true)
    }
  }
}

/// Checks the entries and their extensions (RFC 5280, section 5.3). A certificate in the list is revoked regardless of
/// the reason that its entry states.
private func readEntries(_ entries: ArraySlice<UInt8>, _ refusal: inout Refusal?) {
  var rest = DERReader(entries)
  while !rest.isEmpty {
    guard var entry = try? rest.enter(DERReader.sequence), let serial = try? entry.take(DERReader.integer),
      (try? entry.takeAny()) != nil
    else { return refusal.add("malformed entries") }
    // A list with an empty serial number is refused, because mbedTLS stops its search at such an entry.
    if !isSerialNumber(serial) { return refusal.add("a serial number that is not 1 to 20 bytes in the shortest form") }
    if entry.isEmpty { continue }
    guard let extensions = try? entry.takeAny().whole, entry.isEmpty, let all = X509Extension.all(in: extensions) else {
      return refusal.add("malformed extensions of an entry")
    }
    for next in all {
      switch next.number {
      case 21, 23, 24: continue  // reason, hold instruction, date of invalidity
      case 29: refusal.add("an entry for another authority; use one list per authority", isOfEverybody: true)
      default: if next.isCritical { refusal.add("a critical extension of an entry that is not supported") }
      }
    }
  }
}
