import CMbedTLS
import Identity

/// The highest TLS version that a stream offers. The lowest version is always 1.2.
public enum TLSVersion: Sendable {
  case tls12
  case tls13
}

/// The mbedTLS configuration that all streams of one role and version limit share: versions, suites, groups, and this
/// node's certificate. The configuration is used by mbedTLS during the lifetime of a stream, so each stream retains the
/// configuration.
final class TLSConfiguration {
  let role: SecureStream.Role
  let versionMax: TLSVersion
  var settings: UnsafeMutablePointer<mbedtls_ssl_config> { shared.pointer }
  /// A buffer for decrypted bytes during their delivery. This buffer has the length of two records, so that small
  /// records are delivered together.
  let plaintext = UnsafeMutableRawBufferPointer.allocate(byteCount: 32768, alignment: 16)
  /// Whether a stream is delivering bytes from `plaintext` at the moment.
  var isDelivering = false

  private static let suites = TLSSettings.Suites(
    aes: [
      MBEDTLS_TLS1_3_AES_128_GCM_SHA256, MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ],
    chaCha: [MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256, MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256])

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
