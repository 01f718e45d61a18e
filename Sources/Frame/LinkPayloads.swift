import Primitives

/// The capabilities of a node, announced in its hello. Unknown bits are ignored. The type is no `OptionSet`, because
/// the array literals of an `OptionSet` allocate.
public struct Capabilities: Equatable, Sendable {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  public static let none = Capabilities(rawValue: 0)
  /// The node forwards frames for other nodes.
  public static let relay = Capabilities(rawValue: 1)
  /// A relay may park its link with the node, which then continues without a stream (`CloseReason.parked`).
  public static let parks = Capabilities(rawValue: 4)
  /// The node accepts sealed frames outside TLS, with the tags of docs/protocol.md, "Bypass". Bit 1 of the capabilities
  /// announced an earlier kind of tag and is not reused.
  public static let bypass = Capabilities(rawValue: 8)

  public func contains(_ other: Capabilities) -> Bool { rawValue & other.rawValue == other.rawValue }
  public func union(_ other: Capabilities) -> Capabilities { Capabilities(rawValue: rawValue | other.rawValue) }
}

/// The first frame on a link, in each direction. docs/protocol.md, "Hello".
public struct Hello: Equatable, Sendable {
  public static let version: UInt8 = 1
  /// The number of bytes before the display name.
  static let fixedByteCount = 33

  public var versionMin: UInt8
  public var versionMax: UInt8
  /// The longest frame payload that the sender accepts on this link, in bytes.
  public var payloadBytesMax: UInt16
  public var capabilities: Capabilities
  /// The sender's boot epoch. Each restart of a node gives it a greater boot epoch.
  public var epoch: UInt64
  /// The sender's id. The sender's id must match the id that the link's certificate authenticates.
  public var node: NodeID
  public var name: DisplayName

  public init(payloadBytesMax: UInt16, capabilities: Capabilities, epoch: UInt64, node: NodeID, name: DisplayName) {
    versionMin = Self.version
    versionMax = Self.version
    self.payloadBytesMax = payloadBytesMax
    self.capabilities = capabilities
    self.epoch = epoch
    self.node = node
    self.name = name
  }

  /// Reads a hello. Throws `.truncated`, `.overLength`, `.malformed`, and `.unknownVersion` when the nodes have no
  /// version in common.
  public init(_ payload: RawSpan) throws(FrameError) {
    var reader = ByteReader(payload, orThrow: FrameError.truncated)
    versionMin = try reader.u8()
    versionMax = try reader.u8()
    // The version is checked first, because the fields after it may have another format in other versions.
    if versionMin > Self.version || versionMax < Self.version { throw .unknownVersion }
    payloadBytesMax = try reader.u16()
    capabilities = Capabilities(rawValue: try reader.u32())
    epoch = try reader.u64()
    node = try reader.nodeID()
    name = try DisplayName(&reader)
    // Bytes after the name are fields of later versions and are ignored.
    if Int(payloadBytesMax) < Limits.framePayloadBytesFloor || node == .none { throw .malformed }
  }

  public var byteCount: Int { Self.fixedByteCount + name.byteCount }

  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    output.append(versionMin)
    output.append(versionMax)
    output.append(bigEndian: payloadBytesMax)
    output.append(bigEndian: capabilities.rawValue)
    output.append(bigEndian: epoch)
    output.append(node)
    name.write(to: &output)
  }
}

/// A display name: 1 to 63 bytes of UTF-8 without control characters, stored without a reference to other memory. A
/// name of 8 or 32 characters that look like hexadecimal digits is invalid, because it looks like a node id.
public struct DisplayName: Equatable, Sendable {
  private var storage: FixedArray<64, UInt8>
  public let byteCount: Int

