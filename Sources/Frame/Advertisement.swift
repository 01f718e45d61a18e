import Primitives

/// The kind of an advertisement.
public enum AdvertisementKind: UInt8, Sendable {
  /// The node's links, from which routes are computed.
  case topology = 1
  /// The node's display name, service type and discovery info.
  case profile = 2
  /// The services that the node's applications offer.
  case services = 3

  public static let count = 3
}

/// A checked view of a signed advertisement. docs/protocol.md, "Advertisement".
///
/// Lengths, kind, reserved fields and the format of the body are valid. The caller must verify the signature, and that
/// the id of the frame's source is the hash of `point`. This module does neither, because both need cryptography.
public struct AdvertisementView: ~Escapable {
  /// The number of bytes before the body: kind, reserved, lifetime, epoch, sequence, point.
  static let fixedByteCount = 20 + pointByteCount
  public static let pointByteCount = 65
  public static let signatureByteCount = 64

  public let kind: AdvertisementKind
  /// The time for which the advertisement is valid, in seconds (1 to 3600). The lifetime begins when the source made
  /// the advertisement; the frame states the age since then.
  public let lifetimeSeconds: UInt16
  public let epoch: UInt64
  public let sequence: UInt64
  /// The source's public key: an uncompressed P-256 point (SEC 1, section 2.3.3).
  public let point: RawSpan
  public let body: RawSpan
  /// The signature over `signed` by ECDSA with SHA-256: r, then s, 32 bytes each.
  public let signature: RawSpan
  /// All bytes that the signature covers.
  public let signed: RawSpan

  /// Checks and views an advertisement. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(FrameError) {
    if payload.byteCount > Limits.advertisementBytesMax { throw .overLength }
    if payload.byteCount < Self.fixedByteCount + Self.signatureByteCount { throw .truncated }
    let signedByteCount = payload.byteCount - Self.signatureByteCount
    signed = payload.extracting(0..<signedByteCount)
    signature = payload.extracting(signedByteCount..<payload.byteCount)
    var reader = ByteReader(signed, orThrow: FrameError.truncated)
    let kind = AdvertisementKind(rawValue: try reader.u8())
    let reserved = try reader.u8()
    lifetimeSeconds = try reader.u16()
    epoch = try reader.u64()
    sequence = try reader.u64()
    point = try reader.span(Self.pointByteCount)
    body = try reader.span(reader.remaining)
    guard let kind, reserved == 0, point.octet(0) == 4,
      (1...Advertisement.lifetimeSecondsMax).contains(lifetimeSeconds)
    else { throw .malformed }
    self.kind = kind
    switch kind {
    case .topology: _ = try TopologyView(body)
    case .profile: _ = try ProfileView(body)
    case .services: _ = try ServicesView(body)
    }
  }
}

/// Constants and encoding of advertisements.
public enum Advertisement {
  public static let lifetimeSecondsMax: UInt16 = 3_600
  /// The longest body, in bytes.
  public static let bodyBytesMax =
    Limits.advertisementBytesMax - AdvertisementView.fixedByteCount - AdvertisementView.signatureByteCount

  /// Writes all fields before the body. The caller appends the body and the signature.
  @_lifetime(output: copy output)
  public static func writeHead(
    _ kind: AdvertisementKind, lifetimeSeconds: UInt16, epoch: UInt64, sequence: UInt64, point: RawSpan,
    to output: inout OutputRawSpan
  ) {
    output.append(kind.rawValue)
    output.append(0)
    output.append(bigEndian: lifetimeSeconds)
    output.append(bigEndian: epoch)
    output.append(bigEndian: sequence)
    output.append(bytes: point)
  }
}

/// One neighbour in a topology advertisement.
public struct Neighbour: Equatable, Sendable {
  public static let byteCount = 24
  public var node: NodeID
  /// The routing cost of the link to the neighbour, 1 to 65535, in the unit of `BearerKind.cost`.
  public var cost: UInt16
  /// The longest frame payload that the link accepts, in bytes.
  public var payloadBytesMax: UInt16
  public var bearer: BearerKind

  public init(node: NodeID, cost: UInt16, payloadBytesMax: UInt16, bearer: BearerKind) {
    self.node = node
    self.cost = cost
    self.payloadBytesMax = payloadBytesMax
    self.bearer = bearer
  }

  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    output.append(node)
    output.append(bigEndian: cost)
    output.append(bigEndian: payloadBytesMax)
    output.append(bearer.advertised.rawValue)
    output.append(0)
    output.append(bigEndian: UInt16(0))
  }
}

