import Frame
import Primitives

/// A cache of verified signatures. A member's ticket arrives many times: in tables of several members, and for each of
/// the node's sessions. Only valid signatures are stored, so wrong signatures evict none.
final class VerifiedSignatures: SessionCryptography {
  private typealias Digest = FixedBytes<32>

  private let cryptography: any SessionCryptography
  /// The digests of verified signatures, in groups of `width`. The first bytes of a digest select its group, in which
  /// the latest digest is first. Empty before the first verification.
  private var known: [Digest] = []
  private static let width = 8
  private(set) var signaturesMade: UInt64 = 0

  init(_ cryptography: any SessionCryptography) { self.cryptography = cryptography }

  func sign(_ message: RawSpan) -> InlineArray<64, UInt8> {
    signaturesMade += 1
    return cryptography.sign(message)
  }

  func digest(_ bytes: RawSpan) -> InlineArray<32, UInt8> { cryptography.digest(bytes) }

  func hasVerified(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    let (digest, first) = lookup(signature, message, point, node)
    return isKnown(digest, first)
  }

  func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    let (digest, first) = lookup(signature, message, point, node)
    if isKnown(digest, first) { return true }
    guard cryptography.verify(signature, over: message, by: point, of: node) else { return false }
    if known.isEmpty {
      known = [Digest](repeating: Digest(InlineArray(repeating: 0)), count: SessionLimits.verifiedMax)
    }
    for index in (first + 1..<first + Self.width).reversed() { known[index] = known[index - 1] }
    known[first] = digest
    return true
  }

  private func isKnown(_ digest: Digest, _ first: Int) -> Bool {
    !known.isEmpty && known[first..<first + Self.width].contains(digest)
  }

  /// The digest that identifies a verified signature, and the index of the first entry of its group.
  private func lookup(
    _ signature: RawSpan, _ message: RawSpan, _ point: RawSpan, _ node: NodeID
  ) -> (digest: Digest, first: Int) {
    var bytes = [UInt8](copying: signature)
    bytes += [UInt8](copying: point)
    bytes.append(node)
    bytes += [UInt8](copying: message)
    let digest = Digest(cryptography.digest(bytes.span.bytes))
    return (digest, Int(digest.rawSpan.word32(0)) % (SessionLimits.verifiedMax / Self.width) * Self.width)
  }
}
