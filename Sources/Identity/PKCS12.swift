import CMbedTLS

/// Reads the common form of PKCS #12 (RFC 7292): one private key and its certificates, protected by a password. mbedTLS
/// has no parser for PKCS #12.
///
/// Supported are password integrity (MAC with SHA-1, SHA-256, SHA-384 or SHA-512), and plaintext or encrypted contents
/// in DER or BER (`BERElement`). Supported ciphers are PBES2 (OpenSSL 3: PBKDF2 and AES-CBC) and the older
/// pbeWithSHAAnd3-KeyTripleDES-CBC. Contents that the MAC covers are parsed only after the MAC is verified. All
/// processing that takes time or memory has a limit.
struct PKCS12 {
  static let bytesMax = 65_536
  /// The maximum number of key derivation iterations for all parts of one file together. This many iterations take a
  /// minute on a small board. GnuTLS and NSS use 600,000 iterations for each part, and GnuTLS writes the same key
  /// several times.
  static let iterationsMax = 8_000_000
  static let passwordBytesMax = 256
  /// The maximum number of parts (ContentInfo structures and bags) that are parsed. The file of an identity has only a
  /// few parts.
  static let partsMax = 64

  /// The private key and the certificates of a file.
  struct Contents {
    /// A PKCS #8 PrivateKeyInfo in DER.
    var key: [UInt8]
    /// The X.509 certificates in DER, in the order of the file.
    var certificates: [[UInt8]]
  }

  private let password: [UInt8]
  /// The password as a BMPString with a terminating zero (RFC 7292, appendix B.1).
  private let widePassword: [UInt8]
  private var iterationsLeft = PKCS12.iterationsMax
  private var partsLeft = PKCS12.partsMax
  private var keys: [[UInt8]] = []
  private var certificates: [[UInt8]] = []

  /// Reads a file. `password` is in UTF-8. Throws if the file is malformed or the password is wrong.
  static func open(_ file: [UInt8], password: [UInt8]) throws(PKCS12Error) -> Contents {
    if file.count > bytesMax { throw .tooLarge }
    guard password.count <= passwordBytesMax, let wide = PKCS12Key.bmpString(password) else { throw .unusablePassword }
    var reader = PKCS12(password: password, widePassword: wide)
    try reader.read(file)
    guard let key = reader.keys.first else { throw .noKey }
    if reader.keys.count > 1 { throw .severalKeys }
    return Contents(key: key, certificates: reader.certificates)
  }

  private init(password: [UInt8], widePassword: [UInt8]) {
    self.password = password
    self.widePassword = widePassword
  }

  /// Reads a PFX (RFC 7292, section 4), whose fields are the version 3, authSafe and macData.
  private mutating func read(_ file: [UInt8]) throws(PKCS12Error) {
    let der = try BERElement.der(file[...])
    var outer = DERReader(der[...])
    var pfx = try outer.enter(DERReader.sequence)
    if try pfx.number() != 3 { throw .notPKCS12 }
    var authSafe = try pfx.enter(DERReader.sequence)
    // If the file is protected by a signature instead of a password, the type is not `data`.
    if !matches(try authSafe.take(DERReader.objectIdentifier), .data) || pfx.isEmpty { throw .noMAC }
    var content = try authSafe.enter(DERReader.context0)
    let safes = try content.take(DERReader.octetString)
    try checkMAC(try pfx.enter(DERReader.sequence), over: safes)
    try readSafes(safes)
  }

  // MARK: Integrity

  /// Verifies the MacData, whose fields are DigestInfo, salt and iterations (1 if absent).
  private mutating func checkMAC(_ macData: DERReader, over safes: ArraySlice<UInt8>) throws(PKCS12Error) {
    var macData = macData
    var digestInfo = try macData.enter(DERReader.sequence)
    var algorithm = try digestInfo.enter(DERReader.sequence)
    let hash = try PKCS12Key.hash(of: try algorithm.take(DERReader.objectIdentifier))
    let expected = Array(try digestInfo.take(DERReader.octetString))
    let salt = Array(try macData.take(DERReader.octetString))
    try spend(macData.isEmpty ? 1 : try macData.number())
    let rounds = lastIterations
    let key = PKCS12Key.derive(.mac, hash, widePassword, salt, rounds, byteCount: hash.byteCount)
    var computed = [UInt8](repeating: 0, count: hash.byteCount)
    let safes = Array(safes)
    let code = mbedtls_md_hmac(mbedtls_md_info_from_type(hash.type), key, key.count, safes, safes.count, &computed)
    guard code == 0, expected.count == computed.count,
      mbedtls_ct_memcmp(expected, computed, computed.count) == 0
    else { throw .wrongPassword }
  }