/// The body of a topology advertisement.
public struct TopologyView: ~Escapable {
  public let flags: TopologyFlags
  public let count: Int
  private let entries: RawSpan

  /// Checks and views the body of a topology advertisement. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy body)
  public init(_ body: RawSpan) throws(FrameError) {
    var reader = ByteReader(body, orThrow: FrameError.truncated)
    flags = TopologyFlags(rawValue: try reader.u8())
    count = Int(try reader.u8())
    if count > Limits.neighboursMax { throw .overLength }
    if try reader.u16() != 0 { throw .malformed }
    entries = try reader.span(count * Neighbour.byteCount)
    if reader.remaining != 0 { throw .malformed }
    for index in 0..<count { _ = try entry(index) }
  }

  /// Views the body of a stored advertisement. `payload` is the complete topology advertisement. The stored
  /// advertisement was checked when it was accepted, so it is not checked again.
  @_lifetime(copy payload)
  public init(ofHeld payload: RawSpan) {
    let body = AdvertisementView.fixedByteCount
    flags = TopologyFlags(rawValue: payload.octet(body))
    count = Int(payload.octet(body + 1))
    entries = payload.extracting(body + 4..<body + 4 + count * Neighbour.byteCount)
  }

  /// The id of the neighbour at `index`, 0 to `count` − 1.
  public func node(_ index: Int) -> NodeID { entries.nodeID(index * Neighbour.byteCount) }

  /// The neighbour at `index`, 0 to `count` − 1. Never throws after a successful `init`.
  public func entry(_ index: Int) throws(FrameError) -> Neighbour {
    let entry = entries.extracting(index * Neighbour.byteCount..<(index + 1) * Neighbour.byteCount)
    var reader = ByteReader(entry, orThrow: FrameError.truncated)
    let node = try reader.nodeID()
    let cost = try reader.u16()
    let payloadBytesMax = try reader.u16()
    let bearer = BearerKind(rawValue: try reader.u8())
    let reserved = (try reader.u8(), try reader.u16())
    guard let bearer, bearer == bearer.advertised, cost > 0, Int(payloadBytesMax) >= Limits.framePayloadBytesFloor,
      node != .none, reserved == (0, 0)
    else { throw .malformed }
    return Neighbour(node: node, cost: cost, payloadBytesMax: payloadBytesMax, bearer: bearer)
  }

  @_lifetime(output: copy output)
  public static func writeHead(flags: TopologyFlags, count: Int, to output: inout OutputRawSpan) {
    output.append(flags.rawValue)
    output.append(UInt8(count))
    output.append(bigEndian: UInt16(0))
  }
}

/// The body of a profile advertisement: display name, service type, discovery info.
public struct ProfileView: ~Escapable {
  public let name: DisplayName
  /// The service type: lower-case letters, digits and hyphens (RFC 6335, section 5.1).
  public let serviceType: RawSpan
  public let info: InfoPairs

  /// Checks and views the body of a profile advertisement. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy body)
  public init(_ body: RawSpan) throws(FrameError) {
    var reader = ByteReader(body, orThrow: FrameError.truncated)
    name = try DisplayName(&reader)
    serviceType = try reader.span(Int(try reader.u8()))
    if serviceType.byteCount > Limits.serviceTypeBytesMax { throw .overLength }
    if !isServiceType(serviceType) { throw .malformed }
    let count = Int(try reader.u8())
    info = try InfoPairs(count: count, try reader.span(reader.remaining))
  }
}

/// Whether `bytes` are a valid `key=value` pair of discovery info. The key is non-empty printable ASCII without `=`,
/// and the value is UTF-8 without control characters (RFC 6763, sections 6.4 and 6.5).
public func isInfoPair(_ bytes: RawSpan) -> Bool {
  for offset in bytes.byteOffsets {
    let byte = bytes.octet(offset)
    if byte == UInt8(ascii: "=") {
      let value = bytes.extracting(offset + 1..<bytes.byteCount)
      return offset > 0 && (value.byteCount == 0 || isPlainText(value))
    }
    if !(0x20...0x7E).contains(byte) { return false }
  }
  return false
}
