/// The identity of a node: the first 16 bytes of the SHA-256 of its key's SubjectPublicKeyInfo. Identities are ordered
/// by their bytes, so all nodes break ties in the same way.
public struct NodeID: Hashable, Comparable, Sendable {
  /// Bytes 0–7 and 8–15 of the id, big-endian.
  public let high: UInt64
  public let low: UInt64

  public static let byteCount = 16
  /// The value for "no node". Link-local and flooded frames have this destination.
  public static let none = NodeID(high: 0, low: 0)

  @inlinable public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  @inlinable public static func < (a: NodeID, b: NodeID) -> Bool {
    a.high != b.high ? a.high < b.high : a.low < b.low
  }

  /// Byte `index` (0–15) in wire order.
  @inlinable public func byte(_ index: Int) -> UInt8 {
    let word = index < 8 ? high : low
    return UInt8(truncatingIfNeeded: word >> UInt64((7 - index & 7) &* 8))
  }
}
