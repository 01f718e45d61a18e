extension NodeIdentity {
  /// Sixteen unambiguous characters, 80 bits, that only the holder of the key can make: the same for a purpose each time, so that
  /// they need not be kept. A signature is deterministic (RFC 6979), and nothing else that a node signs is as short as a purpose
  /// (at most 32 bytes): in TLS it begins with 64 bytes that are not the signer's.
  public func passphrase(for purpose: StaticString) -> String {
    let signature = purpose.withUTF8Buffer { sign(UnsafeRawBufferPointer($0)) }
    let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789X".utf8)
    let digest = sha256((0..<64).map { signature[$0] })
    return String(decoding: digest.prefix(16).map { alphabet[Int($0 & 31)] }, as: UTF8.self)
  }
}
