import CMbedTLS
import CSystem

/// A P-256 private key.
final class Key {
  let context: UnsafeMutablePointer<mbedtls_pk_context>

  init() {
    context = .allocate(capacity: 1)
    mbedtls_pk_init(context)
  }

  deinit {
    mbedtls_pk_free(context)
    context.deallocate()
  }

  /// Takes over the key of a PEM file. Refuses other kinds and pairs that do not belong together.
  func parse(_ pem: [UInt8], path: String) throws(IdentityError) {
    // mbedTLS tells PEM from DER by the terminating zero.
    var text = pem + [0]
    defer { mbedtls_platform_zeroize(&text, text.count) }
    let code = mbedtls_pk_parse_key(context, text, text.count, nil, 0, mbedtls_psa_get_random, nil)
    if code != 0 { throw .notAPrivateKey(path: path) }
    guard mbedtls_pk_get_type(context) == MBEDTLS_PK_ECKEY,
      mbedtls_ecp_keypair_get_group_id(cmbedtls_ec(context)) == MBEDTLS_ECP_DP_SECP256R1
    else { throw .notP256(path: path) }
    if mbedtls_pk_check_pair(context, context, mbedtls_psa_get_random, nil) != 0 { throw .notAPrivateKey(path: path) }
  }

  func generate() throws(IdentityError) {
    try check(mbedtls_pk_setup(context, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)))
    try check(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, cmbedtls_ec(context), mbedtls_psa_get_random, nil))
  }

  /// SEC 1 in PEM, as `openssl ecparam -genkey -noout` writes it.
  func pem() throws(IdentityError) -> [UInt8] {
    var text = [UInt8](repeating: 0, count: 1024)
    try check(mbedtls_pk_write_key_pem(context, &text, text.count))
    return Array(text.prefix { $0 != 0 })
  }

  /// SubjectPublicKeyInfo in DER, 91 bytes.
  func spki() throws(IdentityError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 128)
    let count = mbedtls_pk_write_pubkey_der(context, &buffer, buffer.count)
    if count < 0 { throw .library(code: count) }
    // mbedTLS writes DER from the end of the buffer.
    let spki = Array(buffer.suffix(Int(count)))
    guard spki.count == NodeCertificate.spkiBytes, spki.starts(with: NodeCertificate.spkiPrefix) else {
      throw .library(code: MBEDTLS_ERR_PK_BAD_INPUT_DATA)
    }
    return spki
  }

  /// A DER ECDSA-Sig-Value over the SHA-256 of `message`.
  func signDER(_ message: [UInt8]) throws(IdentityError) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    try check(mbedtls_sha256(message, message.count, &digest, 0))
    var signature = [UInt8](repeating: 0, count: 80)
    var count = 0
    try check(
      mbedtls_pk_sign(
        context, MBEDTLS_MD_SHA256, digest, digest.count, &signature, signature.count, &count,
        mbedtls_psa_get_random, nil))
    return Array(signature.prefix(count))
  }

  func importForSigning() throws(IdentityError) -> psa_key_id_t {
    var attributes = cmbedtls_key_attributes()
    try check(mbedtls_pk_get_psa_attributes(context, psa_key_usage_t(PSA_KEY_USAGE_SIGN_MESSAGE), &attributes))
    psa_set_key_algorithm(&attributes, cmbedtls_ecdsa_sha256())
    var key = psa_key_id_t(0)
    try check(mbedtls_pk_import_into_psa(context, &attributes, &key))
    return key
  }
}

/// Our certificate, or the chain that begins with it.
final class Certificate {
  let context: UnsafeMutablePointer<mbedtls_x509_crt>

  init() {
    context = .allocate(capacity: 1)
    mbedtls_x509_crt_init(context)
  }

  deinit {
    mbedtls_x509_crt_free(context)
    context.deallocate()
  }

  /// One certificate, or a chain with the node's own first.
  func parse(_ pem: [UInt8], path: String) throws(IdentityError) {
    let text = pem + [0]
    if mbedtls_x509_crt_parse(context, text, text.count) != 0 { throw .notACertificate(path: path) }
  }

  /// SubjectPublicKeyInfo in DER of the first certificate.
  var spki: [UInt8] {
    Array(UnsafeBufferPointer(start: context.pointee.pk_raw.p, count: context.pointee.pk_raw.len))
  }

  static func pem(_ der: [UInt8]) throws(IdentityError) -> [UInt8] {
    var text = [UInt8](repeating: 0, count: 2048)
    var count = 0
    try check(
      mbedtls_pem_write_buffer(
        "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n", der, der.count, &text, text.count, &count))
    return Array(text.prefix { $0 != 0 })
  }
}

private func check(_ code: Int32) throws(IdentityError) {
  if code != 0 { throw .library(code: code) }
}
