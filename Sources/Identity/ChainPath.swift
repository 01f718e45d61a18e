import CMbedTLS

/// The certificates of a chain that lead from the node's own certificate upwards, as far as the chain contains them.
///
/// Peers with the policy `ca` verify this path from their anchors. Some of their reasons to refuse it do not depend on
/// the anchors, so a node finds these reasons in its own chain. The certificates of a path are a part of its chain.
package struct ChainPath {
  /// The node's own certificate, its issuer, and so on. A certificate above a fault is not in the path.
  package private(set) var certificates: [UnsafeMutablePointer<mbedtls_x509_crt>]
  /// The reason why peers refuse the chain, or nil. The text is the end of a message.
  package private(set) var fault: StaticString?

  /// Whether the node issued its own certificate. Under the policy `ca`, only peers that pinned the
  /// key, or have the certificate as an anchor, accept it.
  package var isOfOwnIssuer: Bool { Self.isSelfIssued(certificates[0]) }

  /// Follows a chain of at most `ChainRules.certificatesMax` certificates. The time for signatures has the same limit
  /// as at a peer.
  package init(_ chain: UnsafeMutablePointer<mbedtls_x509_crt>) {
    certificates = [chain]
    cmbedtls_begin_checks()
    defer { cmbedtls_end_checks() }
    if !Self.isSelfIssued(chain) && cmbedtls_is_authority(chain) != 0 {
      fault = "the node's own certificate is an authority's (CA); have one issued without that"
      return
    }
    // The number of self-issued intermediates, which do not count for a limit of the length.
    var selfIssuedCount = 0
    while true {
      let child = certificates[certificates.count - 1]
      fault = Self.fault(of: child)
      if fault != nil { return }
      let named = issuers(of: child, in: chain)
      if named.isEmpty { return }
      let depth = certificates.count - 1 - selfIssuedCount
      var next: UnsafeMutablePointer<mbedtls_x509_crt>?
      var reason: StaticString?
      for issuer in named {
        let issuerFault = Self.fault(of: child, by: issuer, depth: depth)
        if issuerFault == nil {
          next = issuer
          break
        }
        if reason == nil || reason?.utf8Start == Self.wrongSignature.utf8Start { reason = issuerFault }
      }
      guard let next else {
        // Several versions of a root have one name. Each is the end of the path.
        if !Self.isSelfIssued(child) { fault = reason }
        return
      }
      certificates.append(next)
      if Self.isSelfIssued(next) { selfIssuedCount += 1 }
    }
  }

  /// The certificates of the chain that are not in the path yet, and have the name of a certificate's issuer.
  private func issuers(
    of child: UnsafeMutablePointer<mbedtls_x509_crt>, in chain: UnsafeMutablePointer<mbedtls_x509_crt>
  ) -> [UnsafeMutablePointer<mbedtls_x509_crt>] {
    let name = UnsafeRawBufferPointer(child.pointee.issuer_raw)
    var found: [UnsafeMutablePointer<mbedtls_x509_crt>] = []
    var next: UnsafeMutablePointer<mbedtls_x509_crt>? = chain
    while let candidate = next {
      let isNamed = UnsafeRawBufferPointer(candidate.pointee.subject_raw).elementsEqual(name)
      if isNamed && !certificates.contains(candidate) { found.append(candidate) }
      next = candidate.pointee.next
    }
    return found
  }

  private static let wrongSignature: StaticString =
    "the signature of a certificate is wrong, or its issuer has another key than in the chain; copy the chain again"

  /// The reason why no peer accepts a certificate of any issuer.
  private static func fault(of certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> StaticString? {
    if !hasSerialNumber(certificate) {
      return "a serial number is not 1 to 20 bytes in the shortest form; have the certificate issued again"
    }
    if Certificate.seconds(certificate.pointee.valid_to) < Certificate.seconds(certificate.pointee.valid_from) {
      return "a certificate ends before it begins; have it issued again"
    }
    if X509Extension.hasUnknownCritical(certificate) { return "a critical extension is not supported" }
    // Peers do not check how a root signed itself.
    if isSelfIssued(certificate) { return nil }
    if !cmbedtls_is_strong(certificate) { return "a signature with a weak hash; SHA-256 or better is needed" }
    return cmbedtls_has_long_signature(certificate) ? slow : nil
  }

  private static let slow: StaticString =
    "its signatures take too long to check: RSA above 4096 bits, or too many of large keys; use authorities with P-256"

  /// The minimum length of an RSA key of an authority, in bits. This is the minimum of mbedTLS.
  private static let rsaBitsMin = 2048

  /// The reason why no peer accepts a certificate of this issuer. `depth` is the number of intermediates below the
  /// issuer.
  private static func fault(
    of child: UnsafeMutablePointer<mbedtls_x509_crt>, by issuer: UnsafeMutablePointer<mbedtls_x509_crt>, depth: Int
  ) -> StaticString? {
    switch cmbedtls_is_issued(child, &issuer.pointee.pk) {
    case 1: break
    case 0: return wrongSignature
    default: return slow
    }
    if cmbedtls_is_authority(issuer) == 0
      || mbedtls_x509_crt_check_key_usage(issuer, UInt32(MBEDTLS_X509_KU_KEY_CERT_SIGN)) != 0
    {
      return "a certificate above the node's own is not an authority's; it needs the CA bit and keyCertSign"
    }
    if mbedtls_pk_get_type(&issuer.pointee.pk) == MBEDTLS_PK_RSA
      && mbedtls_pk_get_bitlen(&issuer.pointee.pk) < rsaBitsMin
    {
      return "an authority has an RSA key of less than 2048 bits"
    }
    if !ChainRules.mayIssueNodes(issuer) {
      return "an authority is limited to other uses; its extended key usage must contain clientAuth"
    }
    let length = Int(cmbedtls_path_length(issuer))
    if length > 0 && length < 1 + depth { return "more authorities in a row than one of them allows (pathlen)" }
    return nil
  }

  private static func isSelfIssued(_ certificate: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    UnsafeRawBufferPointer(certificate.pointee.subject_raw)
      .elementsEqual(UnsafeRawBufferPointer(certificate.pointee.issuer_raw))
  }
}
