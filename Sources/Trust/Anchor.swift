import CMbedTLS

/// A certificate in the set of trust anchors.
struct Anchor {
  let certificate: UnsafeMutablePointer<mbedtls_x509_crt>
  let name: AuthorityName
  let issuerName: AuthorityName
  /// The indices of the anchors that signed this anchor, including its own index if it is self-signed. The value is nil
  /// until the signatures are verified, which happens once and not in each handshake.
  var issuers: [Int]?

  init(_ certificate: UnsafeMutablePointer<mbedtls_x509_crt>) {
    self.certificate = certificate
    name = AuthorityName(of: certificate)
    issuerName = AuthorityName(ofIssuerOf: certificate)
  }
}

extension TrustAnchors {
  /// Whether a certificate is signed with the key that it certifies. Equal subject and issuer names do not prove a
  /// self-signature. For example, an authority certifies its new key with its old key under the same name.
  func isSelfSigned(_ certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    if let index = index(of: certificate) { return issuers(ofAnchor: index).contains(index) }
    return AuthorityName(of: certificate).spelling == AuthorityName(ofIssuerOf: certificate).spelling
      && signature(of: certificate, by: certificate) == .right
  }

  /// The authorities, among the anchors and `others`, that issued a certificate. An authority is also returned if the
  /// limit on checks (`cmbedtls_begin_checks`) left the certificate's signature unchecked. The revocation list of an
  /// unchecked authority might revoke the certificate.
  func issuers(
    of certificate: UnsafeMutablePointer<mbedtls_x509_crt>, among others: [Anchor]
  ) -> [UnsafeMutablePointer<mbedtls_x509_crt>] {
    let name = AuthorityName(ofIssuerOf: certificate)
    var found: [UnsafeMutablePointer<mbedtls_x509_crt>] = []
    if let index = index(of: certificate) {
      for issuer in issuers(ofAnchor: index) { found.append(authorities[issuer].certificate) }
    } else {
      for anchor in authorities where mayHaveIssued(anchor, certificate, name) { found.append(anchor.certificate) }
    }
    for other in others where mayHaveIssued(other, certificate, name) { found.append(other.certificate) }
    return found
  }

  private func issuers(ofAnchor index: Int) -> [Int] {
    if let known = authorities[index].issuers { return known }
    let child = authorities[index]
    var issuers: [Int] = []
    var isOpen = false
    for candidate in authorities.indices where authorities[candidate].name.spelling == child.issuerName.spelling {
      switch signature(of: child.certificate, by: authorities[candidate].certificate) {
      case .right: issuers.append(candidate)
      case .wrong: break
      case .notChecked:
        isOpen = true
        // The anchor's own index would mean "self-signed", which an unchecked signature does not prove.
        if candidate != index { issuers.append(candidate) }
      }
    }
    if !isOpen { authorities[index].issuers = issuers }
    return issuers
  }

  private func mayHaveIssued(
    _ authority: Anchor, _ certificate: UnsafeMutablePointer<mbedtls_x509_crt>, _ name: AuthorityName
  ) -> Bool {
    authority.name.spelling == name.spelling && signature(of: certificate, by: authority.certificate) != .wrong
  }

  private enum SignatureCheck {
    case right
    case wrong
    case notChecked
  }

  private func signature(
    of certificate: UnsafeMutablePointer<mbedtls_x509_crt>, by authority: UnsafeMutablePointer<mbedtls_x509_crt>
  ) -> SignatureCheck {
    switch cmbedtls_is_issued(certificate, &authority.pointee.pk) {
    case 1: .right
    case 0: .wrong
    default: .notChecked
    }
  }

  private func index(of certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> Int? {
    authorities.firstIndex { $0.certificate == certificate }
  }
}
