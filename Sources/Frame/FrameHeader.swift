import Primitives

/// What a frame is. docs/protocol.md, "Frame types".
public enum FrameType: UInt8, Sendable {
  // Between neighbours: never forwarded.
  case hello = 1
  case ping = 2
  case pong = 3
  case goodbye = 4
  // Flooded to every node.
  case advertisement = 16
  case denyList = 17
  // Routed to one node.
  case segment = 32
  case acknowledgement = 33
  case datagram = 34
  case reset = 35
  case handshake = 36
  /// One record of the session between the two end nodes; travels with the flag `FrameHeader.sealed`.
  case sealed = 37

  /// Whether the frame is between neighbours only.
  public var isLinkLocal: Bool { rawValue < 16 }
}

/// In which order a link sends what waits for it. Lower goes first.
public enum FramePriority: UInt8, Sendable {
  case control = 0
  case realtime = 1
  case interactive = 2
  case bulk = 3

  public static let count = 4
}

/// The 48 bytes at the head of every frame, all fields legal. docs/protocol.md, "Frame header".
public struct FrameHeader: Equatable, Sendable {
  /// The first byte: 0x80, which no TLS record begins with, and the version.
  public static let marker: UInt8 = 0x81
  public static let byteCount = Limits.frameHeaderBytes

  /// Flag bit 0: the payload is sealed by the end nodes, so the frame may travel beside TLS.
  public static let sealed: UInt8 = 1

  /// Unknown types are legal: whoever meets one skips it by its length.
  public var type: UInt8
  public var flags: UInt8
  public var ttl: UInt8
  public var priority: FramePriority
  /// 1 … `Limits.framePayloadBytesMax`.
  public var payloadByteCount: Int
  public var destination: NodeID
  public var source: NodeID
  /// The low half of the source's boot epoch, and a counter: no two forwarded frames of one source share it.
  /// Zero between neighbours.
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

  /// The type, where this node knows it.
  public var knownType: FrameType? { FrameType(rawValue: type) }
  /// Whether the frame has one destination and is forwarded towards it, known type or not.
  public var isRouted: Bool { type >= 32 }
  public var frameByteCount: Int { Self.byteCount + payloadByteCount }

  /// Read a header from the first 48 bytes of `bytes`.
  ///
  /// Throws `.truncated`, `.unknownVersion`, `.zeroLength`, `.overLength`, `.ttlZero`, `.malformed`.
  public init(_ bytes: RawSpan) throws(FrameRefusal) {
    var reader = ByteReader(bytes)
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

  /// Write the header. There must be 48 bytes of room.
  @_lifetime(output: copy output)
  public func write(to output: inout OutputRawSpan) {
    output.append(Self.marker)
    output.append(type)
    output.append(flags)
    output.append(ttl)
    output.append(priority.rawValue)
    output.append(0)
    output.append(bigEndian: UInt16(payloadByteCount))
    output.append(destination)
    output.append(source)
    output.append(bigEndian: identifier)
  }
}

/// What is read of a frame whose header is not parsed, or was parsed long ago: nobody else knows where a field stands.
extension FrameHeader {
  /// The first bytes of a frame that tell how long it is. The last two of them are the payload's length, big-endian.
  public static let lengthEnd = 8
  private static let lengthOffset = lengthEnd - 2
  private static let flagsOffset = 2

  /// The length of the frame that begins with `bytes`; nil while they do not reach to `lengthEnd`.
  ///
  /// Throws `.unknownVersion` as soon as there is a byte, and `.overLength`.
  public static func frameByteCount(beginning bytes: RawSpan) throws(FrameRefusal) -> Int? {
    if bytes.byteCount > 0, bytes.octet(0) != marker { throw .unknownVersion }
    if bytes.byteCount < lengthEnd { return nil }
    let byteCount = frameByteCount(of: bytes)
    if byteCount > Limits.frameBytesMax { throw .overLength }
    return byteCount
  }

  /// The length of the legal frame that begins with `bytes`, at least `lengthEnd` of them.
  public static func frameByteCount(of bytes: RawSpan) -> Int {
    precondition(bytes.byteCount >= lengthEnd)
    return byteCount + Int(bytes.word16(lengthOffset))
  }

  /// The length of a legal frame that does not lie in one piece: `byte` gives its bytes by their offset.
  public static func frameByteCount(_ byte: (_ offset: Int) -> UInt8) -> Int {
    byteCount + (Int(byte(lengthOffset)) << 8 | Int(byte(lengthOffset + 1)))
  }

  /// Whether the end nodes sealed the legal frame that begins with `bytes`, at least `lengthEnd` of them.
  public static func isSealed(_ bytes: RawSpan) -> Bool {
    precondition(bytes.byteCount >= lengthEnd)
    return bytes.octet(flagsOffset) & sealed != 0
  }
}
