import CMbedTLS

/// The key derivation and decryption of PKCS #12.
enum PKCS12Key {
  /// The use of the derived bytes (RFC 7292, appendix B.3).
  enum Purpose: UInt8 {
    case key = 1
    case initializationVector = 2
    case mac = 3
  }

  /// A hash function with its output and block sizes in bytes.
  struct Hash {
    var type: mbedtls_md_type_t
    var byteCount: Int
    var blockBytes: Int
  }

  static func hash(of name: ArraySlice<UInt8>) throws(PKCS12Error) -> Hash {
    if matches(name, .sha256) { return Hash(type: MBEDTLS_MD_SHA256, byteCount: 32, blockBytes: 64) }
    if matches(name, .sha1) { return Hash(type: MBEDTLS_MD_SHA1, byteCount: 20, blockBytes: 64) }
    if matches(name, .sha384) { return Hash(type: MBEDTLS_MD_SHA384, byteCount: 48, blockBytes: 128) }
    if matches(name, .sha512) { return Hash(type: MBEDTLS_MD_SHA512, byteCount: 64, blockBytes: 128) }
    throw .unsupported(name: "a MAC other than SHA-1, SHA-256, SHA-384 or SHA-512; export it with -macalg sha256")
  }

  /// Converts UTF-8 to a BMPString with a terminating zero: UTF-16, big-endian (RFC 7292, appendix B.1). Returns nil
  /// for invalid UTF-8.
  static func bmpString(_ utf8: [UInt8]) -> [UInt8]? {
    var decoder = UTF8()
    var iterator = utf8.makeIterator()
    var wide: [UInt8] = []
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        for unit in UTF16.encode(scalar)! { wide += [UInt8(unit >> 8), UInt8(unit & 0xFF)] }
      case .emptyInput: return wide + [0, 0]
      case .error: return nil
      }
    }
  }

  /// Derives bytes from a password (RFC 7292, appendix B.2). mbedTLS's own function supports no password longer than 31
  /// characters.
  static func derive(
    _ purpose: Purpose, _ hash: Hash, _ password: [UInt8], _ salt: [UInt8], _ iterations: Int, byteCount: Int
  ) -> [UInt8] {
    let v = hash.blockBytes
    let diversifier = [UInt8](repeating: purpose.rawValue, count: v)
    var input = repeated(salt, toMultipleOf: v) + repeated(password, toMultipleOf: v)
    let info = mbedtls_md_info_from_type(hash.type)
    var derived: [UInt8] = []
    var digest = [UInt8](repeating: 0, count: hash.byteCount)
    while derived.count < byteCount {
      let first = diversifier + input
      mbedtls_md(info, first, first.count, &digest)
      for _ in 1..<max(iterations, 1) {
        digest.withUnsafeMutableBufferPointer { buffer in
          _ = mbedtls_md(info, buffer.baseAddress, buffer.count, buffer.baseAddress)
        }
      }
      derived += digest
      let block = repeated(digest, toMultipleOf: v).prefix(v)
      for start in stride(from: 0, to: input.count, by: v) { addOneAnd(block, to: &input, at: start) }
    }
    return Array(derived.prefix(byteCount))
  }

  /// Decrypts PBES2 (RFC 8018, section 6.2). `parameters` is the PBES2-params structure in DER without tag and length.
  static func decryptPBES2(
    _ bytes: [UInt8], _ parameters: [UInt8], password: [UInt8]
  ) throws(PKCS12Error) -> [UInt8] {
    var plain = [UInt8](repeating: 0, count: bytes.count + 16)
    var count = 0
    var parameters = parameters
    let code = parameters.withUnsafeMutableBufferPointer { buffer in
      var field = mbedtls_asn1_buf(
        tag: MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE, len: buffer.count, p: buffer.baseAddress)
      return mbedtls_pkcs5_pbes2_ext(
        &field, Int32(MBEDTLS_DECRYPT.rawValue), password, password.count, bytes, bytes.count, &plain, plain.count,
        &count)
    }
    switch code {
    case 0: return Array(plain.prefix(count))
    case MBEDTLS_ERR_PKCS5_FEATURE_UNAVAILABLE:
      throw .unsupported(
        name: "encrypted with a cipher other than AES-CBC; export it with -keypbe and -certpbe AES-256-CBC")
    case MBEDTLS_ERR_PKCS5_PASSWORD_MISMATCH: throw .wrongPassword
    default: throw .notPKCS12
    }
  }

  /// Decrypts pbeWithSHAAnd3-KeyTripleDES-CBC (RFC 7292, appendix C). The padding is that of RFC 8018.
  static func decryptTripleDES(
    _ bytes: [UInt8], _ password: [UInt8], _ salt: [UInt8], _ iterations: Int
  ) throws(PKCS12Error) -> [UInt8] {
    guard !bytes.isEmpty, bytes.count % 8 == 0 else { throw .notPKCS12 }
    let sha1 = Hash(type: MBEDTLS_MD_SHA1, byteCount: 20, blockBytes: 64)
    let key = derive(.key, sha1, password, salt, iterations, byteCount: 24)
    var vector = derive(.initializationVector, sha1, password, salt, iterations, byteCount: 8)
    var context = mbedtls_des3_context()
    mbedtls_des3_init(&context)
    defer { mbedtls_des3_free(&context) }
    var plain = [UInt8](repeating: 0, count: bytes.count)
    guard mbedtls_des3_set3key_dec(&context, key) == 0,
      mbedtls_des3_crypt_cbc(&context, MBEDTLS_DES_DECRYPT, bytes.count, &vector, bytes, &plain) == 0
    else { throw .notPKCS12 }
    let padding = Int(plain.last!)
    guard (1...8).contains(padding), plain.suffix(padding).allSatisfy({ Int($0) == padding }) else {
      throw .wrongPassword
    }
    return Array(plain.dropLast(padding))
  }

  private static func repeated(_ bytes: [UInt8], toMultipleOf v: Int) -> [UInt8] {
    if bytes.isEmpty { return [] }
    return (0..<(bytes.count + v - 1) / v * v).map { bytes[$0 % bytes.count] }
  }

  /// Adds `block` and 1 to the v bytes of `input` at `start`, as big-endian numbers modulo 2^(8v).
  private static func addOneAnd(_ block: ArraySlice<UInt8>, to input: inout [UInt8], at start: Int) {
    var carry = 1
    for index in (0..<block.count).reversed() {
      carry += Int(input[start + index]) + Int(block[block.startIndex + index])
      input[start + index] = UInt8(carry & 0xFF)
      carry >>= 8
    }
  }
}
