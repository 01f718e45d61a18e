import Primitives

/// A byte string of a fixed length, compared by its bytes.
public struct FixedBytes<let count: Int>: Equatable, Sendable {
  static var byteCount: Int { count }

  public let bytes: InlineArray<count, UInt8>

  public init(_ bytes: InlineArray<count, UInt8>) { self.bytes = bytes }

  /// Reads the next `count` bytes.
  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
    let field = try reader.span(count)
    bytes = InlineArray { field.octet($0) }
  }

  public var rawSpan: RawSpan {
    @_lifetime(borrow self) borrowing get { bytes.span.bytes }
  }

  /// A copy of the bytes.
  public var array: [UInt8] { [UInt8](copying: bytes.span.bytes) }

  public static func == (a: Self, b: Self) -> Bool {
    for index in 0..<count where a.bytes[index] != b.bytes[index] { return false }
    return true
  }

  /// Compares the bytes lexicographically.
  static func < (a: Self, b: Self) -> Bool {
    for index in 0..<count where a.bytes[index] != b.bytes[index] { return a.bytes[index] < b.bytes[index] }
    return false
  }
}

/// An uncompressed P-256 point (SEC 1, 2.3.3).
public typealias PublicPoint = FixedBytes<65>
/// An ECDSA P-256 signature with SHA-256: r, then s.
public typealias Signature = FixedBytes<64>
/// The digest of a table: the first 16 bytes of SHA-256.
public typealias TableDigest = FixedBytes<16>

/// The cryptographic operations that sessions need. The firmware uses `MbedCryptography`; the simulator uses a fast
/// stand-in.
public protocol SessionCryptography: AnyObject {
  /// Signs `message` with this node's key: ECDSA P-256 with SHA-256, r then s, 32 bytes each.
  func sign(_ message: RawSpan) -> InlineArray<64, UInt8>
  /// Whether `signature` over `message` is by the key `point`, and `node` is that key's id.
  func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool
  /// Whether this signature was verified before and is remembered, so that `verify` would cost nothing.
  func hasVerified(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool
  /// The SHA-256 digest of `bytes`.
  func digest(_ bytes: RawSpan) -> InlineArray<32, UInt8>
}

extension SessionCryptography {
  /// An implementation without a cache remembers no signature.
  public func hasVerified(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    false
  }

  func isSigned(_ signature: Signature, _ message: [UInt8], by point: PublicPoint, of node: NodeID) -> Bool {
    verify(signature.rawSpan, over: message.span.bytes, by: point.rawSpan, of: node)
  }

  func signature(_ message: [UInt8]) -> Signature { Signature(sign(message.span.bytes)) }
}
