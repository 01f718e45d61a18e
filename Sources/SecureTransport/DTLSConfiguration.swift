import CMbedTLS
import Identity

/// The mbedTLS configuration that all end-to-end sessions of one role (client or server) share. mbedTLS uses the
/// configuration during the lifetime of a session, so each session retains it.
///
/// Sessions use DTLS 1.2 (RFC 6347) with AES-GCM or ChaCha20-Poly1305. Replayed records are dropped (section 4.1.2.6).
final class DTLSConfiguration {
  var settings: UnsafeMutablePointer<mbedtls_ssl_config> { shared.pointer }
  /// A buffer into which messages after the handshake are read before they are discarded.
  let unread = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 16)

  /// The minimum of the retransmission timeout. A flight is retransmitted after the minimum. The timeout doubles with
  /// each retransmission, and after the maximum the handshake has failed. The minimum is long enough for a path over
  /// three relays with a queue before each relay.
  static let retransmissionMillisecondsMin: UInt32 = 500
  /// The maximum of the retransmission timeout.
  static let retransmissionMillisecondsMax: UInt32 = 8_000

  private static let suites = TLSSettings.Suites(
    aes: [MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384],
    chaCha: [MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256])

  private let shared: TLSSettings

  init(key: Key, certificate: Certificate, isClient: Bool) throws(SecureStreamError) {
    shared = try TLSSettings(
      key: key, certificate: certificate, isClient: isClient, transport: MBEDTLS_SSL_TRANSPORT_DATAGRAM,
      versionMax: MBEDTLS_SSL_VERSION_TLS1_2, suites: Self.suites)
    mbedtls_ssl_conf_dtls_anti_replay(settings, CChar(MBEDTLS_SSL_ANTI_REPLAY_ENABLED))
    mbedtls_ssl_conf_handshake_timeout(
      settings, Self.retransmissionMillisecondsMin, Self.retransmissionMillisecondsMax)
    if !isClient {
      // A context is created only for a ClientHello with a correct cookie. mbedTLS checks the cookie again, so the
      // check callback accepts every cookie.
      mbedtls_ssl_conf_dtls_cookies(
        settings, { _, _, _, _, _ in MBEDTLS_ERR_SSL_INTERNAL_ERROR }, { _, _, _, _, _ in 0 }, nil)
    }
  }

  deinit { unread.deallocate() }
}
