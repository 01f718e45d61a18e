import Primitives

/// The `key=value` pairs of discovery info in an advertisement, each preceded by its length (one byte).
/// docs/protocol.md, "Profile".
public struct InfoPairs: ~Escapable {
  public let count: Int
  private let bytes: RawSpan

  /// `bytes` must contain exactly `count` pairs. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy bytes)
  init(count: Int, _ bytes: RawSpan) throws(FrameError) {
    if bytes.byteCount > Limits.infoBytesMax { throw .overLength }
    self.count = count
    self.bytes = bytes
    var reader = ByteReader(bytes, orThrow: FrameError.truncated)
    for _ in 0..<count {
      if !isInfoPair(try reader.span(Int(try reader.u8()))) { throw .malformed }
    }
    if reader.remaining != 0 { throw .malformed }
  }

  /// Calls `body` with each pair `key=value`, in order.
  public func forEach(_ body: (RawSpan) -> Void) {
    var reader = ByteReader(bytes, orThrow: FrameError.truncated)
    for _ in 0..<count {
      guard let length = try? reader.u8(), let pair = try? reader.span(Int(length)) else { return }
      body(pair)
    }
  }
}

/// One service in a services advertisement.
///
///     0–3 endpoint · 4 length of the type · 5… type ·
///     then the number of pairs (1 byte) · the length of all pairs in bytes (2 bytes) · the pairs
public struct ServiceView: ~Escapable {
  /// The number that identifies the service within its node; never 0.
  public let endpoint: UInt32
  /// The service type. See `isServiceType`.
  public let type: RawSpan
  public let info: InfoPairs

  @_lifetime(copy reader)
  init(_ reader: inout ByteReader<FrameError>) throws(FrameError) {
    endpoint = try reader.u32()
    let type = try reader.span(Int(try reader.u8()))
    let count = Int(try reader.u8())
    let pairs = try reader.span(Int(try reader.u16()))
    if type.byteCount > Limits.serviceTypeBytesMax { throw .overLength }
    if endpoint == 0 || !isServiceType(type) { throw .malformed }
    self.type = type
    info = try InfoPairs(count: count, pairs)
  }
}

/// The body of a services advertisement: the services of the node's applications, and the endpoints that accept session
/// invitations.
///
///     0 count, at most 16 · then the services, in ascending order of endpoint
public struct ServicesView: ~Escapable {
  public let count: Int
  private let entries: RawSpan

  /// Checks and views the body of a services advertisement. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy body)
  public init(_ body: RawSpan) throws(FrameError) {
    var reader = ByteReader(body, orThrow: FrameError.truncated)
    count = Int(try reader.u8())
    if count > Limits.servicesMax { throw .overLength }
    entries = try reader.span(reader.remaining)
    var entryReader = ByteReader(entries, orThrow: FrameError.truncated)
    var last: UInt32 = 0
    for _ in 0..<count {
      let endpoint = try ServiceView(&entryReader).endpoint
      if endpoint <= last { throw .malformed }
      last = endpoint
    }
    if entryReader.remaining != 0 { throw .malformed }
  }

  /// Calls `body` with each service, in order.
  public func forEach(_ body: (borrowing ServiceView) -> Void) {
    var reader = ByteReader(entries, orThrow: FrameError.truncated)
    for _ in 0..<count {
      guard let service = try? ServiceView(&reader) else { return }
      body(service)
    }
  }
}
