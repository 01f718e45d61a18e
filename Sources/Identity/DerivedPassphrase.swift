extension NodeIdentity {
  /// A passphrase of 16 unambiguous characters (80 bits) that only the holder of the key can derive. It is the same
  /// each time for a purpose, so it need not be stored. The signature is deterministic (RFC 6979). No other message
  /// that a node signs is as short as a purpose (at most 32 bytes): messages signed in TLS begin with 64 bytes that the
  /// signer does not choose.
  public func passphrase(for purpose: StaticString) -> String {
    let signature = purpose.withUTF8Buffer { sign(UnsafeRawBufferPointer($0)) }
    let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789X".utf8)
    let digest = sha256((0..<64).map { signature[$0] })
    return String(decoding: digest.prefix(16).map { alphabet[Int($0 & 31)] }, as: UTF8.self)
  }
}
