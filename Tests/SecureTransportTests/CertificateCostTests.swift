import CMbedTLS
import FileSupport
import Testing

/// The cost of verifying a certificate chain must be bounded, because the chain is verified before the peer is known.
@Suite(.serialized) struct CertificateCostTests {
  let scratch = Scratch()

  /// Verifies the first of these certificates, with the remaining certificates as its chain. The verification is either
  /// as in a handshake, or without an authority. Returns the number of signatures verified.
  private func checks(_ files: [String], inHandshake: Bool = false) throws -> UInt32 {
    var chain = mbedtls_x509_crt()
    mbedtls_x509_crt_init(&chain)
    defer { mbedtls_x509_crt_free(&chain) }
    for file in files {
      let text = try #require(scratch.bytes(file + ".pem")) + [0]
      #expect(mbedtls_x509_crt_parse(&chain, text, text.count) == 0)
    }
    var flags: UInt32 = 0
    cmbedtls_begin_checks()
    defer { cmbedtls_end_checks() }
    if inHandshake {
      #expect(
        mbedtls_x509_crt_verify_restartable(&chain, nil, nil, nil, nil, &flags, { _, _, _, _ in 0 }, nil, nil) == 0)
    } else {
      #expect(mbedtls_x509_crt_verify(&chain, nil, nil, nil, &flags, nil, nil) != 0)
    }
    return cmbedtls_checks()
  }

  /// Whether a signature by this RSA key over a SHA-256 hash is accepted.
  private func isTaken(_ key: String) throws -> Bool {
    try scratch.write("text", [UInt8](repeating: 3, count: 100))
    try scratch.openssl("dgst -sha256 -sign \(key) -out signature text")
    try scratch.openssl("pkey -in \(key) -pubout -out public")
    var context = mbedtls_pk_context()
    mbedtls_pk_init(&context)
    defer { mbedtls_pk_free(&context) }
    let text = try #require(scratch.bytes("public")) + [0]
    #expect(mbedtls_pk_parse_public_key(&context, text, text.count) == 0)
    let message = [UInt8](repeating: 3, count: 100)
    var digest = [UInt8](repeating: 0, count: 32)
    mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), message, message.count, &digest)
    let signature = try #require(scratch.bytes("signature"))
    cmbedtls_begin_checks()
    defer { cmbedtls_end_checks() }
    return mbedtls_pk_verify_ext(
      MBEDTLS_PK_RSA, nil, &context, MBEDTLS_MD_SHA256, digest, 32, signature, signature.count) == 0
  }

  @Test func `a chain is verified up to the cost of two authorities over P-521`() throws {
    for (curve, count) in [("P-384", 4), ("P-521", 2)] as [(String, UInt32)] {
      try scratch.certificate("\(curve)0", extensions: Scratch.authority, algorithm: curve)
      for index in 1...8 {
        try scratch.certificate(
          "\(curve)\(index)", by: "\(curve)\(index - 1)", extensions: Scratch.authority, algorithm: curve)
      }
      try scratch.certificate("\(curve)leaf", by: "\(curve)8", extensions: Scratch.node)
      let before = cmbedtls_cost_of_checks()
      #expect(try checks(["\(curve)leaf"] + (1...8).reversed().map { "\(curve)\($0)" }) == count, "\(curve)")
      #expect(cmbedtls_cost_of_checks() - before == 80, "\(curve)")
    }
  }

  @Test func `a handshake verifies no signature of a chain`() throws {
    try scratch.certificate("top", extensions: Scratch.authority)
    try scratch.certificate("middle", by: "top", extensions: Scratch.authority)
    try scratch.certificate("end", by: "middle", extensions: Scratch.node)
    #expect(try checks(["end", "middle", "top"]) == 2)
    #expect(try checks(["end", "middle", "top"], inHandshake: true) == 0)
  }

  @Test func `eight intermediates are verified`() throws {
    try scratch.certificate("ca0", extensions: Scratch.authority)
    for index in 1...8 { try scratch.certificate("ca\(index)", by: "ca\(index - 1)", extensions: Scratch.authority) }
    try scratch.certificate("deep", by: "ca8", extensions: Scratch.node)
    #expect(try checks(["deep"] + (1...8).reversed().map { "ca\($0)" }) == 8)
  }

  @Test func `a signature by a key on an unsupported curve counts as wrong`() throws {
    for (curve, count) in [("P-256", 1), ("P-384", 1), ("P-521", 1), ("brainpoolP512r1", 0)] as [(String, UInt32)] {
      try scratch.certificate("ca-\(curve)", extensions: Scratch.authority, algorithm: curve)
      try scratch.certificate("leaf-\(curve)", by: "ca-\(curve)", extensions: Scratch.node)
      #expect(try checks(["leaf-\(curve)", "ca-\(curve)"]) == count, "\(curve)")
    }
  }

  @Test func `an RSA key is accepted only with the usual exponent and up to 4096 bits`() throws {
    let large = "1" + String(repeating: "0", count: 30) + "1"
    for (bits, exponent, isTaken) in [(1024, "65537", true), (1024, large, false), (4104, "65537", false)] {
      try scratch.openssl(
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:\(bits) -pkeyopt rsa_keygen_pubexp:\(exponent) -out rsa.key")
      #expect(try self.isTaken("rsa.key") == isTaken, "\(bits) bits, \(exponent)")
    }
  }
}
