import CSystem
import FileSupport
import Testing

@testable import Identity

/// PKCS #12 files made by the openssl command.
struct PKCS12Tests {
  let scratch = Scratch()

  /// Creates a root authority, an intermediate authority, and a node certificate that the intermediate issued.
  init() throws {
    try scratch.makeFleet()
  }

  private func importing(_ file: String, _ password: String) throws(IdentityError) -> NodeIdentity {
    let bytes = try readFile(scratch.file(file), bytesMax: 100_000) ?? []
    return try NodeIdentity.importing(
      bytes, path: file, password: Array(password.utf8), at: Scratch.june, into: StateDirectory(scratch.file("state")))
  }

  private func refusal(_ file: String, _ password: String = "secret") -> PKCS12Error? {
    do throws(IdentityError) {
      _ = try importing(file, password)
    } catch {
      if case .pkcs12(file, let reason) = error { return reason }
    }
    return nil
  }

  private func export(_ options: String, password: String = "secret") throws {
    try scratch.openssl(
      "pkcs12 -export -inkey node.pem.key -in node.pem -certfile chain.pem -out node.p12 -passout 'pass:\(password)' \(options)"
    )
  }

  @Test(arguments: [
    "", "-legacy -certpbe PBE-SHA1-3DES", "-macalg sha1", "-macalg sha512", "-macalg sha384 -certpbe AES-128-CBC",
    "-keypbe NONE -certpbe NONE", "-iter 100000", "-nomaciter", "-keypbe PBE-SHA1-3DES -certpbe AES-256-CBC",
  ])
  func `a file that OpenSSL exported becomes the identity`(options: String) throws {
    try export(options)
    let identity = try importing("node.p12", "secret")
    try scratch.openssl("pkey -in node.pem.key -pubout -outform DER -out spki.der")
    #expect(try scratch.openssl("dgst -sha256 -r spki.der").hasPrefix(hex(identity.id)))
    // The chain has three certificates: the node's certificate, its issuer, and the root.
    let text = String(decoding: try identity.pem(withKey: false), as: UTF8.self)
    #expect(text.components("BEGIN CERTIFICATE") == 3)
    try scratch.write("out.pem", text)
    #expect(try scratch.openssl("x509 -in out.pem -noout -subject").contains("CN = node"))
    #expect(try scratch.openssl("verify -CAfile root.pem -untrusted out.pem out.pem").contains("OK"))
    // The next start of the daemon loads the imported identity.
    #expect(try NodeIdentity.loadOrCreate(directory: scratch.file("state")).id == identity.id)
  }

  @Test(arguments: ["", "pässwörd €", "a password that is longer than thirty-one characters, the limit of mbedTLS"])
  func `a password may be any UTF-8 text`(password: String) throws {
    try export("", password: password)
    #expect((try? importing("node.p12", password)) != nil)
    try export("-legacy -certpbe PBE-SHA1-3DES", password: password)
    #expect((try? importing("node.p12", password)) != nil)
  }

