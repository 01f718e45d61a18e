import CMbedTLS
import Identity

/// The newest TLS that a stream may speak; the oldest is always 1.2.
public enum TLSVersion: Sendable {
  case tls12
  case tls13
}

/// What every stream of one role shares: versions, suites, groups, our certificate. mbedTLS reads it during the
/// streams' whole life, so each stream keeps it.
final class TLSConfiguration {
  let role: SecureStream.Role
  let versionMax: TLSVersion
  var settings: UnsafeMutablePointer<mbedtls_ssl_config> { shared.pointer }
  /// Where decrypted bytes stand while they are delivered: two records, so that small ones are handed over together.
  let plaintext = UnsafeMutableRawBufferPointer.allocate(byteCount: 32768, alignment: 16)
  /// True while a stream delivers from `plaintext`.
  var isDelivering = false

  /// ChaCha20-Poly1305 first: in mbedTLS it is the faster one on x86_64, and far the faster one on boards without
  /// AES instructions (Raspberry Pi up to 4).
  private static let suites: [Int32] = [
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
  ]

  private let shared: TLSSettings

  init(
    key: Key, certificate: Certificate, role: SecureStream.Role, versionMax: TLSVersion
  ) throws(SecureStreamError) {
    self.role = role
    self.versionMax = versionMax
    shared = try TLSSettings(
      key: key, certificate: certificate, isClient: role == .client, transport: MBEDTLS_SSL_TRANSPORT_STREAM,
      versionMax: versionMax == .tls13 ? MBEDTLS_SSL_VERSION_TLS1_3 : MBEDTLS_SSL_VERSION_TLS1_2, suites: Self.suites)
    mbedtls_ssl_conf_tls13_key_exchange_modes(settings, Int32(MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL))
    if role == .server { mbedtls_ssl_conf_new_session_tickets(settings, 0) }
  }

  deinit { plaintext.deallocate() }
}
