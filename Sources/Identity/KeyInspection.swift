import CMbedTLS

/// Inspects the outer structure of a private key file before mbedTLS parses the file. mbedTLS returns the same error
/// for many kinds of key, and runs as many key derivation iterations as a file demands.
enum KeyInspection {
  /// Throws `.tooManyIterations` for an encrypted key whose decryption would take minutes. Throws `.notP256` for a PKCS
  /// #8 key of another algorithm (Ed25519, RSA). Files of unknown structure pass this check, and mbedTLS decides about
  /// them.
  static func check(_ file: [UInt8], path: String) throws(IdentityError) {
    if file.first == 0x30 {
      if isOtherAlgorithm(file) { throw .notP256(path: path) }
    } else if let encrypted = pem(file, "ENCRYPTED PRIVATE KEY") {
      let rounds: Int
      do throws(PKCS12Error) {
        rounds = try iterations(encrypted)
      } catch {
        // mbedTLS refuses unsupported algorithms immediately, so the number of iterations does not matter.
        if case .unsupported = error { return }
        throw .notAPrivateKey(path: path)
      }
      if rounds > PKCS12.iterationsMax { throw .tooManyIterations(path: path) }
    } else if let plain = pem(file, "PRIVATE KEY"), isOtherAlgorithm(plain) {
      throw .notP256(path: path)
    }
  }

  /// The DER of the first PEM block with this label (RFC 7468), or nil if the file has no such block.
  private static func pem(_ file: [UInt8], _ label: String) -> [UInt8]? {
    var context = mbedtls_pem_context()
    mbedtls_pem_init(&context)
    defer { mbedtls_pem_free(&context) }
    var used = 0
    let begin = "-----BEGIN \(label)-----", end = "-----END \(label)-----"
    guard mbedtls_pem_read_buffer(&context, begin, end, file + [0], nil, 0, &used) == 0 else { return nil }
    var count = 0
    guard let bytes = mbedtls_pem_get_buffer(&context, &count) else { return nil }
    return Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  /// Whether `der` is a PrivateKeyInfo (RFC 5208, section 5) with an algorithm other than id-ecPublicKey.
  private static func isOtherAlgorithm(_ der: [UInt8]) -> Bool {
    var reader = DERReader(der[...])
    guard var key = try? reader.enter(DERReader.sequence), (try? key.number()) != nil,
      var algorithm = try? key.enter(DERReader.sequence),
      let name = try? algorithm.take(DERReader.objectIdentifier)
    else { return false }
    return !name.elementsEqual([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01])
  }

  /// The iteration count in an EncryptedPrivateKeyInfo (RFC 5208, section 6). The encryption must be PBES2 with PBKDF2,
  /// or a PBE of PKCS #5 or #12.
  private static func iterations(_ der: [UInt8]) throws(PKCS12Error) -> Int {
    var reader = DERReader(der[...])
    var encrypted = try reader.enter(DERReader.sequence)
    var algorithm = try encrypted.enter(DERReader.sequence)
    let name = try algorithm.take(DERReader.objectIdentifier)
    let parameters = try algorithm.takeAny().whole
    if matches(name, .pbes2) { return try PKCS12.pbkdf2Iterations(parameters) }
    var outer = DERReader(parameters)
    var pbe = try outer.enter(DERReader.sequence)
    _ = try pbe.take(DERReader.octetString)
    return try pbe.number()
  }
}

/// The name of the openssl command that reads a DER file which is not PKCS #12. The file is a private key (SEC 1, PKCS
/// #1, PKCS #8, encrypted PKCS #8) or a certificate. Returns nil for PKCS #12, PEM, and any other file.
func bareDERKind(_ file: [UInt8]) -> String? {
  var reader = DERReader(file[...])
  guard var outer = try? reader.enter(DERReader.sequence), let first = outer.rest.first else { return nil }
  if first == DERReader.integer {
    guard let version = try? outer.number() else { return nil }
    // A PKCS #12 file has version 3 (RFC 7292, section 4), and a private key has version 0 or 1.
    return version == 3 ? nil : "pkey"
  }
  guard first == DERReader.sequence, var inner = try? outer.enter(DERReader.sequence) else { return nil }
  // An object identifier here begins the AlgorithmIdentifier of an EncryptedPrivateKeyInfo. Other elements are fields
  // of a TBSCertificate.
  return inner.rest.first == DERReader.objectIdentifier ? "pkcs8" : (try? inner.takeAny()) != nil ? "x509" : nil
}