  @Test func `a wrong password is reported and changes nothing`() throws {
    try export("")
    let before = try NodeIdentity.loadOrCreate(directory: scratch.file("state")).id
    for password in ["", "Secret", "secret "] { #expect(refusal("node.p12", password) == .wrongPassword) }
    #expect(try NodeIdentity.loadOrCreate(directory: scratch.file("state")).id == before)
    #expect(PKCS12Error.wrongPassword.text.description.contains("password"))
  }

  @Test func `a file truncated at any length is reported as truncated`() throws {
    try export("")
    let whole = try #require(scratch.bytes("node.p12"))
    for count in 1..<whole.count {
      try scratch.write("cut.p12", Array(whole[..<count]))
      #expect(refusal("cut.p12") == .truncated)
    }
  }

  @Test func `no changed byte traps, and the MAC detects each change of the content`() throws {
    try export("")
    let whole = try #require(scratch.bytes("node.p12"))
    for index in whole.indices {
      var changed = whole
      changed[index] ^= 0x20
      // A change is an error, or the changed byte has no meaning and the contents are the same.
      let contents = try? PKCS12.open(changed, password: Array("secret".utf8))
      if let contents { #expect(contents.certificates.count == 3, "byte \(index)") }
    }
  }

  @Test func `a file without a MAC is refused`() throws {
    try export("-nomac")
    #expect(refusal("node.p12") == .noMAC)
  }

  @Test func `a file without a key is refused`() throws {
    try scratch.openssl("pkcs12 -export -nokeys -in chain.pem -out node.p12 -passout pass:secret")
    #expect(refusal("node.p12") == .noKey)
  }

  @Test func `a certificate of another key is refused`() throws {
    // OpenSSL refuses to create a PKCS #12 file whose certificates do not fit the key. So the test combines a key with
    // the certificates of the authorities.
    try scratch.openssl("pkcs12 -export -inkey node.pem.key -in node.pem -out a.p12 -passout pass:secret")
    try scratch.openssl("pkcs12 -in a.p12 -nodes -nocerts -passin pass:secret -out only.key")
    let text = String(decoding: scratch.bytes("only.key")! + scratch.bytes("chain.pem")!, as: UTF8.self)
    try scratch.write("mixed.pem", text)
    #expect(throws: IdentityError.noCertificateForKey(path: "mixed.pem")) { try importing("mixed.pem", "") }
  }

  @Test(arguments: ["ec -pkeyopt ec_paramgen_curve:P-384", "rsa -pkeyopt rsa_keygen_bits:2048"])
  func `a key of another kind is refused`(kind: String) throws {
    try scratch.openssl("genpkey -algorithm \(kind) -out other.key")
    try scratch.openssl("req -new -x509 -key other.key -subj /CN=other -days 1 -out other.pem")
    try scratch.openssl("pkcs12 -export -inkey other.key -in other.pem -out other.p12 -passout pass:secret")
    #expect(throws: IdentityError.notP256(path: "other.p12")) { try importing("other.p12", "secret") }
  }

  @Test func `certificates encrypted by RC2 are refused with the command that converts them`() throws {
    try export("-legacy -certpbe PBE-SHA1-RC2-40")
    let error = try #require(refusal("node.p12"))
    #expect(error.text.description.contains("RC2"))
    #expect(error.text.description.contains("openssl pkcs12 -legacy"))
  }

  @Test func `more key derivation rounds than the limit are refused at once`() throws {
    try export("-iter 8000001")
    #expect(refusal("node.p12") == .tooManyIterations)
    // The limit is for the sum of the iterations of the MAC, the certificates and the key.
    try export("-iter 2800000")
    #expect(refusal("node.p12") == .tooManyIterations)
  }

  @Test func `indefinite lengths and strings in parts are decoded`() throws {
    try export("")
    let whole = try #require(scratch.bytes("node.p12"))
    for partBytes in [1 << 20, 100, 7] {
      try scratch.write("ber.p12", ber(whole[...], partBytes))
      #expect(try importing("ber.p12", "secret").id == importing("node.p12", "secret").id)
    }
    let changed = ber(whole[...], 100)
    for count in 1..<changed.count {
      #expect(throws: PKCS12Error.truncated) {
        try PKCS12.open(Array(changed[..<count]), password: Array("secret".utf8))
      }
    }
  }

  /// Converts DER to BER. Constructed elements get an indefinite length, and each octet string is split into parts of
  /// `partBytes`.
  private func ber(_ der: ArraySlice<UInt8>, _ partBytes: Int) -> [UInt8] {
    var reader = DERReader(der)
    var all: [UInt8] = []
    while let tag = reader.rest.first, let element = try? reader.takeAny() {
      if tag & 0x20 != 0 {
        all += [tag, 0x80] + ber(element.contents, partBytes) + [0, 0]
      } else if tag == 0x04 && element.contents.count > partBytes {
        all += [0x24, 0x80]
        var rest = element.contents
        while !rest.isEmpty {
          let part = rest.prefix(partBytes)
          all += [0x04, UInt8(part.count)] + part
          rest = rest.dropFirst(partBytes)
        }
        all += [0, 0]
      } else {
        all += element.whole
      }
    }
    return all
  }

  @Test func `a file that is not PKCS 12 is refused`() throws {
    for (bytes, expected) in [
      ([0x30, 0x00], .truncated), ([0x30, 0x03, 0x02, 0x01, 0x03], .truncated),
      ([0x30, 0x03, 0x02, 0x01, 0x02], .notPKCS12), ([0x30, 0x80, 0x02, 0x01, 0x03, 0, 0], .truncated),
      ([0x30, 0x80, 0x02, 0x01, 0x03], .truncated), ([0x02, 0x80, 0, 0], .notPKCS12),
      ([UInt8](repeating: 0x30, count: 1) + [0x80] + (0..<40).flatMap { _ in [0x30, 0x80] }, .notPKCS12),
      ([0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], .notPKCS12), ([0x30, 0x83, 0xFF, 0xFF, 0xFF], .truncated),
    ] as [([UInt8], PKCS12Error)] {
      #expect(throws: expected) { try PKCS12.open(bytes, password: []) }
    }
    #expect(throws: PKCS12Error.tooLarge) { try PKCS12.open([UInt8](repeating: 0x30, count: 65537), password: []) }
    let long = [UInt8](repeating: 0x61, count: 257)
    #expect(throws: PKCS12Error.unusablePassword) { try PKCS12.open([0x30, 0], password: long) }
    #expect(throws: PKCS12Error.unusablePassword) { try PKCS12.open([0x30, 0], password: [0xFF]) }
  }

  /// RFC 7292 contains no test vectors. The vectors in this test are those that OpenSSL and Bouncy Castle use.
  @Test func `the key derivation matches known vectors`() throws {
    let sha1 = try PKCS12Key.hash(of: [0x2B, 0x0E, 0x03, 0x02, 0x1A])
    let smeg = try #require(PKCS12Key.bmpString(Array("smeg".utf8)))
    #expect(
      hex(PKCS12Key.derive(.key, sha1, smeg, [0x0A, 0x58, 0xCF, 0x64, 0x53, 0x0D, 0x82, 0x3F], 1, byteCount: 24))
        == "8aaae6297b6cb04642ab5b077851284eb7128f1a2a7fbca3")
    #expect(
      hex(
        PKCS12Key.derive(
          .initializationVector, sha1, smeg, [0x0A, 0x58, 0xCF, 0x64, 0x53, 0x0D, 0x82, 0x3F], 1, byteCount: 8))
        == "79993dfe048d3b76")
    let queeg = try #require(PKCS12Key.bmpString(Array("queeg".utf8)))
    #expect(
      hex(PKCS12Key.derive(.mac, sha1, queeg, [0x26, 0x32, 0x16, 0xFC, 0xC2, 0xFA, 0xB3, 0x1C], 1000, byteCount: 20))
        == "5ec4c7a80df652294c3925b6489a7ab857c83476")
  }

  @Test func `an encrypted PEM file that requires minutes of key derivation is refused at once`() throws {
    // openssl would need 10 s to make a file with so many iterations. So openssl makes a file with few iterations, and
    // the test changes the number in the file.
    for options in ["-iter 999999", "-v1 PBE-SHA1-3DES -iter 999999"] {
      try scratch.openssl("pkcs8 -topk8 -in node.pem.key -outform DER -out locked.der -passout pass:secret \(options)")
      var der = try #require(scratch.bytes("locked.der"))
      let rounds: [UInt8] = [0x02, 0x03, 0x0F, 0x42, 0x3F]
      let offset = try #require(der.indices.first { der[$0...].starts(with: rounds) })
      der[offset + 2] = 0x7F
      try scratch.write("locked.der", der)
      try scratch.openssl(
        "base64 -in locked.der -out body && (echo -----BEGIN ENCRYPTED PRIVATE KEY-----; cat body; "
          + "echo -----END ENCRYPTED PRIVATE KEY-----) > locked.key")
      let start = ContinuousClock.now
      #expect(throws: IdentityError.tooManyIterations(path: "locked.key")) { try importing("locked.key", "secret") }
      #expect(ContinuousClock.now - start < .seconds(5))
    }
  }

  @Test func `an Ed25519 key is reported as the wrong kind`() throws {
    try scratch.openssl("genpkey -algorithm ed25519 -out other.key")
    #expect(throws: IdentityError.notP256(path: "other.key")) { try importing("other.key", "") }
    try scratch.openssl("req -new -x509 -key other.key -subj /CN=other -days 1 -out other.pem")
    try scratch.openssl("pkcs12 -export -inkey other.key -in other.pem -out other.p12 -passout pass:secret")
    #expect(throws: IdentityError.notP256(path: "other.p12")) { try importing("other.p12", "secret") }
  }

  @Test func `keys and certificates in DER are refused with the command that converts them`() throws {
    try scratch.openssl("pkey -in node.pem.key -outform DER -out pkcs8.der")
    try scratch.openssl("ec -in node.pem.key -outform DER -out sec1.der")
    try scratch.openssl("pkcs8 -topk8 -in node.pem.key -outform DER -out locked.der -passout pass:secret")
    try scratch.openssl("x509 -in node.pem -outform DER -out node.der")
    for (file, kind) in [("pkcs8.der", "pkey"), ("sec1.der", "pkey"), ("locked.der", "pkcs8"), ("node.der", "x509")] {
      do throws(IdentityError) {
        _ = try importing(file, "secret")
        Issue.record("\(file) was taken")
      } catch {
        #expect(error.text.contains("DER; convert it to PEM with: openssl \(kind) -inform DER"), "\(error.text)")
        // The error comes before the question for a password, because the file is not recognised as encrypted.
        let bytes = try #require(scratch.bytes(file))
        #expect(throws: IdentityError.self) { try NodeIdentity.isEncrypted(bytes, path: file) }
      }
    }
    try export("")
    #expect(try NodeIdentity.isEncrypted(try #require(scratch.bytes("node.p12")), path: "node.p12"))
  }

  @Test func `a directory, and a certificate without a key, are reported as such`() throws {
    #expect(throws: IdentityError.notAFile(path: scratch.path)) { try readFile(scratch.path, bytesMax: 100) }
    #expect(throws: IdentityError.noPrivateKey(path: "node.pem")) { try importing("node.pem", "") }
  }

  @Test func `an encrypted PEM file is opened by its password`() throws {
    try scratch.openssl("pkcs8 -topk8 -in node.pem.key -out locked.key -passout pass:secret")
    #expect((try? importing("locked.key", "secret")) != nil)
    #expect(throws: IdentityError.passwordNeeded(path: "locked.key")) { try importing("locked.key", "") }
    #expect(throws: IdentityError.wrongPassword(path: "locked.key")) { try importing("locked.key", "other") }
  }
}

extension String {
  /// The number of times that `text` occurs in this string.
  fileprivate func components(_ text: String) -> Int { shellCount(self, text) }
}

private func shellCount(_ whole: String, _ part: String) -> Int {
  let whole = Array(whole.utf8), part = Array(part.utf8)
  return whole.indices.count { whole[$0...].starts(with: part) }
}
