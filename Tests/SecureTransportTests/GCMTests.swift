import CMbedTLS
import Testing

/// AES-GCM as used by mbedTLS. The vectors are test cases 4, 10 and 16 of McGrew and Viega, “The Galois/Counter Mode of
/// Operation (GCM)”, 2005, appendix B.
private let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
private let plaintext = hex(
  "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
private let added = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
private let iv = hex("cafebabefacedbaddecaf888")
private let cases: [(bits: UInt32, ciphertext: [UInt8], tag: [UInt8])] = [
  (
    128,
    hex(
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
    ), hex("5bc94fbc3221a5db94fae95ae7121a47")
  ),
  (
    192,
    hex(
      "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710"
    ), hex("2519498e80f1478f37ba55bd6d27618c")
  ),
  (
    256,
    hex(
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
    ), hex("76fc6ece0f4e1768cddf8853bb2d551b")
  ),
]

private func hex(_ text: String) -> [UInt8] {
  let digits = Array(text.utf8).map { UInt8($0 > 57 ? $0 - 87 : $0 - 48) }
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

private final class GCM {
  private let context = UnsafeMutablePointer<mbedtls_gcm_context>.allocate(capacity: 1)

  init(bits: UInt32) {
    mbedtls_gcm_init(context)
    #expect(mbedtls_gcm_setkey(context, MBEDTLS_CIPHER_ID_AES, key, bits) == 0)
  }

  deinit {
    mbedtls_gcm_free(context)
    context.deallocate()
  }

  /// Encrypts or decrypts `bytes` from `offset` on. The output begins at the first byte, so an offset of 0 means in
  /// place.
  func crypt(_ bytes: inout [UInt8], from offset: Int = 0, mode: Int32 = MBEDTLS_GCM_ENCRYPT) -> (Int32, tag: [UInt8]) {
    var tag = [UInt8](repeating: 0, count: 16)
    let code = bytes.withUnsafeMutableBufferPointer { buffer in
      mbedtls_gcm_crypt_and_tag(
        context, mode, buffer.count - offset, iv, iv.count, added, added.count, buffer.baseAddress! + offset,
        buffer.baseAddress, 16, &tag)
    }
    return (code, tag)
  }

  func open(_ ciphertext: [UInt8], _ tag: [UInt8]) -> (Int32, text: [UInt8]) {
    var text = [UInt8](repeating: 7, count: ciphertext.count)
    let code = mbedtls_gcm_auth_decrypt(
      context, ciphertext.count, iv, iv.count, added, added.count, tag, tag.count, ciphertext, &text)
    return (code, text)
  }
}

@Suite struct GCMTests {
  @Test(arguments: 0..<3) func `encryption in place matches the vectors`(index: Int) {
    var bytes = plaintext
    let (code, tag) = GCM(bits: cases[index].bits).crypt(&bytes)
    #expect(code == 0 && bytes == cases[index].ciphertext && tag == cases[index].tag)
  }

  @Test(arguments: 0..<3) func `decryption restores the plaintext`(index: Int) {
    let (code, text) = GCM(bits: cases[index].bits).open(cases[index].ciphertext, cases[index].tag)
    #expect(code == 0 && text == plaintext)
  }

  @Test func `a tag with one wrong bit yields no plaintext`() {
    let gcm = GCM(bits: 128)
    for index in 0..<16 {
      var tag = cases[0].tag
      tag[index] ^= 1
      let (code, text) = gcm.open(cases[0].ciphertext, tag)
      #expect(code == MBEDTLS_ERR_GCM_AUTH_FAILED && text == [UInt8](repeating: 0, count: text.count), "\(index)")
    }
  }

  @Test func `overlapping buffers are refused`() {
    var bytes = plaintext
    #expect(GCM(bits: 128).crypt(&bytes, from: 8).0 == MBEDTLS_ERR_GCM_BAD_INPUT && bytes == plaintext)
  }

  @Test func `a context accepts another key`() {
    let context = UnsafeMutablePointer<mbedtls_gcm_context>.allocate(capacity: 1)
    defer { context.deallocate() }
    mbedtls_gcm_init(context)
    defer { mbedtls_gcm_free(context) }
    for index in [2, 0] {
      var bytes = plaintext, tag = [UInt8](repeating: 0, count: 16)
      #expect(mbedtls_gcm_setkey(context, MBEDTLS_CIPHER_ID_AES, key, cases[index].bits) == 0)
      let code = bytes.withUnsafeMutableBufferPointer { buffer in
        mbedtls_gcm_crypt_and_tag(
          context, MBEDTLS_GCM_ENCRYPT, buffer.count, iv, iv.count, added, added.count, buffer.baseAddress,
          buffer.baseAddress, 16, &tag)
      }
      #expect(code == 0 && bytes == cases[index].ciphertext && tag == cases[index].tag)
    }
  }

  @Test func `ciphers other than AES and contexts without a key are refused`() {
    let context = UnsafeMutablePointer<mbedtls_gcm_context>.allocate(capacity: 1)
    defer { context.deallocate() }
    mbedtls_gcm_init(context)
    #expect(mbedtls_gcm_setkey(context, MBEDTLS_CIPHER_ID_CAMELLIA, key, 128) == MBEDTLS_ERR_GCM_BAD_INPUT)
    var tag = [UInt8](repeating: 0, count: 16)
    #expect(
      mbedtls_gcm_crypt_and_tag(context, MBEDTLS_GCM_ENCRYPT, 0, iv, 12, nil, 0, nil, nil, 16, &tag)
        == MBEDTLS_ERR_GCM_BAD_INPUT)
    mbedtls_gcm_free(context)
  }
}
