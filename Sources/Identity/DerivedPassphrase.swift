extension NodeIdentity {
  /// A passphrase of 16 characters (80 bits) that is derived from a signature of `purpose`, so only this node can
  /// derive it. The signature is deterministic (RFC 6979), so the passphrase of a purpose is always the same and need
  /// not be stored.
  ///
  /// A purpose has at most 32 bytes. All other messages that a node signs are longer, so a peer cannot obtain the
  /// signature of a purpose. For example, the messages that are signed in TLS have more than 64 bytes.
  public func passphrase(for purpose: StaticString) -> String {
    let signature = purpose.withUTF8Buffer { sign(UnsafeRawBufferPointer($0)) }
    let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789X".utf8)
    let digest = sha256((0..<64).map { signature[$0] })
    return String(decoding: digest.prefix(16).map { alphabet[Int($0 & 31)] }, as: UTF8.self)
  }
}
