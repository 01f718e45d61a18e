import Primitives

/// The type of a frame. docs/protocol.md, "Frame types".
public enum FrameType: UInt8, Sendable {
  // Between neighbours; never forwarded.
  case hello = 1
  case ping = 2
  case pong = 3
  case goodbye = 4
  case request = 5
  // Flooded to every node.
  case advertisement = 16
  case denyList = 17
  // Routed to one node.
  case segment = 32
  case acknowledgement = 33
  case datagram = 34
  case reset = 35
  case handshake = 36
  /// A record of the encrypted session between the two end nodes. The frame has the flag `FrameHeader.sealed`.
  case sealed = 37
  /// An acknowledgement followed by a segment. A node sends this type only to nodes that announced support for it.
  case joined = 38

  /// Whether the frame is never forwarded.
  public var isLinkLocal: Bool { rawValue < 16 }
}

/// The order in which a link sends its queued frames. Lower values are sent first.
public enum FramePriority: UInt8, Sendable {
  case control = 0
  case realtime = 1
  case interactive = 2
  case bulk = 3

  public static let count = 4
}

/// The 48-byte header of every frame, with all fields valid. docs/protocol.md, "Frame header".
public struct FrameHeader: Equatable, Sendable {
  /// The first byte of every frame: the version, and the bit 0x80, which no first byte of a TLS record has.
  public static let marker: UInt8 = 0x81
  public static let byteCount = Limits.frameHeaderBytes

  /// Flag bit 0: the payload is encrypted end to end, so the frame may be sent outside TLS.
  public static let sealed: UInt8 = 1

  /// The type of the frame. An unknown type is valid: the receiver uses the length to skip the frame.
  public var type: UInt8
  public var flags: UInt8
  public var ttl: UInt8
  public var priority: FramePriority
  /// The length of the payload in bytes, 1 to `Limits.framePayloadBytesMax`.
  public var payloadByteCount: Int
  public var destination: NodeID
  public var source: NodeID
  /// In routed frames, the low half of the source's boot epoch, and a counter. This value is unique among the routed
  /// frames of one source. In link-local frames, the identifier is zero. Flooded frames use the identifier in another
  /// way (docs/protocol.md, "Frame header").
  public var identifier: UInt64

  public init(
    type: FrameType, flags: UInt8 = 0, ttl: UInt8 = 1, priority: FramePriority, payloadByteCount: Int,
    destination: NodeID = .none, source: NodeID, identifier: UInt64
  ) {
    self.type = type.rawValue
    self.flags = flags
    self.ttl = ttl
    self.priority = priority
    self.payloadByteCount = payloadByteCount
    self.destination = destination
    self.source = source
    self.identifier = identifier
  }

  /// The type, or nil if this version does not know it.
  public var knownType: FrameType? { FrameType(rawValue: type) }
  /// Whether the frame is forwarded to one destination. The property is also defined for unknown types.
  public var isRouted: Bool { type >= 32 }
  public var frameByteCount: Int { Self.byteCount + payloadByteCount }

  /// Reads a header from the first 48 bytes of `bytes`.
  ///
  /// Throws `.truncated`, `.unknownVersion`, `.zeroLength`, `.overLength`, `.ttlZero`, `.malformed`.
  public init(_ bytes: RawSpan) throws(FrameError) {
    var reader = ByteReader(bytes, orThrow: FrameError.truncated)
    if reader.remaining < Self.byteCount { throw .truncated }
    if try reader.u8() != Self.marker { throw .unknownVersion }
    type = try reader.u8()
    flags = try reader.u8()
    ttl = try reader.u8()
    let priority = FramePriority(rawValue: try reader.u8())
    let reserved = try reader.u8()
    payloadByteCount = Int(try reader.u16())
    destination = try reader.nodeID()
    source = try reader.nodeID()
    identifier = try reader.u64()
    if payloadByteCount == 0 { throw .zeroLength }
    if payloadByteCount > Limits.framePayloadBytesMax { throw .overLength }
    if ttl == 0 { throw .ttlZero }
    guard let priority, reserved == 0, flags & ~Self.sealed == 0, source != .none else { throw .malformed }
    self.priority = priority
  }

  /// Writes the header. `output` must have room for 48 bytes.
  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    // Written as one word, because every forwarded frame passes here.
    let kind = UInt64(Self.marker) << 56 | UInt64(type) << 48 | UInt64(flags) << 40 | UInt64(ttl) << 32
    output.append(bigEndian: kind | UInt64(priority.rawValue) << 24 | UInt64(UInt16(payloadByteCount)))
    output.append(destination)
    output.append(source)
    output.append(bigEndian: identifier)
  }
}

/// Access to fields of an encoded frame without parsing its header. Only this file knows the field offsets.
extension FrameHeader {
  /// The number of leading bytes that include the field of the payload length. The last two of these bytes are that
  /// field, big-endian.
  public static let lengthEnd = 8
  private static let lengthOffset = lengthEnd - 2
  private static let flagsOffset = 2

  /// The length of the frame that begins with `bytes`, or nil for fewer than `lengthEnd` bytes.
  ///
  /// Throws `.unknownVersion` if the first byte is wrong, and `.overLength` if the payload exceeds
  /// `Limits.framePayloadBytesMax`.
  public static func frameByteCount(beginning bytes: RawSpan) throws(FrameError) -> Int? {
    if bytes.byteCount > 0, bytes.octet(0) != marker { throw .unknownVersion }
    if bytes.byteCount < lengthEnd { return nil }
    let byteCount = frameByteCount(of: bytes)
    if byteCount > Limits.frameBytesMax { throw .overLength }
    return byteCount
  }

  /// The length of the valid frame that begins with `bytes`. `bytes` must have at least `lengthEnd` bytes.
  public static func frameByteCount(of bytes: RawSpan) -> Int {
    precondition(bytes.byteCount >= lengthEnd)
    return byteCount + Int(bytes.word16(lengthOffset))
  }

  /// The length of a valid frame that is not contiguous in memory. `byte` returns the byte at an offset.
  public static func frameByteCount(_ byte: (_ offset: Int) -> UInt8) -> Int {
    byteCount + (Int(byte(lengthOffset)) << 8 | Int(byte(lengthOffset + 1)))
  }

  /// Whether the valid frame that begins with `bytes` is end-to-end encrypted. `bytes` must have at least `lengthEnd`
  /// bytes.
  public static func isSealed(_ bytes: RawSpan) -> Bool {
    precondition(bytes.byteCount >= lengthEnd)
    return bytes.octet(flagsOffset) & sealed != 0
  }
}
