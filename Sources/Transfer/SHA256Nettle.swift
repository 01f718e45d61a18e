import CNettle

/// SHA-256 by nettle, which uses the processor's SHA instructions. A copy can be updated independently of the original.
public struct SHA256: Sendable {
  private var context = sha256_ctx()
  /// The number of bytes hashed so far.
  public private(set) var byteCount: UInt64 = 0

  public init() { nettle_sha256_init(&context) }

  public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  public mutating func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { update($0) } }

  /// Adds bytes. The pointer is used only during the call.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    byteCount &+= UInt64(bytes.count)
    nettle_sha256_update(&context, bytes.count, base.assumingMemoryBound(to: UInt8.self))
  }

  /// The digest of all bytes so far. After this call `update` can add more bytes.
  public func digest() -> Digest {
    var rest = context
    var bytes = [UInt8](repeating: 0, count: Digest.byteCount)
    nettle_sha256_digest(&rest, bytes.count, &bytes)
    guard let digest = Digest(bytes[...]) else { preconditionFailure("a digest has 32 bytes") }
    return digest
  }

  public static func digest(_ bytes: [UInt8]) -> Digest {
    var hash = SHA256()
    hash.update(bytes)
    return hash.digest()
  }
}
