import CMbedTLS
import Identity
import SecureTransport

/// The certificates of a chain whose signatures are right, from an anchor down to the leaf, and the checks that mbedTLS
/// does not make: who may issue, and for what, critical extensions, serial numbers, and revocation.
struct CertificatePath {
  var certificates: [UnsafeMutablePointer<mbedtls_x509_crt>] = []

  /// Authorities that are looked at from an anchor upwards, itself among them. With more a chain is refused.
  static let authoritiesMax = 32

  /// Why the leaf is refused; nil when nothing here speaks against it. `sent` is the chain as the peer sent it.
  func refusal(_ anchors: TrustAnchors, _ sent: PeerChain) -> PeerRefusal? {
    for (index, certificate) in certificates.enumerated() {
      if X509Extension.hasUnknownCritical(certificate) { return .wrongUsage }
      if !hasSerialNumber(certificate) { return .malformedSerial }
      if index == 0 {
        if let refusal = refusal(ofAnchor: certificate, anchors, sent) { return refusal }
      } else {
        // mbedTLS takes an anchor of version 1, which has no extensions, for an authority. It may be a node's.
        let issuer = certificates[index - 1]
        if cmbedtls_is_authority(issuer) == 0 { return .issuerNotAuthority }
        if !ChainRules.mayIssueNodes(issuer) { return .wrongUsage }
        if let refusal = refusal(of: certificate, by: issuer, [issuer], anchors) { return refusal }
      }
    }
    return nil
  }

  /// An anchor may be an intermediate: then its authority, or one further up, may have a list that revokes it or one
  /// between them. All authorities above it are looked at that are anchors or that the peer sent. The peer's can only
  /// speak against it.
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

  /// `issuer` is the authority of the path that signed the certificate; nil above the anchor, where only anchors may have
  /// signed a list. A list is applied when it is by the issuer that the certificate states, or by one of `issuers`.
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

  /// Why a list does not count; nil when it is signed by its authority. An authority that changes its key keeps its name,
  /// and signs its lists with the new one: any anchor of that name may have signed.
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

  /// mbedTLS also takes a serial number that is no INTEGER.
  private func hasSerialNumber(_ certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    certificate.pointee.serial.tag == Int32(DERReader.integer)
      && isSerialNumber(UnsafeRawBufferPointer(certificate.pointee.serial))
  }
}
