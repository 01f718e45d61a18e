import CMbedTLS
import Identity

/// A revocation list (RFC 5280, section 5) of which this program understands every part.
///
/// It revokes the certificates that it lists. A certificate is trusted without being in the scope of any list. So the
/// issuing distribution point is ignored if it only names the list's source, or limits the list to end entities or
/// authorities. Dates do not matter: an old list still revokes.
final class RevocationList {
  /// The result of reading a list.
  enum Reading {
    case list(RevocationList)
    /// The list is not understood. It may revoke any certificate of `issuer`, or any certificate at all if `issuer` is
    /// nil.
    case refused(StaticString, issuer: ListIssuer?)
  }

  let issuer: ListIssuer
  private let list: UnsafeMutablePointer<mbedtls_x509_crl>
  /// The signed TBSCertList in DER.
  private let body: [UInt8]
  /// The key with which the signature was last verified, so that not every handshake verifies it again.
  private var signer: [UInt8] = []
  /// Whether the list's authority issued any certificate evaluated so far.
  var hasApplied = false

  /// Reads one list in DER. mbedTLS parses it too, but rejects every critical extension of the list and ignores those
  /// of its entries.
  static func read(_ der: [UInt8]) -> Reading {
    var outer = DERReader(der[...])
    guard var parts = try? outer.enter(DERReader.sequence), outer.isEmpty, let signed = try? parts.takeAny().whole,
      let contents = try? DERReader.contents(signed)
    else { return .refused("malformed or truncated", issuer: nil) }
    var body = DERReader(contents)
    if body.rest.first == DERReader.integer { _ = try? body.takeAny() }
    guard (try? body.take(DERReader.sequence)) != nil, let name = try? body.takeAny().whole,
      var issuer = ListIssuer(name: name)
    else { return .refused("malformed or truncated", issuer: nil) }
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
    guard let list = RevocationList(plain, Array(signed), issuer) else { return .refused("malformed", issuer: issuer) }
    if !cmbedtls_list_is_strong(list.list) {
      return .refused("signed by a weak algorithm; SHA-256 or better is needed", issuer: issuer)
    }
    return .list(list)
  }

  private init?(_ plain: [UInt8], _ body: [UInt8], _ issuer: ListIssuer) {
    self.body = body
    self.issuer = issuer
    list = .allocate(capacity: 1)
    mbedtls_x509_crl_init(list)
    if mbedtls_x509_crl_parse_der(list, plain, plain.count) != 0 { return nil }
  }

  deinit {
    mbedtls_x509_crl_free(list)
    list.deallocate()
  }

  /// Whether this authority signed the list and may sign lists.
  func isSigned(by authority: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    guard mbedtls_x509_crt_check_key_usage(authority, UInt32(MBEDTLS_X509_KU_CRL_SIGN)) == 0 else { return false }
    let key = UnsafeRawBufferPointer(authority.pointee.pk_raw)
    if key.elementsEqual(signer) { return true }
    guard cmbedtls_list_is_signed(list, body, body.count, &authority.pointee.pk) else { return false }
    signer = Array(key)
    return true
  }

  func revokes(_ certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool {
    mbedtls_x509_crt_is_revoked(certificate, list) != 0
  }

  /// When the authority promised the next list, in seconds since 1970; nil if it promised none.
  var nextUpdate: Int64? { list.pointee.next_update.year == 0 ? nil : Validity.seconds(list.pointee.next_update) }

  /// The authority's name as text.
  var issuerText: String {
    var name = list.pointee.issuer
    return PeerChain.text(&name)
  }
}

/// Why a list is not understood: the first reason, and whether the list may revoke certificates of other authorities.
private struct Refusal {
  let text: StaticString
  var isOfEverybody: Bool
}

extension Refusal? {
  fileprivate mutating func add(_ text: StaticString, isOfEverybody: Bool = false) {
    self = Refusal(text: self?.text ?? text, isOfEverybody: isOfEverybody || self?.isOfEverybody ?? false)
  }
}

/// Checks the extensions of the list and adds the key identifier to `issuer`. In `plain`, the copy for mbedTLS, it
/// clears the critical flag of extensions that are understood.
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

/// The `[0]` of an AuthorityKeyIdentifier (RFC 5280, section 4.2.1.1); empty if there is none.
private func keyIdentifier(_ der: ArraySlice<UInt8>) -> [UInt8] {
  var whole = DERReader(der)
  guard var fields = try? whole.enter(DERReader.sequence) else { return [] }
  return (try? fields.take(DERReader.context0Primitive)).map { Array($0) } ?? []
}

/// Checks an IssuingDistributionPoint (RFC 5280, section 5.2.5). `[0]` names the source of the list; `[1]` and `[2]`
/// limit it to end entities or to authorities.
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

/// Checks the entries and their extensions (RFC 5280, section 5.3). A listed certificate is revoked regardless of the
/// reason.
private func readEntries(_ entries: ArraySlice<UInt8>, _ refusal: inout Refusal?) {
  var rest = DERReader(entries)
  while !rest.isEmpty {
    guard var entry = try? rest.enter(DERReader.sequence), let serial = try? entry.take(DERReader.integer),
      (try? entry.takeAny()) != nil
    else { return refusal.add("malformed entries") }
    // mbedTLS stops its search at an empty serial number.
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
