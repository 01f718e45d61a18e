import Primitives

/// A hash for tests. The hash detects every changed bit, but gives no secrecy: anyone who knows the seed can compute
/// the hash.
public enum StandInHash {
  public static func of(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
    bytes.withUnsafeBytes { bytes in
      var state = seed &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(bytes.count)
      var offset = 0
      while offset + 8 <= bytes.count {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        state = (state ^ word) &* 0x9fb2_1c65_1e98_df25
        state ^= state >> 29
        offset += 8
      }
      for byte in bytes[offset...] { state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 ^ state >> 47 }
      var finish = SeededRandom(seed: state)
      return finish.next()
    }
  }
}

/// A node's key in tests and in the simulator. Anyone who knows the point can sign, so a signature proves nothing
/// against an attacker. A signature detects every changed byte, and is the same on every machine.
public struct Identity: Sendable {
  public let point: [UInt8]
  public let id: NodeID

  /// Creates the identity with this number. Equal numbers give equal identities.
  public init(_ number: UInt64) {
    var random = SeededRandom(seed: number)
    let point = [4] + (0..<64).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    self.point = point
    id = Self.id(of: point.span.bytes)
  }

  public static func id(of point: RawSpan) -> NodeID {
    NodeID(high: StandInHash.of(point, seed: 1), low: StandInHash.of(point, seed: 2))
  }

  public func sign(_ message: RawSpan) -> InlineArray<64, UInt8> { Self.signature(message, point.span.bytes) }

  public static func signature(_ message: RawSpan, _ point: RawSpan) -> InlineArray<64, UInt8> {
    let key = StandInHash.of(point, seed: 3)
    var expand = SeededRandom(seed: StandInHash.of(message, seed: key))
    var signature = InlineArray<64, UInt8>(repeating: 0)
    var bytes = signature.mutableSpan
    for word in 0..<8 {
      let value = expand.next()
      for byte in 0..<8 { bytes[word * 8 + byte] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte)) }
    }
    return signature
  }
}
