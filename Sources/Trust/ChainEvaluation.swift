import CMbedTLS
import Identity
import SecureTransport

/// The result of evaluating a certificate chain against the trust anchors at a given time.
public enum ChainVerdict: Equatable, Sendable {
  case trusted
  /// The chain leads to an anchor, but a certificate becomes valid after the floor of `TrustTime`, and the clock is not
  /// synchronised. The chain must be evaluated again when the clock is synchronised.
  case trustedForNow
  case refused(PeerRefusal)
}

/// The time that `body` uses to verify signatures of certificates and revocation lists, in units of one P-256 signature
/// check.
public func checksMade(by body: () -> Void) -> Int {
  let before = cmbedtls_cost_of_checks()
  body()
  return Int(cmbedtls_cost_of_checks() - before)
}

extension PeerChain {
  /// Evaluates the chain (RFC 5280, section 6) with mbedTLS, with two exceptions. Dates are compared with `time`,
  /// because mbedTLS would use the system clock. Revocation lists are checked by `CertificatePath`, because mbedTLS
  /// ignores the parts of a list that it does not understand.
  ///
  /// If a list is not understood, all certificates that it may revoke are refused. Lists apply regardless of their
  /// dates: an old list still revokes certificates, and its age causes no refusal. The key usage of the leaf must allow
  /// TLS clients. The handshake checks whether the key usage allows TLS servers (`ChainRules`).
  public func evaluate(_ anchors: TrustAnchors, _ time: TrustTime) -> ChainVerdict {
    guard let first, point != nil else { return .refused(.noUsableKey) }
    if cmbedtls_is_authority(first) != 0 { return .refused(.authorityAsLeaf) }
    if anchors.isClosed { return .refused(.revocationUnknown) }
    var run = EvaluationRun(time: time)
    var flags: UInt32 = 0
    var profile = mbedtls_x509_crt_profile_default
    let code = withUnsafeMutablePointer(to: &run) { run in
      cmbedtls_begin_checks()
      defer { cmbedtls_end_checks() }
      cmbedtls_record_checks()
      ChainSignatures.check(first, anchors)
      cmbedtls_replay_checks()
      return mbedtls_x509_crt_verify_with_profile(
        first, anchors.certificates, nil, &profile, nil, &flags, { EvaluationRun.look($0, $1, $2, $3) }, run)
    }
    if code != 0 && code != MBEDTLS_ERR_X509_CERT_VERIFY_FAILED { return .refused(.chainTooLong) }
    if flags & UInt32(MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0 { return .refused(whyNotTrusted(first, anchors)) }
    let weak = MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY
    if flags & UInt32(weak) != 0 { return .refused(.weakAlgorithm) }
    if flags != 0 { return .refused(.wrongUsage) }
    // The checks of revocation lists have a separate limit, so a long chain cannot exhaust it.
    cmbedtls_begin_checks()
    defer { cmbedtls_end_checks() }
    if let refusal = run.path.refusal(anchors, self) { return .refused(refusal) }
    if let refusal = run.refusal { return .refused(refusal) }
    if !ChainRules.allows(first, .client) { return .refused(.wrongUsage) }
    return run.isUncertain ? .trustedForNow : .trusted
  }

  /// The reason why mbedTLS found no chain to an anchor. mbedTLS skips unsuitable issuers and reports only that it
  /// found none. The reason is used only in the message.
  private func whyNotTrusted(
    _ leaf: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors
  ) -> PeerRefusal {
    var child = leaf
    for depth in 0...ChainRules.certificatesMax {
      let anchor = issuer(of: child, in: anchors.certificates)
      guard let issuer = anchor ?? issuer(of: child, in: first) else { return .unknownIssuer }
      if cmbedtls_is_authority(issuer) == 0
        || mbedtls_x509_crt_check_key_usage(issuer, UInt32(MBEDTLS_X509_KU_KEY_CERT_SIGN)) != 0
      {
        return .issuerNotAuthority
      }
      let length = Int(cmbedtls_path_length(issuer))
      if length > 0 && length < 1 + depth { return .pathTooLong }
      // The name matches an anchor, so the certificate below was not signed with that anchor's key.
      if anchor != nil { return .wrongSignature }
      child = issuer
    }
    return .chainTooLong
  }

  private func issuer(
    of child: UnsafeMutablePointer<mbedtls_x509_crt>, in list: UnsafeMutablePointer<mbedtls_x509_crt>?
  ) -> UnsafeMutablePointer<mbedtls_x509_crt>? {
    let name = UnsafeRawBufferPointer(child.pointee.issuer_raw)
    var next = list
    while let candidate = next {
      if candidate != child && UnsafeRawBufferPointer(candidate.pointee.subject_raw).elementsEqual(name) {
        return candidate
      }
      next = candidate.pointee.next
    }
    return nil
  }
}

/// The results that the verify callback of one evaluation collects.
private struct EvaluationRun {
  let time: TrustTime
  /// The certificates that were seen so far, from the anchor down to the leaf.
  var path = CertificatePath()
  var refusal: PeerRefusal?
  var isUncertain = false

  static func look(
    _ context: UnsafeMutableRawPointer?, _ certificate: UnsafeMutablePointer<mbedtls_x509_crt>?, _ depth: Int32,
    _ flags: UnsafeMutablePointer<UInt32>?
  ) -> Int32 {
    let run = context!.assumingMemoryBound(to: EvaluationRun.self)
    flags!.pointee &= ~UInt32(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE)
    run.pointee.path.certificates.append(certificate!)
    switch Validity(certificate!.pointee, run.pointee.time) {
    case .valid: break
    case .expired: run.pointee.refusal = .expired
    case .notYetValid: if run.pointee.refusal == nil { run.pointee.refusal = .notYetValid }
    case .uncertain: run.pointee.isUncertain = true
    }
    return 0
  }
}
