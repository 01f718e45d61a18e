import CMbedTLS
import Channel

/// What every inner session of one role shares. mbedTLS reads it during the sessions' whole life, so each keeps it.
///
/// DTLS 1.2 (RFC 6347), both ends with certificates, ECDHE-ECDSA with AES-GCM or ChaCha20-Poly1305, P-256 or X25519;
/// replayed records are dropped (section 4.1.2.6); no renegotiation, tickets or session cache.
final class DatagramConfiguration {
  let settings: UnsafeMutablePointer<mbedtls_ssl_config>
  /// What post-handshake messages are read into; nothing of it is used.
  let unread = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 16)

  /// Flights are sent again after the first of these, then twice that, …; after the last one the handshake has failed.
  /// Three relays and a queue ahead of each answer within the first.
  static let retransmissionMillisecondsMin: UInt32 = 500
  static let retransmissionMillisecondsMax: UInt32 = 8_000

  /// The server chooses: what mbedTLS is good at on this CPU comes first. Without AES instructions, and on x86_64 even
  /// with them, that is ChaCha20-Poly1305.
  private static var suites: [Int32] {
    let chaCha = MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    let aes = [
      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ]
    return cmbedtls_is_better_at_aes() ? aes + [chaCha] : [chaCha] + aes
  }

  private let suiteList = zeroTerminated(DatagramConfiguration.suites)
  private let groupList = zeroTerminated(TLSConfiguration.groups)
  private let signatureList = zeroTerminated(TLSConfiguration.signatures)
  private let key: Key
  private let certificate: Certificate

  init(key: Key, certificate: Certificate, isClient: Bool) throws(SecureStreamError) {
    self.key = key
    self.certificate = certificate
    settings = .allocate(capacity: 1)
    mbedtls_ssl_config_init(settings)
    var code = mbedtls_ssl_config_defaults(
      settings, isClient ? MBEDTLS_SSL_IS_CLIENT : MBEDTLS_SSL_IS_SERVER, MBEDTLS_SSL_TRANSPORT_DATAGRAM,
      MBEDTLS_SSL_PRESET_DEFAULT)
    if code != 0 { throw .library(code: code) }
    mbedtls_ssl_conf_min_tls_version(settings, MBEDTLS_SSL_VERSION_TLS1_2)
    mbedtls_ssl_conf_max_tls_version(settings, MBEDTLS_SSL_VERSION_TLS1_2)
    mbedtls_ssl_conf_rng(settings, mbedtls_psa_get_random, nil)
    mbedtls_ssl_conf_ciphersuites(settings, suiteList)
    mbedtls_ssl_conf_groups(settings, groupList)
    mbedtls_ssl_conf_sig_algs(settings, signatureList)
    mbedtls_ssl_conf_renegotiation(settings, MBEDTLS_SSL_RENEGOTIATION_DISABLED)
    mbedtls_ssl_conf_legacy_renegotiation(settings, MBEDTLS_SSL_LEGACY_NO_RENEGOTIATION)
    mbedtls_ssl_conf_session_tickets(settings, MBEDTLS_SSL_SESSION_TICKETS_DISABLED)
    mbedtls_ssl_conf_extended_master_secret(settings, CChar(MBEDTLS_SSL_EXTENDED_MS_ENABLED))
    mbedtls_ssl_conf_dtls_anti_replay(settings, CChar(MBEDTLS_SSL_ANTI_REPLAY_ENABLED))
    mbedtls_ssl_conf_handshake_timeout(
      settings, Self.retransmissionMillisecondsMin, Self.retransmissionMillisecondsMax)
    if !isClient {
      mbedtls_ssl_conf_cert_req_ca_list(settings, CChar(MBEDTLS_SSL_CERT_REQ_CA_LIST_DISABLED))
      // A context is made for a hello whose cookie was right; the check that mbedTLS repeats is always content.
      mbedtls_ssl_conf_dtls_cookies(
        settings, { _, _, _, _, _ in MBEDTLS_ERR_SSL_INTERNAL_ERROR }, { _, _, _, _, _ in 0 }, nil)
    }
    // As in `TLSConfiguration`: the verify callback of the session decides.
    mbedtls_ssl_conf_authmode(settings, MBEDTLS_SSL_VERIFY_REQUIRED)
    mbedtls_ssl_conf_ca_chain(settings, certificate.context, nil)
    code = mbedtls_ssl_conf_own_cert(settings, certificate.context, key.context)
    if code != 0 { throw .library(code: code) }
  }

  deinit {
    mbedtls_ssl_config_free(settings)
    settings.deallocate()
    suiteList.deallocate()
    groupList.deallocate()
    signatureList.deallocate()
    unread.deallocate()
  }
}
