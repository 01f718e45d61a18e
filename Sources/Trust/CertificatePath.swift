import CMbedTLS
import Identity
import SecureTransport

/// A certificate chain with valid signatures, from an anchor down to the leaf, and the checks that mbedTLS does not
/// make: which authorities may issue and for which use, critical extensions, serial numbers, and revocation.
struct CertificatePath {
  var certificates: [UnsafeMutablePointer<mbedtls_x509_crt>] = []

  /// The maximum number of authorities to examine from an anchor upwards, including the anchor. A chain with more is
  /// refused.
  static let authoritiesMax = 32

  /// Why the leaf is refused; nil if these checks find nothing. `sent` is the chain as the peer sent it.
  func refusal(_ anchors: TrustAnchors, _ sent: PeerChain) -> PeerRefusal? {
    for (index, certificate) in certificates.enumerated() {
      if X509Extension.hasUnknownCritical(certificate) { return .wrongUsage }
      if !hasSerialNumber(certificate) { return .malformedSerial }
      if index == 0 {
        if let refusal = refusal(ofAnchor: certificate, anchors, sent) { return refusal }
      } else {
        // mbedTLS accepts a version 1 anchor, which has no extensions, as an authority. It may be a node's certificate.
        let issuer = certificates[index - 1]
        if cmbedtls_is_authority(issuer) == 0 { return .issuerNotAuthority }
        if !ChainRules.mayIssueNodes(issuer) { return .wrongUsage }
        if let refusal = refusal(of: certificate, by: issuer, [issuer], anchors) { return refusal }
      }
    }
    return nil
  }

  /// Checks revocation above the anchor. An anchor may be an intermediate, and an authority above it may have a list
  /// that revokes it or a certificate between them. The check covers all authorities above it that are anchors or that
  /// the peer sent. Certificates from the peer can only lead to a refusal.
  private func refusal(
    ofAnchor anchor: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors, _ sent: PeerChain
  ) -> PeerRefusal? {
    if anchors.isSelfSigned(anchor) { return nil }
    var others: [Anchor] = []
    var next = sent.first
    while let certificate = next {
      others.append(Anchor(certificate))
      next = certificate.pointee.next
    }
    var reached = [anchor]
    var index = 0
    while index < reached.count {
      let certificate = reached[index]
      index += 1
      if anchors.isSelfSigned(certificate) { continue }
      let issuers = anchors.issuers(of: certificate, among: others)
      if let refusal = refusal(of: certificate, by: nil, issuers, anchors) { return refusal }
      for issuer in issuers where !reached.contains(issuer) {
        if !hasSerialNumber(issuer) { return .malformedSerial }
        reached.append(issuer)
      }
      if reached.count > Self.authoritiesMax { return .chainTooLong }
    }
    return nil
  }

  /// Checks one certificate against the revocation lists. `issuer` is the authority of the path that signed it; nil
  /// above the anchor, where only anchors may sign lists. A list applies if it is by the issuer that the certificate
  /// states, or by one of `issuers`.
  private func refusal(
    of certificate: UnsafeMutablePointer<mbedtls_x509_crt>, by issuer: UnsafeMutablePointer<mbedtls_x509_crt>?,
    _ issuers: [UnsafeMutablePointer<mbedtls_x509_crt>], _ anchors: TrustAnchors
  ) -> PeerRefusal? {
    let names = [AuthorityName(ofIssuerOf: certificate)] + issuers.map { AuthorityName(of: $0) }
    for list in anchors.lists where names.contains(where: { list.issuer.isNamed($0) }) {
      list.hasApplied = true
      if let refusal = refusal(of: list, by: issuer, anchors) { return refusal }
      if list.revokes(certificate) { return .revoked }
    }
    return anchors.isClosed(below: names) ? .revocationUnknown : nil
  }

  /// Why a list is not valid; nil if its authority signed it. An authority that changes its key keeps its name and
  /// signs lists with the new key, so any anchor of that name may have signed.
  private func refusal(
    of list: RevocationList, by issuer: UnsafeMutablePointer<mbedtls_x509_crt>?, _ anchors: TrustAnchors
  ) -> PeerRefusal? {
    if let issuer, list.isSigned(by: issuer) { return nil }
    var isAuthorityKnown = issuer != nil
    for anchor in anchors.authorities where list.issuer.isNamed(anchor.name) {
      if list.isSigned(by: anchor.certificate) { return nil }
      isAuthorityKnown = true
    }
    return isAuthorityKnown ? .revocationListForged : .revocationUnknown
  }

  /// mbedTLS also accepts a serial number that is not an INTEGER.
  private func hasSerialNumber(_ certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    certificate.pointee.serial.tag == Int32(DERReader.integer)
      && isSerialNumber(UnsafeRawBufferPointer(certificate.pointee.serial))
  }
}
