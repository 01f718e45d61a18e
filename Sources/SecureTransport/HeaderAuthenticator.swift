import CMbedTLS
import CSodium

/// Authenticates the heads of sealed frames in one direction of a link. The tag is SipHash-2-4 with 128-bit output
/// (Aumasson and Bernstein, 2012) over the head: header and link sequence in wire format.
///
/// SipHash is a pseudorandom function of the complete head, so it needs no nonce. Equal heads have equal tags, but the
/// rising link sequence makes every head different. On every processor the time of SipHash is independent of the key.
struct HeaderAuthenticator: ~Copyable {
  static let keyBytes = 16
  static let tagBytes = 16
  /// Header (48 bytes) ‖ link sequence (8 bytes).
  static let headBytes = 56

  private let key = UnsafeMutableRawBufferPointer.allocate(byteCount: HeaderAuthenticator.keyBytes, alignment: 8)

  /// Copies `key`, which has `keyBytes` bytes.
  init(key: UnsafeRawBufferPointer) {
    precondition(key.count == Self.keyBytes)
    self.key.copyMemory(from: key)
  }

  deinit {
    mbedtls_platform_zeroize(key.baseAddress, key.count)
    key.deallocate()
  }

  /// Writes the tag (16 bytes) of `head` (56 bytes) to `tag`.
  func seal(_ head: UnsafeRawPointer, tag: UnsafeMutableRawPointer) {
    // The function cannot fail.
    _ = crypto_shorthash_siphashx24(
      tag.assumingMemoryBound(to: UInt8.self), head.assumingMemoryBound(to: UInt8.self), UInt64(Self.headBytes),
      key.baseAddress!.assumingMemoryBound(to: UInt8.self))
  }

  /// Whether `tag` (16 bytes) authenticates `head` (56 bytes). The tags are compared in constant time.
  func check(_ head: UnsafeRawPointer, tag: UnsafeRawPointer) -> Bool {
    var expected = (UInt64(0), UInt64(0))
    withUnsafeMutableBytes(of: &expected) { seal(head, tag: $0.baseAddress!) }
    // Two words are compared without a branch. Libraries compare byte by byte, which takes a fifth of the time of
    // computing the tag.
    let first = expected.0 ^ tag.loadUnaligned(as: UInt64.self)
    let second = expected.1 ^ tag.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    return first | second == 0
  }
}
