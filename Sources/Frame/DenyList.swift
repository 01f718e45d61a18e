import Primitives

/// A checked view of a deny-list: the ids of the keys that its issuer has revoked. docs/protocol.md, "Deny-list".
///
/// Lengths, reserved fields and the order of the ids are valid. The caller must verify the signature, and that the
/// issuer's id is the hash of `point`. This module does neither, because both need cryptography.
public struct DenyListView: ~Escapable {
  static let fixedByteCount = 20 + AdvertisementView.pointByteCount

  /// The serial number of the list. Each list has a greater serial number than the issuer's lists before it.
  public let serial: UInt64
  /// The time of issue by the issuer's clock, in seconds since 1970.
  public let issuedSeconds: UInt64
  /// The issuer's public key: an uncompressed P-256 point (SEC 1, section 2.3.3).
  public let point: RawSpan
  public let count: Int
  /// The signature over `signed` by ECDSA with SHA-256: r, then s, 32 bytes each.
  public let signature: RawSpan
  /// All bytes that the signature covers.
  public let signed: RawSpan
  private let entries: RawSpan

  /// Checks and views a deny-list. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(FrameError) {
    if payload.byteCount < Self.fixedByteCount + AdvertisementView.signatureByteCount { throw .truncated }
    let signedByteCount = payload.byteCount - AdvertisementView.signatureByteCount
    signed = payload.extracting(0..<signedByteCount)
    signature = payload.extracting(signedByteCount..<payload.byteCount)
    var reader = ByteReader(signed, orThrow: FrameError.truncated)
    if try reader.u16() != 0 { throw .malformed }
    count = Int(try reader.u16())
    if count > Limits.deniedMax { throw .overLength }
    serial = try reader.u64()
    issuedSeconds = try reader.u64()
    point = try reader.span(AdvertisementView.pointByteCount)
    entries = try reader.span(count * NodeID.byteCount)
    if reader.remaining != 0 || serial == 0 || point.octet(0) != 4 {
      throw .malformed
    }
    for index in 1..<max(count, 1) where node(index - 1) >= node(index) { throw .malformed }
  }

  /// The id of the revoked key at `index`, 0 to `count` − 1. The ids are in ascending order.
  public func node(_ index: Int) -> NodeID {
    // The length was checked in `init`.
    entries.nodeID(index * NodeID.byteCount)
  }

  /// Writes all fields before the ids. The caller appends `count` ids in ascending order, then the signature.
  @_lifetime(output: copy output)
  public static func writeHead(
    count: Int, serial: UInt64, issuedSeconds: UInt64, point: RawSpan, to output: inout OutputRawSpan
  ) {
    output.append(bigEndian: UInt16(0))
    output.append(bigEndian: UInt16(count))
    output.append(bigEndian: serial)
    output.append(bigEndian: issuedSeconds)
    output.append(bytes: point)
  }
}