  // MARK: Contents

  /// Reads the AuthenticatedSafe: a sequence of ContentInfo structures, which are plain or encrypted.
  private mutating func readSafes(_ bytes: ArraySlice<UInt8>) throws(PKCS12Error) {
    let der = try BERElement.der(bytes)
    var whole = DERReader(der[...])
    var safes = try whole.enter(DERReader.sequence)
    while !safes.isEmpty {
      try countPart()
      var info = try safes.enter(DERReader.sequence)
      let type = try info.take(DERReader.objectIdentifier)
      var content = try info.enter(DERReader.context0)
      if matches(type, .data) {
        try readBags(try content.take(DERReader.octetString))
      } else if matches(type, .encryptedData) {
        var encrypted = try content.enter(DERReader.sequence)
        _ = try encrypted.number()
        var inner = try encrypted.enter(DERReader.sequence)
        _ = try inner.take(DERReader.objectIdentifier)
        let algorithm = try inner.takeAny().whole
        try readBags(try decrypt(try encryptedContent(&inner)[...], algorithm)[...])
      } else {
        throw .unsupported(name: "its contents are encrypted with a public key, not with a password: not supported")
      }
    }
  }

  /// The encryptedContent of an EncryptedContentInfo (RFC 5652, section 6.1). The field is `[0]`, an octet string that
  /// is in one piece or in parts.
  private func encryptedContent(_ info: inout DERReader) throws(PKCS12Error) -> [UInt8] {
    if info.rest.first != DERReader.context0 { return Array(try info.take(DERReader.context0Primitive)) }
    var parts = try info.enter(DERReader.context0)
    var content: [UInt8] = []
    while !parts.isEmpty { content += try parts.take(DERReader.octetString) }
    return content
  }

  /// Reads the SafeContents: a sequence of bags. Bags with CRLs, secrets or nested contents are skipped.
  private mutating func readBags(_ bytes: ArraySlice<UInt8>) throws(PKCS12Error) {
    let der = try BERElement.der(bytes)
    var whole = DERReader(der[...])
    var bags = try whole.enter(DERReader.sequence)
    while !bags.isEmpty {
      try countPart()
      var bag = try bags.enter(DERReader.sequence)
      let type = try bag.take(DERReader.objectIdentifier)
      var value = try bag.enter(DERReader.context0)
      if matches(type, .keyBag) {
        add(key: Array(try value.takeAny().whole))
      } else if matches(type, .shroudedKeyBag) {
        // The bag contains an EncryptedPrivateKeyInfo (RFC 5208, section 6).
        var encrypted = try value.enter(DERReader.sequence)
        let algorithm = try encrypted.takeAny().whole
        add(key: try decrypt(try encrypted.take(DERReader.octetString), algorithm))
      } else if matches(type, .certBag) {
        var certBag = try value.enter(DERReader.sequence)
        guard matches(try certBag.take(DERReader.objectIdentifier), .x509Certificate) else { continue }
        var certificate = try certBag.enter(DERReader.context0)
        certificates.append(Array(try certificate.take(DERReader.octetString)))
      }
    }
  }

  /// Adds a key unless it is already present, because a file may contain the same key several times.
  private mutating func add(key: [UInt8]) {
    if !keys.contains(key) { keys.append(key) }
  }

  private mutating func decrypt(
    _ bytes: ArraySlice<UInt8>, _ algorithm: ArraySlice<UInt8>
  ) throws(PKCS12Error) -> [UInt8] {
    var whole = DERReader(algorithm)
    var identifier = try whole.enter(DERReader.sequence)
    let name = try identifier.take(DERReader.objectIdentifier)
    let parameters = try identifier.takeAny().whole
    if matches(name, .pbes2) {
      try spend(try Self.pbkdf2Iterations(parameters))
      return try PKCS12Key.decryptPBES2(Array(bytes), Array(try DERReader.contents(parameters)), password: password)
    }
    if matches(name, .tripleDES) {
      var reader = DERReader(parameters)
      var pbe = try reader.enter(DERReader.sequence)
      let salt = Array(try pbe.take(DERReader.octetString))
      try spend(try pbe.number())
      return try PKCS12Key.decryptTripleDES(Array(bytes), widePassword, salt, lastIterations)
    }
    if matches(name, .rc2) || matches(name, .rc2Long) {
      throw .unsupported(
        name: """
          its certificates are encrypted with RC2, which is broken and not supported; convert it with OpenSSL 3: \
          openssl pkcs12 -legacy -in FILE -nodes | openssl pkcs12 -export -out NEW
          """)
    }
    throw .unsupported(name: "encrypted with a cipher other than PBES2 with AES and triple DES; export it again")
  }

