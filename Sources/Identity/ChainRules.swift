import CMbedTLS

/// The rules for a node's certificate chain that every peer applies under any trust policy. These rules concern length,
/// memory and key usage.
///
/// During the handshake, peers refuse a chain that breaks a rule, so a node must not present such a chain (`fault`).
package enum ChainRules {
  /// The role of a node in a handshake.
  package enum Role {
    case client
    case server
  }

  /// The maximum number of certificates in a chain: the node's own certificate and 8 intermediates. mbedTLS verifies no
  /// longer chain (`MBEDTLS_X509_MAX_INTERMEDIATE_CA`).
  package static let certificatesMax = 9
  /// The maximum size of the Certificate message in bytes. This maximum is the size of one TLS record, and of mbedTLS's
  /// buffer for a handshake message.
  package static let messageBytesMax = 16_384
  /// The maximum number of entries in all lists of a chain together. A typical chain of four certificates has about
  /// sixty entries.
  ///
  /// mbedTLS stores the parsed chain as long as the TLS context exists. Each name, alternative name, usage and policy
  /// is a list entry of up to `entryBytes` bytes of memory. The shortest entry takes two bytes in a certificate. So
  /// without this limit, 16 KiB of certificates could use 400 KiB for each link and each session.
  package static let entriesMax = 256
  package static let entryBytes = 80

  /// Whether a chain has at most `entriesMax` entries. The first certificate of the chain is the node's own.
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

  /// Whether a node with the certificate `leaf` may have the role `role` (RFC 5280, sections 4.2.1.3 and 4.2.1.12). A
  /// key usage must allow digitalSignature. An extended key usage must allow clientAuth, and also serverAuth for a
  /// server. Every node dials other nodes, so a certificate that allows only serverAuth is not suitable for a node. A
  /// missing extension does not restrict the certificate.
  ///
  /// mbedTLS makes a similar check, except for a client in TLS 1.3, whose chain it verifies only after the handshake.
  package static func allows(_ leaf: UnsafePointer<mbedtls_x509_crt>, _ role: Role) -> Bool {
    guard mbedtls_x509_crt_check_key_usage(leaf, UInt32(MBEDTLS_X509_KU_DIGITAL_SIGNATURE)) == 0, isFor(leaf, 2) else {
      return false
    }
    switch role {
    case .client: return true
    case .server: return isFor(leaf, 1)
    }
  }

  /// Whether an authority may issue node certificates. An authority's extended key usage limits the certificates below
  /// the authority, as in `openssl verify -purpose` and in Web browsers. RFC 5280 does not require this limit.
  package static func mayIssueNodes(_ authority: UnsafePointer<mbedtls_x509_crt>) -> Bool { isFor(authority, 2) }

  /// Whether the extended key usage of a certificate allows `purpose`: id-kp-serverAuth (1) or id-kp-clientAuth (2).
  private static func isFor(_ leaf: UnsafePointer<mbedtls_x509_crt>, _ purpose: UInt8) -> Bool {
    let name: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, purpose]
    return name.withUnsafeBytes {
      mbedtls_x509_crt_check_extended_key_usage(leaf, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
        == 0
    }
  }

  /// The reason why peers refuse a node that presents this chain, and the peers that refuse it. Returns nil if the
  /// chain has no such fault. The text is the end of a message.
  package static func fault(of chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> String? {
    if let fault = sizeFault(of: chain) { return "\(fault); every peer refuses them" }
    if !allows(chain, .client) {
      return
        "the node's own certificate does not allow this use; it needs digitalSignature, clientAuth and serverAuth; "
        + "every peer refuses them"
    }
    return ChainPath(chain).fault.map { "\($0); peers with policy ca refuse them" }
  }

  /// The reason why every peer refuses this chain because of its length or memory, or nil if peers accept its size. The
  /// text is the end of a message.
  package static func sizeFault(of chain: UnsafeMutablePointer<mbedtls_x509_crt>) -> StaticString? {
    var count = 0
    // The header of the handshake message, the length of the context, and the length of the certificate list. Each
    // certificate of the list has a length, and a length of its extensions (RFC 8446, section 4.4.2).
    var messageBytes = 4 + 1 + 3
    var certificate: UnsafeMutablePointer<mbedtls_x509_crt>? = chain
    while let next = certificate {
      count += 1
      messageBytes += 3 + next.pointee.raw.len + 2
      certificate = next.pointee.next
    }
    if count > certificatesMax {
      return "more than 8 certificates above the node's own; omit the root, which peers have"
    }
    if messageBytes > messageBytesMax { return "longer than 16384 bytes; omit the root, which peers have" }
    return isWithinBounds(chain) ? nil : "more than 256 names and other entries; use certificates with fewer"
  }

  /// The number of entries of a list. The count stops at `most` + 1.
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
