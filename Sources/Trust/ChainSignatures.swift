import CMbedTLS
import SecureTransport

/// The signatures of a peer's chain, checked from the anchors downwards.
///
/// mbedTLS checks a chain from the leaf upwards: it checks signatures with the keys that the peer sent, before it finds
/// that no anchor certified these keys. A stranger can send keys whose checks take as long as 80 P-256 checks. Here a
/// key checks signatures only if it belongs to an anchor, or if such a key has certified it. mbedTLS then builds the
/// chain from the recorded results alone (`cmbedtls_replay_checks`).
struct ChainSignatures {
  /// The number of wrong signatures after which no signature of a chain is checked any more. An authority that changed
  /// its key may have several certificates of one name.
  static let wrongMax = 2

  private struct Entry {
    let certificate: UnsafeMutablePointer<mbedtls_x509_crt>
    let name: AuthorityName
    let issuer: AuthorityName
    /// Whether the certificate is the leaf, or may be above the leaf by its name.
    var isAbove = false
    var isCertified = false
  }

  private var entries: [Entry] = []
  private var wrongCount = 0

  /// Checks the signatures that connect the leaf of a chain with the anchors. Call this function between
  /// `cmbedtls_record_checks` and `cmbedtls_replay_checks`. The number of certificates is at most
  /// `ChainRules.certificatesMax`.
  static func check(_ leaf: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors) {
    var signatures = ChainSignatures(leaf, anchors)
    signatures.check(anchors)
  }

  private init(_ leaf: UnsafeMutablePointer<mbedtls_x509_crt>, _ anchors: TrustAnchors) {
    var next: UnsafeMutablePointer<mbedtls_x509_crt>? = leaf
    while let certificate = next {
      let entry = Entry(
        certificate: certificate, name: AuthorityName(of: certificate), issuer: AuthorityName(ofIssuerOf: certificate))
      entries.append(entry)
      next = certificate.pointee.next
    }
    entries[0].isAbove = true
    var reached = [0]
    while let index = reached.popLast() {
      for other in entries.indices
      where !entries[other].isAbove && entries[other].name.spelling == entries[index].issuer.spelling {
        entries[other].isAbove = true
        reached.append(other)
      }
    }
  }

  private mutating func check(_ anchors: TrustAnchors) {
    // The keys of anchors whose key identifier the peer's certificate states are tried first, so that a false
    // identifier costs only the peer's own attempts.
    for pass in 0...1 {
      for anchor in anchors.authorities {
        if !certify(by: anchor.certificate, anchor.name, ifIdentified: pass == 0) { return }
      }
    }
  }

  /// Checks the certificates that this authority may have issued, and those below them. Returns false when no more
  /// checks are needed, or allowed.
  private mutating func certify(
    by authority: UnsafeMutablePointer<mbedtls_x509_crt>, _ name: AuthorityName, ifIdentified: Bool
  ) -> Bool {
    for index in entries.indices where entries[index].isAbove && !entries[index].isCertified {
      let entry = entries[index]
      guard entry.certificate != authority, entry.issuer.spelling == name.spelling,
        ifIdentified == isIdentified(entry.issuer, name)
      else { continue }
      guard cmbedtls_is_issued(entry.certificate, &authority.pointee.pk) == 1 else {
        wrongCount += 1
        if wrongCount == Self.wrongMax { return false }
        continue
      }
      entries[index].isCertified = true
      if index == 0 { return false }
      guard cmbedtls_is_authority(entry.certificate) != 0 else { continue }
      for pass in 0...1 {
        if !certify(by: entry.certificate, entry.name, ifIdentified: pass == 0) { return false }
      }
    }
    return true
  }

  /// Whether a certificate states the identifier of this authority's key as that of its issuer.
  private func isIdentified(_ issuer: AuthorityName, _ authority: AuthorityName) -> Bool {
    !issuer.keyIdentifier.isEmpty && issuer.keyIdentifier == authority.keyIdentifier
  }
}