  /// The iteration count in PBES2-params (RFC 8018, appendix A.4): keyDerivationFunc PBKDF2 { salt, iterationCount, …
  /// }, encryptionScheme.
  static func pbkdf2Iterations(_ parameters: ArraySlice<UInt8>) throws(PKCS12Error) -> Int {
    var reader = DERReader(parameters)
    var sequence = try reader.enter(DERReader.sequence)
    var function = try sequence.enter(DERReader.sequence)
    guard matches(try function.take(DERReader.objectIdentifier), .pbkdf2) else {
      throw .unsupported(name: "a key derivation other than PBKDF2; export it again")
    }
    var derivation = try function.enter(DERReader.sequence)
    _ = try derivation.take(DERReader.octetString)
    return try derivation.number()
  }

  // MARK: Limits

  private var lastIterations = 0

  private mutating func spend(_ iterations: Int) throws(PKCS12Error) {
    if iterations < 1 { throw .notPKCS12 }
    if iterations > iterationsLeft { throw .tooManyIterations }
    iterationsLeft -= iterations
    lastIterations = iterations
  }

  private mutating func countPart() throws(PKCS12Error) {
    if partsLeft == 0 { throw .notPKCS12 }
    partsLeft -= 1
  }
}

/// The object identifiers in PKCS #12 files that are recognised.
enum ObjectName {
  /// 1.2.840.113549.1.7.1 and .6
  case data, encryptedData
  /// 1.2.840.113549.1.12.10.1.1, .2 and .3
  case keyBag, shroudedKeyBag, certBag
  /// 1.2.840.113549.1.9.22.1
  case x509Certificate
  /// 1.2.840.113549.1.5.13 and .12
  case pbes2, pbkdf2
  /// 1.2.840.113549.1.12.1.3, .6 and .5
  case tripleDES, rc2, rc2Long
  /// 1.3.14.3.2.26, 2.16.840.1.101.3.4.2.1, .2 and .3
  case sha1, sha256, sha384, sha512

  /// The DER of the identifier without tag and length: the number of bytes, and the bytes as one big-endian number in
  /// two halves. The bytes are not an array, because Swift 6.3.1 duplicates constant arrays of an internal function in
  /// other modules of an Embedded program. The copies then compare unequal.
  fileprivate var value: (count: Int, high: UInt64, low: UInt64) {
    switch self {
    case .data: (9, 0x2A, 0x8648_86F7_0D01_0701)
    case .encryptedData: (9, 0x2A, 0x8648_86F7_0D01_0706)
    case .keyBag: (11, 0x2A_8648, 0x86F7_0D01_0C0A_0101)
    case .shroudedKeyBag: (11, 0x2A_8648, 0x86F7_0D01_0C0A_0102)
    case .certBag: (11, 0x2A_8648, 0x86F7_0D01_0C0A_0103)
    case .x509Certificate: (10, 0x2A86, 0x4886_F70D_0109_1601)
    case .pbes2: (9, 0x2A, 0x8648_86F7_0D01_050D)
    case .pbkdf2: (9, 0x2A, 0x8648_86F7_0D01_050C)
    case .tripleDES: (10, 0x2A86, 0x4886_F70D_010C_0103)
    case .rc2: (10, 0x2A86, 0x4886_F70D_010C_0106)
    case .rc2Long: (10, 0x2A86, 0x4886_F70D_010C_0105)
    case .sha1: (5, 0, 0x2B_0E03_021A)
    case .sha256: (9, 0x60, 0x8648_0165_0304_0201)
    case .sha384: (9, 0x60, 0x8648_0165_0304_0202)
    case .sha512: (9, 0x60, 0x8648_0165_0304_0203)
    }
  }
}

func matches(_ identifier: ArraySlice<UInt8>, _ name: ObjectName) -> Bool {
  var high: UInt64 = 0, low: UInt64 = 0
  for byte in identifier.prefix(16) {
    high = high << 8 | low >> 56
    low = low << 8 | UInt64(byte)
  }
  return (identifier.count, high, low) == name.value
}
