import CMbedTLS
import CSystem

/// A P-256 private key.
package final class Key {
  package let context: UnsafeMutablePointer<mbedtls_pk_context>

  init() {
    context = .allocate(capacity: 1)
    mbedtls_pk_init(context)
  }

  deinit {
    mbedtls_pk_free(context)
    context.deallocate()
  }

  /// Loads the key of a PEM file, or of a PKCS #8 or SEC 1 structure in DER. Throws for other kinds of key, and for
  /// keys whose private and public parts do not match. `password` decrypts an encrypted PEM file.
  func parse(_ bytes: [UInt8], path: String, password: [UInt8] = []) throws(IdentityError) {
    // mbedTLS recognises PEM by a terminating zero. For DER the zero is not included in `count`.
    var text = bytes + [0]
    defer { mbedtls_platform_zeroize(&text, text.count) }
    let count = bytes.first == 0x30 ? bytes.count : text.count
    try KeyInspection.check(bytes, path: path)
    let code = mbedtls_pk_parse_key(context, text, count, password, password.count, mbedtls_psa_get_random, nil)
    switch code {
    case 0: break
    case MBEDTLS_ERR_PK_PASSWORD_REQUIRED: throw .passwordNeeded(path: path)
    case MBEDTLS_ERR_PK_PASSWORD_MISMATCH: throw .wrongPassword(path: path)
    case MBEDTLS_ERR_PK_UNKNOWN_NAMED_CURVE: throw .notP256(path: path)
    default: throw .notAPrivateKey(path: path)
    }
    guard mbedtls_pk_get_type(context) == MBEDTLS_PK_ECKEY,
      mbedtls_ecp_keypair_get_group_id(cmbedtls_ec(context)) == MBEDTLS_ECP_DP_SECP256R1
    else { throw .notP256(path: path) }
    if mbedtls_pk_check_pair(context, context, mbedtls_psa_get_random, nil) != 0 { throw .notAPrivateKey(path: path) }
  }

  func generate() throws(IdentityError) {
    try check(mbedtls_pk_setup(context, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)))
    try check(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, cmbedtls_ec(context), mbedtls_psa_get_random, nil))
  }

  /// The key in PEM, in the SEC 1 format that `openssl ecparam -genkey -noout` writes.
  func pem() throws(IdentityError) -> [UInt8] {
    var text = [UInt8](repeating: 0, count: 1024)
    defer { mbedtls_platform_zeroize(&text, text.count) }
    try check(mbedtls_pk_write_key_pem(context, &text, text.count))
    return Array(text.prefix { $0 != 0 })
  }

  /// The SubjectPublicKeyInfo in DER, 91 bytes.
  func spki() throws(IdentityError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 128)
    let count = mbedtls_pk_write_pubkey_der(context, &buffer, buffer.count)
    if count < 0 { throw .library(code: count) }
    // mbedTLS writes DER at the end of the buffer.
    let spki = Array(buffer.suffix(Int(count)))
    guard spki.count == NodeCertificate.spkiBytes, spki.starts(with: NodeCertificate.spkiPrefix) else {
      throw .library(code: MBEDTLS_ERR_PK_BAD_INPUT_DATA)
    }
    return spki
  }

  /// A signature over the SHA-256 of `message`, as an ECDSA-Sig-Value in DER.
  func signDER(_ message: [UInt8]) throws(IdentityError) -> [UInt8] {
    let digest = sha256(message)
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

/// A certificate, or the chain that begins with this node's certificate.
package final class Certificate {
  package let context: UnsafeMutablePointer<mbedtls_x509_crt>

  init() {
    context = .allocate(capacity: 1)
    mbedtls_x509_crt_init(context)
  }

  deinit {
    mbedtls_x509_crt_free(context)
    context.deallocate()
  }

  /// Loads the certificates of a PEM file, in order. The file contains at least one certificate. Private keys in the
  /// file are passed over; any other block, and any line that is not understood, is refused.
  func parse(_ pem: [UInt8], path: String) throws(IdentityError) {
    let file = PEMFile(pem)
    let certificates = file.blocks.filter { $0.isLabelled(PEMFile.certificate) }
    guard Self.fault(in: file) == nil, !certificates.isEmpty else { throw .notACertificate(path: path) }
    for block in certificates {
      guard let der = block.der else { throw .notACertificate(path: path) }
      try append(der: der, path: path)
    }
  }

  /// The first part of a stored PEM file that is not understood, with its line; nil if there is none. mbedTLS would
  /// skip that part, which may be the intended certificate.
  static func fault(in file: PEMFile) -> String? {
    if let fault = file.faults.first { return "line \(fault.line): \(fault.text)" }
    for block in file.blocks
    where !block.isLabelled(PEMFile.certificate) && !block.isPrivateKey && !block.isLabelled("EC PARAMETERS") {
      return "line \(block.line): a block that is neither PRIVATE KEY nor CERTIFICATE"
    }
    return nil
  }

  /// Adds a certificate in DER from a file to import. If an extension is not understood, the error contains its name.
  func append(imported der: [UInt8], path: String) throws(IdentityError) {
    // The length is checked here, because mbedTLS's parser ignores bytes after the certificate.
    var reader = DERReader(der[...])
    guard (try? reader.takeAny()) != nil, reader.isEmpty else { throw .unreadableCertificate(path: path) }
    if mbedtls_x509_crt_parse_der(context, der, der.count) == 0 { return }
    if let unknown = X509Extension.unknownCritical(inCertificate: der) {
      throw .unknownCriticalExtension(path: path, name: unknown.text)
    }
    throw .unreadableCertificate(path: path)
  }

  /// Adds a certificate in DER.
  func append(der: [UInt8], path: String) throws(IdentityError) {
    if mbedtls_x509_crt_parse_der(context, der, der.count) != 0 { throw .notACertificate(path: path) }
  }

  /// The SubjectPublicKeyInfo of the first certificate in DER.
  var spki: [UInt8] { Array(UnsafeRawBufferPointer(context.pointee.pk_raw)) }

  /// Whether the first certificate has expired at a time in seconds since 1970.
  func hasExpired(at time: Int64) -> Bool { Self.seconds(context.pointee.valid_to) < time }

  /// Whether the first certificate is valid at a time in seconds since 1970.
  func isValid(at time: Int64) -> Bool { Self.seconds(context.pointee.valid_from) <= time && !hasExpired(at: time) }

  /// The last day of the first certificate's validity, as YYYY-MM-DD.
  var lastDay: String { Self.day(context.pointee.valid_to) }

  /// A date as YYYY-MM-DD.
  static func day(_ last: mbedtls_x509_time) -> String {
    func digits(_ number: CInt) -> String { (number < 10 ? "0" : "") + String(number) }
    return digits(last.year) + "-" + digits(last.mon) + "-" + digits(last.day)
  }

  /// Converts an mbedTLS time to seconds since 1970. mbedTLS counts months from 1. The certificate parser of mbedTLS
  /// rejects values that are out of range.
  package static func seconds(_ time: mbedtls_x509_time) -> Int64 {
    var parts = tm()
    parts.tm_year = time.year - 1900
    parts.tm_mon = time.mon - 1
    parts.tm_mday = time.day
    parts.tm_hour = time.hour
    parts.tm_min = time.min
    parts.tm_sec = time.sec
    return Int64(csystem_timegm(&parts))
  }

  /// Each certificate in DER.
  var ders: [[UInt8]] {
    var all: [[UInt8]] = []
    var next: UnsafeMutablePointer<mbedtls_x509_crt>? = context
    while let certificate = next {
      if certificate.pointee.raw.len > 0 { all.append(Array(UnsafeRawBufferPointer(certificate.pointee.raw))) }
      next = certificate.pointee.next
    }
    return all
  }

  static func pem(_ der: [UInt8]) throws(IdentityError) -> [UInt8] {
    // Base64 is a third longer than DER, and each line of 64 characters ends with a newline.
    var text = [UInt8](repeating: 0, count: der.count * 3 / 2 + 128)
    var count = 0
    try check(
      mbedtls_pem_write_buffer(
        "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n", der, der.count, &text, text.count, &count))
    return Array(text.prefix { $0 != 0 })
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of a field of a parsed certificate or list. The buffer is empty if the field is absent.
  package init(_ field: mbedtls_x509_buf) { self.init(start: field.p, count: field.p == nil ? 0 : field.len) }
}

private func check(_ code: Int32) throws(IdentityError) {
  if code != 0 { throw .library(code: code) }
}

extension Certificate {
  /// Whether this certificate's subject is the issuer that `child` names.
  func isNamed(issuerOf child: Certificate) -> Bool {
    let issuer = UnsafeRawBufferPointer(child.context.pointee.issuer_raw)
    return issuer.elementsEqual(UnsafeRawBufferPointer(context.pointee.subject_raw))
  }

  /// The subject as text.
  var subjectText: String { PeerChain.text(&context.pointee.subject) }

  /// Whether the key of this certificate made the signature of `child`.
  func isSigner(of child: Certificate) -> Bool {
    cmbedtls_begin_checks()
    defer { cmbedtls_end_checks() }
    return cmbedtls_is_issued(child.context, &context.pointee.pk) == 1
  }
}
