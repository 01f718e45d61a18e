import CMbedTLS
import Identity

/// What every inner session of one role shares. mbedTLS reads it during the sessions' whole life, so each keeps it.
///
/// DTLS 1.2 (RFC 6347) with AES-GCM or ChaCha20-Poly1305; replayed records are dropped (section 4.1.2.6).
final class DTLSConfiguration {
  var settings: UnsafeMutablePointer<mbedtls_ssl_config> { shared.pointer }
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

  private let shared: TLSSettings

  init(key: Key, certificate: Certificate, isClient: Bool) throws(SecureStreamError) {
    shared = try TLSSettings(
      key: key, certificate: certificate, isClient: isClient, transport: MBEDTLS_SSL_TRANSPORT_DATAGRAM,
      versionMax: MBEDTLS_SSL_VERSION_TLS1_2, suites: Self.suites)
    mbedtls_ssl_conf_dtls_anti_replay(settings, CChar(MBEDTLS_SSL_ANTI_REPLAY_ENABLED))
    mbedtls_ssl_conf_handshake_timeout(
      settings, Self.retransmissionMillisecondsMin, Self.retransmissionMillisecondsMax)
    if !isClient {
      // A context is made for a hello whose cookie was right; the check that mbedTLS repeats is always content.
      mbedtls_ssl_conf_dtls_cookies(
        settings, { _, _, _, _, _ in MBEDTLS_ERR_SSL_INTERNAL_ERROR }, { _, _, _, _, _ in 0 }, nil)
    }
  }

  deinit { unread.deallocate() }
}
