import CMbedTLS

/// The rules for a node's chain that every peer applies, whatever its trust policy: length, memory, and key usage.
///
/// Peers refuse a chain that breaks one of them in the handshake, so a node must not present one (`fault`).
package enum ChainRules {
  /// The role of a node in a handshake.
  package enum Role {
    case client
    case server
  }

  /// Certificates of a chain: the node's own and 8 intermediates. mbedTLS verifies no more (`MBEDTLS_X509_MAX_INTERMEDIATE_CA`).
  package static let certificatesMax = 9
  /// The Certificate message, in bytes: one TLS record's worth, which is mbedTLS's buffer for a handshake message.
  package static let messageBytesMax = 16_384
  /// Entries of all lists of a chain; a chain of four usual certificates has about sixty.
  ///
  /// mbedTLS keeps the parsed chain during the context's lifetime as lists, with an entry of up to 80 bytes for each
  /// name, alternative name, usage and policy. The shortest takes two bytes of a certificate, so 16 KiB of certificates
  /// could use 400 KiB for each link and each session.
  package static let entriesMax = 256
  package static let entryBytes = 80

  /// Whether a chain, the node's own certificate first, stays within `entriesMax`.
  package static func isWithinBounds(_ chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> Bool {
    var left = entriesMax
    var certificate: UnsafeMutablePointer<mbedtls_x509_crt>? = chain
    while let next = certificate {
      for names in [next.pointee.subject.next, next.pointee.issuer.next] {
        left -= count(names, within: left) { $0.pointee.next }
      }
      for list in [
        next.pointee.subject_alt_names.next, next.pointee.ext_key_usage.next, next.pointee.certificate_policies.next,
      ] { left -= count(list, within: left) { $0.pointee.next } }
      left -= 1
      if left < 0 { return false }
      certificate = next.pointee.next
    }
    return true
  }

  /// Whether a node with this certificate may have this role (RFC 5280, 4.2.1.3 and 4.2.1.12). A key usage must allow
  /// digitalSignature. An extended key usage must allow clientAuth, and serverAuth for a server: every node dials others,
  /// so a certificate for servers alone is not a node's. A certificate without one of these extensions is not restricted
  /// by it.
  ///
  /// mbedTLS makes a similar check, but not of a client in TLS 1.3, where it only verifies after the handshake.
  package static func allows(_ leaf: UnsafePointer<mbedtls_x509_crt>, _ role: Role) -> Bool {
    guard mbedtls_x509_crt_check_key_usage(leaf, UInt32(MBEDTLS_X509_KU_DIGITAL_SIGNATURE)) == 0, isFor(leaf, 2) else {
      return false
    }
    switch role {
    case .client: return true
    case .server: return isFor(leaf, 1)
    }
  }

  /// Whether an authority may issue certificates of nodes. An extended key usage of an authority limits those below it, as
  /// `openssl verify -purpose` and the Web's rules have it, although RFC 5280 does not say so.
  package static func mayIssueNodes(_ authority: UnsafePointer<mbedtls_x509_crt>) -> Bool { isFor(authority, 2) }

  /// Whether an extended key usage allows id-kp-serverAuth (1) or id-kp-clientAuth (2).
  private static func isFor(_ leaf: UnsafePointer<mbedtls_x509_crt>, _ purpose: UInt8) -> Bool {
    let name: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, purpose]
    return name.withUnsafeBytes {
      mbedtls_x509_crt_check_extended_key_usage(leaf, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
        == 0
    }
  }

  /// Why every peer refuses a node that presents this chain, as the end of a line; nil when peers take it.
  package static func fault(of chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> StaticString? {
    if let fault = sizeFault(of: chain) { return fault }
    return allows(chain, .client)
      ? nil : "the node's own certificate is not for its use; it needs digitalSignature, clientAuth and serverAuth"
  }

  /// The same of the chain's length and memory.
  package static func sizeFault(of chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> StaticString? {
    var count = 0
    // A list of certificates with its length (RFC 8446, 4.4.2): of each its length and its extensions' length.
    var messageBytes = 4 + 1 + 3
    var certificate: UnsafeMutablePointer<mbedtls_x509_crt>? = chain
    while let next = certificate {
      count += 1
      messageBytes += 3 + next.pointee.raw.len + 2
      certificate = next.pointee.next
    }
    if count > certificatesMax {
      return "more than 8 certificates above the node's own; leave out the root, which peers have"
    }
    if messageBytes > messageBytesMax { return "longer than 16384 bytes; leave out the root, which peers have" }
    return isWithinBounds(chain) ? nil : "more than 256 names and other entries; use certificates with fewer"
  }

  /// The entries of a list, of which no more than one beyond `most` are counted.
  private static func count<Entry>(
    _ list: UnsafeMutablePointer<Entry>?, within most: Int,
    next: (UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Entry>?
  ) -> Int {
    var count = 0
    var rest = list
    while let entry = rest, count <= most {
      count += 1
      rest = next(entry)
    }
    return count
  }
}
