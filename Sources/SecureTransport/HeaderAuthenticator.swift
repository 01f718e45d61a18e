import CMbedTLS

/// Authenticates the headers of sealed frames in one direction of a link: AES-128-GCM over no plaintext, with the 48
/// header bytes as associated data and the link sequence as nonce (four zero bytes, then eight, big-endian).
final class HeaderAuthenticator {
  static let keyBytes = 16
  static let tagBytes = 16
  static let headerBytes = 48

  private let context: UnsafeMutablePointer<mbedtls_gcm_context>

  /// `key` has `keyBytes` bytes.
  init(key: UnsafeRawBufferPointer) throws(SecureStreamError) {
    precondition(key.count == Self.keyBytes)
    context = .allocate(capacity: 1)
    mbedtls_gcm_init(context)
    let code = mbedtls_gcm_setkey(
      context, MBEDTLS_CIPHER_ID_AES, key.bindMemory(to: UInt8.self).baseAddress!, UInt32(Self.keyBytes * 8))
    if code != 0 { throw .library(code: code) }
  }

  deinit {
    mbedtls_gcm_free(context)
    context.deallocate()
  }

  /// Writes the tag (16 bytes) of `header` (48 bytes) to `tag`.
  func seal(_ header: UnsafeRawPointer, sequence: UInt64, tag: UnsafeMutableRawPointer) -> Bool {
    withUnsafeBytes(of: Self.nonce(sequence)) { nonce in
      mbedtls_gcm_crypt_and_tag(
        context, MBEDTLS_GCM_ENCRYPT, 0, bytes(nonce.baseAddress!), nonce.count, bytes(header), Self.headerBytes,
        nil, nil, Self.tagBytes, tag.assumingMemoryBound(to: UInt8.self)) == 0
    }
  }

  /// True when `tag` (16 bytes) authenticates `header` (48 bytes); compared in constant time.
  func check(_ header: UnsafeRawPointer, sequence: UInt64, tag: UnsafeRawPointer) -> Bool {
    withUnsafeBytes(of: Self.nonce(sequence)) { nonce in
      mbedtls_gcm_auth_decrypt(
        context, 0, bytes(nonce.baseAddress!), nonce.count, bytes(header), Self.headerBytes,
        bytes(tag), Self.tagBytes, nil, nil) == 0
    }
  }

  private static func nonce(_ sequence: UInt64) -> (UInt32, UInt32, UInt32) {
    (0, UInt32(truncatingIfNeeded: sequence >> 32).bigEndian, UInt32(truncatingIfNeeded: sequence).bigEndian)
  }

  private func bytes(_ pointer: UnsafeRawPointer) -> UnsafePointer<UInt8> {
    pointer.assumingMemoryBound(to: UInt8.self)
  }
}
