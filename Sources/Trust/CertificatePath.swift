import CMbedTLS
import Identity
import SecureTransport

/// The certificates of a chain whose signatures are right, from an anchor down to the leaf, and the checks that mbedTLS
/// does not make: who may issue, critical extensions, and revocation.
struct CertificatePath {
  var certificates: [UnsafeMutablePointer<mbedtls_x509_crt>] = []

  /// Why the leaf is refused; nil when nothing here speaks against it.
  func refusal(_ anchors: TrustAnchors) -> PeerRefusal? {
    for (index, certificate) in certificates.enumerated() {
      if X509Extension.hasUnknownCritical(certificate) { return .wrongUsage }
      if index == 0 {
        if let refusal = refusal(ofAnchor: certificate, anchors) { return refusal }
      } else {
        // mbedTLS takes an anchor of version 1, which has no extensions, for an authority. It may be a node's.
        let issuer = certificates[index - 1]
        if cmbedtls_is_authority(issuer) == 0 { return .issuerNotAuthority }
        if let refusal = refusal(of: certificate, by: issuer, anchors) { return refusal }
      }
    }
    return nil
  }

  /// An anchor may be an intermediate whose own authority is an anchor too, with a list that revokes it.
  private func refusal(
    ofAnchor certificate: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors
  ) -> PeerRefusal? {
    let issuer = UnsafeRawBufferPointer(certificate.pointee.issuer_raw)
    if issuer.elementsEqual(UnsafeRawBufferPointer(certificate.pointee.subject_raw)) { return nil }
    var next: UnsafeMutablePointer<mbedtls_x509_crt>? = anchors.certificates
    while let anchor = next {
      if UnsafeRawBufferPointer(anchor.pointee.subject_raw).elementsEqual(issuer),
        let refusal = refusal(of: certificate, by: anchor, anchors)
      {
        return refusal
      }
      next = anchor.pointee.next
    }
    return nil
  }

  private func refusal(
    of certificate: UnsafeMutablePointer<mbedtls_x509_crt>, by issuer: UnsafeMutablePointer<mbedtls_x509_crt>,
    _ anchors: TrustAnchors
  ) -> PeerRefusal? {
    for list in anchors.lists where list.issuer.isNamed(by: issuer) {
      guard isSigned(list, by: issuer, anchors) else { return .revocationListForged }
      if list.revokes(certificate) { return .revoked }
    }
    return anchors.isClosed(below: issuer) ? .revocationUnknown : nil
  }

  /// An authority that changes its key keeps its name, and signs its lists with the new one: any anchor of that name may
  /// have signed.
  private func isSigned(
    _ list: RevocationList, by issuer: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors
  ) -> Bool {
    if list.isSigned(by: issuer) { return true }
    let name = UnsafeRawBufferPointer(issuer.pointee.subject_raw)
    var next: UnsafeMutablePointer<mbedtls_x509_crt>? = anchors.certificates
    while let anchor = next {
      if UnsafeRawBufferPointer(anchor.pointee.subject_raw).elementsEqual(name), list.isSigned(by: anchor) {
        return true
      }
      next = anchor.pointee.next
    }
    return false
  }
}
