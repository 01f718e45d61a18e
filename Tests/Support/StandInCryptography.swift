import Node
import Primitives

/// A node's key in tests and in the simulator. Whoever knows the point can sign for it, so a signature proves
/// nothing against an attacker; it does tell every changed byte, and it is the same on every machine.
public struct Identity: Sendable {
  public let point: [UInt8]
  public let id: NodeID

  /// The identity with this number.
  public init(_ number: UInt64) {
    var random = SeededRandom(seed: number)
    let point = [4] + (0..<64).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    self.point = point
    id = Self.id(of: point.span.bytes)
  }

  static func id(of point: RawSpan) -> NodeID { NodeID(high: hash(point, seed: 1), low: hash(point, seed: 2)) }

  public func sign(_ message: RawSpan) -> InlineArray<64, UInt8> { Self.signature(message, point.span.bytes) }

  static func signature(_ message: RawSpan, _ point: RawSpan) -> InlineArray<64, UInt8> {
    let key = hash(point, seed: 3)
    var expand = SeededRandom(seed: hash(message, seed: key))
    var signature = InlineArray<64, UInt8>(repeating: 0)
    for word in 0..<8 {
      let value = expand.next()
      for byte in 0..<8 { signature[word * 8 + byte] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte)) }
    }
    return signature
  }

  private static func hash(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
    bytes.withUnsafeBytes { bytes in
      var state = seed &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(bytes.count)
      for byte in bytes { state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 ^ state >> 47 }
      var finish = SeededRandom(seed: state)
      return finish.next()
    }
  }
}

/// What a node needs of cryptography, by an `Identity`.
public final class StandInCryptography: NodeCryptography {
  public let identity: Identity
  /// Signatures made, to see what an event costs.
  public private(set) var signCount = 0

  public init(_ identity: Identity) { self.identity = identity }

  public func sign(_ message: RawSpan) -> InlineArray<64, UInt8> {
    signCount += 1
    return identity.sign(message)
  }

  public func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    guard Identity.id(of: point) == node, signature.byteCount == 64 else { return false }
    return signature.array == Identity.signature(message, point).span.bytes.array
  }
}
