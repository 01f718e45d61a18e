import CMbedTLS
import Testing

/// Signatures as verified in handshakes and certificates, by `mbedtls_pk_verify`. The valid signatures are the vectors
/// of RFC 6979, A.2.5 (P-256).
@Suite struct CertificateSignatureTests {
  private static let point = number(
    "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
      + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
  private static let sha256 = der(
    "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
    "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
  private static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"

  private static func number(_ text: String) -> [UInt8] {
    let digits = Array(text)
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
  }

  /// A positive INTEGER of DER in its shortest form.
  private static func integer(_ text: String) -> [UInt8] {
    var bytes = Array(number(text).drop { $0 == 0 })
    if bytes.isEmpty || bytes[0] >= 0x80 { bytes.insert(0, at: 0) }
    return [0x02, UInt8(bytes.count)] + bytes
  }

  private static func der(_ r: String, _ s: String) -> [UInt8] {
    let body = integer(r) + integer(s)
    return [0x30, UInt8(body.count)] + body
  }

  private func verify(
    _ signature: [UInt8], of message: String = "sample", _ hash: mbedtls_md_type_t = MBEDTLS_MD_SHA256
  ) -> Bool {
    var key = mbedtls_pk_context()
    mbedtls_pk_init(&key)
    defer { mbedtls_pk_free(&key) }
    // The SubjectPublicKeyInfo of a P-256 key (RFC 5480, section 2).
    let info = Self.number("3059301306072a8648ce3d020106082a8648ce3d030107034200") + [4] + Self.point
    var rest: UnsafeMutablePointer<UInt8>?
    var copy = info
    let isParsed = copy.withUnsafeMutableBufferPointer { buffer in
      rest = buffer.baseAddress
      return mbedtls_pk_parse_subpubkey(&rest, buffer.baseAddress! + buffer.count, &key)
    }
    #expect(isParsed == 0)
    var digest = [UInt8](repeating: 0, count: 64)
    let text = Array(message.utf8)
    mbedtls_md(mbedtls_md_info_from_type(hash), text, text.count, &digest)
    let count = Int(mbedtls_md_get_size(mbedtls_md_info_from_type(hash)))
    return mbedtls_pk_verify(&key, hash, digest, count, signature, signature.count) == 0
  }

  @Test func `the test vectors of the standard are verified`() {
    #expect(verify(Self.sha256) && !verify(Self.sha256, of: "test"))
  }

  @Test func `only the first 32 bytes of a long hash are verified`() {
    let signature = Self.der(
      "8496a60b5e9b47c825488827e0495b0e3fa109ec4568fd3f8d1097678eb97f00",
      "2362ab1adbe2b8adf9cb9edab740ea6049c028114f2460f96554f61fae3302fe")
    #expect(verify(signature, MBEDTLS_MD_SHA512) && !verify(signature))
  }

  @Test func `a signature over a short hash is verified`() {
    let signature = Self.der(
      "61340c88c3aaebeb4f6d667f672ca9759a6ccaa9fa8811313039ee4a35471d32",
      "6d7f147dac089441bb2e2fe8f7a3fa264b9c475098fdcf6e00d7c996e1b8b7eb")
    #expect(verify(signature, MBEDTLS_MD_SHA1) && !verify(signature))
  }

  @Test func `a signature with any byte changed is refused`() {
    for index in Self.sha256.indices {
      var signature = Self.sha256
      signature[index] ^= 1
      #expect(!verify(signature), "byte \(index)")
    }
  }

  @Test func `a truncated or extended signature is refused`() {
    for count in 0..<Self.sha256.count { #expect(!verify(Array(Self.sha256[..<count])), "\(count) bytes") }
    #expect(!verify(Self.sha256 + [0]))
  }

  @Test func `signature values outside the range are refused`() {
    for (r, s) in [("00", "01"), ("01", "00"), (Self.order, "01"), ("01", Self.order), (Self.order + "00", "01")] {
      #expect(!verify(Self.der(r, s)), "\(r) \(s)")
    }
  }
}
