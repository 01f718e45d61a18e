import CMbedTLS

/// Limits the memory of a peer's parsed chain.
///
/// mbedTLS keeps it during the context's lifetime as lists, with a node of up to 80 bytes for each name, alternative
/// name, usage and policy. The shortest takes two bytes of a certificate, so 16 KiB of certificates could use 400 KiB
/// for each link and each session.
enum PeerChainSize {
  /// Nodes of all lists of a chain; a chain of four usual certificates has about sixty.
  static let nodesMax = 256
  static let nodeBytes = 80

  /// Whether a chain, the peer's own certificate first, stays within `nodesMax`.
  static func isWithinBounds(_ chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    var left = nodesMax
    var certificate: UnsafeMutablePointer<mbedtls_x509_crt>? = chain
    while let next = certificate {
      for names in [next.pointee.subject.next, next.pointee.issuer.next] { left -= count(names, within: left) }
      for list in [
        next.pointee.subject_alt_names.next, next.pointee.ext_key_usage.next, next.pointee.certificate_policies.next,
      ] { left -= count(list, within: left) }
      left -= 1
      if left < 0 { return false }
      certificate = next.pointee.next
    }
    return true
  }

  private static func count(_ list: UnsafeMutablePointer<mbedtls_asn1_named_data>?, within most: Int) -> Int {
    var count = 0
    var node = list
    while let next = node, count <= most {
      count += 1
      node = next.pointee.next
    }
    return count
  }

  private static func count(_ list: UnsafeMutablePointer<mbedtls_asn1_sequence>?, within most: Int) -> Int {
    var count = 0
    var node = list
    while let next = node, count <= most {
      count += 1
      node = next.pointee.next
    }
    return count
  }
}
