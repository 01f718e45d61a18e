import CMbedTLS
import Identity

/// The mbedTLS settings common to links and end-to-end sessions. Under these settings, both sides present certificates.
/// The version is TLS 1.2 or later, the key exchange is ECDHE over the listed groups, and signatures are ECDSA P-256
/// with SHA-256. There is no renegotiation, ticket or session cache. The settings must outlive every context that was
/// set up with them.
final class TLSSettings {
  let pointer: UnsafeMutablePointer<mbedtls_ssl_config>

  private let suites: UnsafeMutablePointer<Int32>
  private let groups = zeroTerminated([
    UInt16(MBEDTLS_SSL_IANA_TLS_GROUP_X25519), UInt16(MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1),
  ])
  private let signatures = zeroTerminated([UInt16(MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256)])
  private let key: Key
  private let certificate: Certificate

  /// The cipher suites. Each end lists first the suites for which its processor is faster. A server whose processor is
  /// faster at AES-GCM follows the client's order; any other server follows its own order. So AES-GCM is chosen if both
  /// processors have instructions for AES, and ChaCha20-Poly1305 otherwise. In TLS 1.3 the server of mbedTLS always
  /// follows the client's order.
  struct Suites {
    let aes, chaCha: [Int32]
  }

  /// `transport` is one of the constants MBEDTLS_SSL_TRANSPORT_….
  init(
    key: Key, certificate: Certificate, isClient: Bool, transport: Int32, versionMax: mbedtls_ssl_protocol_version,
    suites: Suites
  ) throws(SecureStreamError) {
    let isBetterAtAES = cmbedtls_is_better_at_aes()
    self.key = key
    self.certificate = certificate
    self.suites = zeroTerminated(isBetterAtAES ? suites.aes + suites.chaCha : suites.chaCha + suites.aes)
    pointer = .allocate(capacity: 1)
    mbedtls_ssl_config_init(pointer)
    var code = mbedtls_ssl_config_defaults(
      pointer, isClient ? MBEDTLS_SSL_IS_CLIENT : MBEDTLS_SSL_IS_SERVER, transport, MBEDTLS_SSL_PRESET_DEFAULT)
    if code != 0 { throw .library(code: code) }
    mbedtls_ssl_conf_min_tls_version(pointer, MBEDTLS_SSL_VERSION_TLS1_2)
    mbedtls_ssl_conf_max_tls_version(pointer, versionMax)
    mbedtls_ssl_conf_rng(pointer, mbedtls_psa_get_random, nil)
    mbedtls_ssl_conf_ciphersuites(pointer, self.suites)
    mbedtls_ssl_conf_groups(pointer, groups)
    mbedtls_ssl_conf_sig_algs(pointer, signatures)
    mbedtls_ssl_conf_renegotiation(pointer, MBEDTLS_SSL_RENEGOTIATION_DISABLED)
    mbedtls_ssl_conf_legacy_renegotiation(pointer, MBEDTLS_SSL_LEGACY_NO_RENEGOTIATION)
    mbedtls_ssl_conf_session_tickets(pointer, MBEDTLS_SSL_SESSION_TICKETS_DISABLED)
    mbedtls_ssl_conf_extended_master_secret(pointer, CChar(MBEDTLS_SSL_EXTENDED_MS_ENABLED))
    if !isClient {
      let order = isBetterAtAES ? MBEDTLS_SSL_SRV_CIPHERSUITE_ORDER_CLIENT : MBEDTLS_SSL_SRV_CIPHERSUITE_ORDER_SERVER
      mbedtls_ssl_conf_preference_order(pointer, order)
      // No list of authorities is sent to clients. The list would mean nothing to a peer, and some clients send only a
      // certificate whose issuer is in the list.
      mbedtls_ssl_conf_cert_req_ca_list(pointer, CChar(MBEDTLS_SSL_CERT_REQ_CA_LIST_DISABLED))
    }
    // A peer is identified only by its key. The handshake proves that the peer has the key, and the verify callback of
    // each stream or session checks the key. mbedTLS refuses VERIFY_REQUIRED without an authority. So this node's own
    // certificate is set as the authority.
    mbedtls_ssl_conf_authmode(pointer, MBEDTLS_SSL_VERIFY_REQUIRED)
    mbedtls_ssl_conf_ca_chain(pointer, certificate.context, nil)
    code = mbedtls_ssl_conf_own_cert(pointer, certificate.context, key.context)
    if code != 0 { throw .library(code: code) }
  }

  deinit {
    mbedtls_ssl_config_free(pointer)
    pointer.deallocate()
    suites.deallocate()
    groups.deallocate()
    signatures.deallocate()
  }
}

private func zeroTerminated<T: FixedWidthInteger>(_ values: [T]) -> UnsafeMutablePointer<T> {
  let list = UnsafeMutablePointer<T>.allocate(capacity: values.count + 1)
  for (index, value) in values.enumerated() { list[index] = value }
  list[values.count] = 0
  return list
}
