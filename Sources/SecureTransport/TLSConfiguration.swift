import CMbedTLS

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
  let settings: UnsafeMutablePointer<mbedtls_ssl_config>
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
  static let groups = [UInt16(MBEDTLS_SSL_IANA_TLS_GROUP_X25519), UInt16(MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1)]
  static let signatures = [UInt16(MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256)]

  private let suiteList = zeroTerminated(TLSConfiguration.suites)
  private let groupList = zeroTerminated(TLSConfiguration.groups)
  private let signatureList = zeroTerminated(TLSConfiguration.signatures)

  private let key: Key
  private let certificate: Certificate

  init(
    key: Key, certificate: Certificate, role: SecureStream.Role, versionMax: TLSVersion
  ) throws(SecureStreamError) {
    self.key = key
    self.certificate = certificate
    self.role = role
    self.versionMax = versionMax
    settings = .allocate(capacity: 1)
    mbedtls_ssl_config_init(settings)

    let endpoint = role == .client ? MBEDTLS_SSL_IS_CLIENT : MBEDTLS_SSL_IS_SERVER
    var code = mbedtls_ssl_config_defaults(
      settings, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT)
    if code != 0 { throw .library(code: code) }
    mbedtls_ssl_conf_min_tls_version(settings, MBEDTLS_SSL_VERSION_TLS1_2)
    mbedtls_ssl_conf_max_tls_version(
      settings, versionMax == .tls13 ? MBEDTLS_SSL_VERSION_TLS1_3 : MBEDTLS_SSL_VERSION_TLS1_2)
    mbedtls_ssl_conf_rng(settings, mbedtls_psa_get_random, nil)
    mbedtls_ssl_conf_ciphersuites(settings, suiteList)
    mbedtls_ssl_conf_groups(settings, groupList)
    mbedtls_ssl_conf_sig_algs(settings, signatureList)
    mbedtls_ssl_conf_tls13_key_exchange_modes(settings, Int32(MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL))
    mbedtls_ssl_conf_renegotiation(settings, MBEDTLS_SSL_RENEGOTIATION_DISABLED)
    mbedtls_ssl_conf_legacy_renegotiation(settings, MBEDTLS_SSL_LEGACY_NO_RENEGOTIATION)
    mbedtls_ssl_conf_session_tickets(settings, MBEDTLS_SSL_SESSION_TICKETS_DISABLED)
    mbedtls_ssl_conf_extended_master_secret(settings, CChar(MBEDTLS_SSL_EXTENDED_MS_ENABLED))
    if role == .server {
      mbedtls_ssl_conf_new_session_tickets(settings, 0)
      // Our authority list means nothing to a peer, and some clients send no certificate that it does not name.
      mbedtls_ssl_conf_cert_req_ca_list(settings, CChar(MBEDTLS_SSL_CERT_REQ_CA_LIST_DISABLED))
    }
    // What counts is possession of the key, which the handshake proves; `PeerKey.verify` decides on the key itself.
    // mbedTLS refuses VERIFY_REQUIRED without any authority, so it is given our own certificate.
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
    plaintext.deallocate()
  }
}

func zeroTerminated<T: FixedWidthInteger>(_ values: [T]) -> UnsafeMutablePointer<T> {
  let list = UnsafeMutablePointer<T>.allocate(capacity: values.count + 1)
  for (index, value) in values.enumerated() { list[index] = value }
  list[values.count] = 0
  return list
}
