import CMbedTLS
import Identity
import SecureTransport

/// A certificate chain with valid signatures, from an anchor down to the leaf. The type makes the checks that mbedTLS
/// does not make: which authorities may issue certificates and for which use, critical extensions, serial numbers, and
/// revocation.
struct CertificatePath {
  var certificates: [UnsafeMutablePointer<mbedtls_x509_crt>] = []

  /// The maximum number of authorities that are examined from an anchor upwards, including the anchor. A chain with
  /// more authorities is refused.
  static let authoritiesMax = 32

  /// The reason why the leaf is refused, or nil if these checks find no fault. `sent` is the chain as the peer sent it.
  func refusal(_ anchors: TrustAnchors, _ sent: PeerChain) -> PeerRefusal? {
    for (index, certificate) in certificates.enumerated() {
      if X509Extension.hasUnknownCritical(certificate) { return .wrongUsage }
      if !hasSerialNumber(certificate) { return .malformedSerial }
      if index == 0 {
        if let refusal = refusal(ofAnchor: certificate, anchors, sent) { return refusal }
      } else {
        // mbedTLS accepts a version 1 anchor, which has no extensions, as an authority. A version 1 anchor may be the
        // certificate of a node.
        let issuer = certificates[index - 1]
        if cmbedtls_is_authority(issuer) == 0 { return .issuerNotAuthority }
        if !ChainRules.mayIssueNodes(issuer) { return .wrongUsage }
        if let refusal = refusal(of: certificate, by: issuer, [issuer], anchors) { return refusal }
      }
    }
    return nil
  }

  /// Checks whether the anchor or a certificate above it is revoked. An anchor may be an intermediate certificate. An
  /// authority above the anchor may have a list that revokes the anchor, or a certificate between authority and anchor.
  /// The check covers all authorities above the anchor that are anchors themselves or that the peer sent. Certificates
  /// from the peer can cause a refusal but no acceptance.
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

  /// Checks one certificate against the revocation lists. `issuer` is the authority of the path that signed the
  /// certificate. `issuer` is nil for the anchor and above, where only anchors may sign lists. A list applies if its
  /// issuer is stated by the certificate, or is among `issuers`.
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

  /// The reason why a list is not valid, or nil if its authority signed it. An authority that changes its key keeps its
  /// name and signs lists with the new key. So the signature of any anchor with that name is valid.
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
}