  /// Checks and copies a name. Throws `.malformed` for an empty name, control characters, invalid UTF-8, or a name that
  /// looks like a node id. Throws `.overLength` above 63 bytes.
  public init(_ bytes: RawSpan) throws(FrameError) {
    if bytes.byteCount == 0 { throw .malformed }
    if bytes.byteCount > Limits.displayNameBytesMax { throw .overLength }
    if !isPlainText(bytes) || resemblesNodeID(bytes) { throw .malformed }
    storage = FixedArray(repeating: 0)
    byteCount = bytes.byteCount
    for offset in bytes.byteOffsets { storage[offset] = bytes.octet(offset) }
  }

  /// Reads a length byte and then the name. Throws `.truncated`, `.malformed` and `.overLength`.
  public init(_ reader: inout ByteReader<FrameError>) throws(FrameError) {
    let count = Int(try reader.u8())
    self = try DisplayName(try reader.span(count))
  }

  /// Writes a length byte and the name.
  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    output.append(UInt8(byteCount))
    for offset in 0..<byteCount { output.append(storage[offset]) }
  }

  public func byte(_ index: Int) -> UInt8 { storage[index] }

  public static func == (a: DisplayName, b: DisplayName) -> Bool {
    if a.byteCount != b.byteCount { return false }
    for index in 0..<a.byteCount where a.storage[index] != b.storage[index] { return false }
    return true
  }
}

/// The reason for closing a link, sent in the goodbye.
public enum CloseReason: UInt8, Error, Sendable {
  case shutdown = 1
  /// The node keeps another link to the same neighbour instead.
  case duplicate = 2
  /// The node has no free link slot. The neighbour can dial again after the time in the goodbye.
  case full = 3
  case protocolError = 4
  /// The hello claims an id that the certificate does not authenticate.
  case identityMismatch = 5
  case unsupportedVersion = 6
  /// Nothing was received from the neighbour within the timeout.
  case timedOut = 7
  /// The underlying stream broke. This reason is never sent.
  case streamLost = 8
  /// The neighbour's key is revoked, or the closing node knows the neighbour's name as that of another key.
  case notTrusted = 9
  /// The node that dialled the link no longer needs it, because the two nodes can reach each other without it.
  case notNeeded = 10
  /// The link is parked, because another neighbour needs the connection of the radio. While the link is parked, both
  /// ends keep the state of the link without a stream. An end of a parked link dials when it has something to send.
  case parked = 11

  public var name: StaticString {
    switch self {
    case .shutdown: "shutdown"
    case .duplicate: "duplicate"
    case .full: "full"
    case .protocolError: "protocol-error"
    case .identityMismatch: "identity-mismatch"
    case .unsupportedVersion: "unsupported-version"
    case .timedOut: "timed-out"
    case .streamLost: "stream-lost"
    case .notTrusted: "not-trusted"
    case .notNeeded: "not-needed"
    case .parked: "parked"
    }
  }
}

/// The last frame on a link. docs/protocol.md, "Goodbye".
public struct Goodbye: Equatable, Sendable {
  public static let byteCount = 4
  public var reason: CloseReason
  /// The time that the neighbour should wait before the next dial, in seconds (0 to 3600).
  public var retryAfterSeconds: UInt16

  public static let retryAfterSecondsMax: UInt16 = 3_600

  public init(reason: CloseReason, retryAfterSeconds: UInt16) {
    self.reason = reason
    self.retryAfterSeconds = min(retryAfterSeconds, Self.retryAfterSecondsMax)
  }

  /// Reads a goodbye. An unknown reason is read as `.protocolError`. Throws `.truncated`.
  public init(_ payload: RawSpan) throws(FrameError) {
    var reader = ByteReader(payload, orThrow: FrameError.truncated)
    reason = CloseReason(rawValue: try reader.u8()) ?? .protocolError
    _ = try reader.u8()
    retryAfterSeconds = min(try reader.u16(), Self.retryAfterSecondsMax)
  }

  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    output.append(reason.rawValue)
    output.append(0)
    output.append(bigEndian: retryAfterSeconds)
  }
}
