import Primitives

/// Kind 24: a member opens a stream to another member.
///
///     0–3 the number of its receiver · 4–7 stream · 8–15 window: bytes that the receiver may send back in all, 0 if it
///     never writes · 16 length of the name · 17… name, 1 … 63 bytes of plain text
public struct OpenMessage: Equatable, Sendable {
  public var number: UInt32
  /// The number of the stream: odd if the opener has the lower address, otherwise even. The number is greater than all
  /// numbers that the opener used since the handshake.
  public var stream: UInt32
  public var window: UInt64
  public var name: [UInt8]

  public init(number: UInt32, stream: UInt32, window: UInt64, name: [UInt8]) {
    self.number = number
    self.stream = stream
    self.window = window
    self.name = name
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    stream = try reader.u32()
    window = try reader.u64()
    let length = Int(try reader.u8())
    guard stream != 0, length > 0 else { throw .outOfRange }
    guard length <= SessionLimits.streamNameBytesMax else { throw .tooLong }
    name = try reader.array(length)
    guard isPlainText(name.span.bytes) else { throw .notText }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: stream)
    bytes.append(bigEndian: window)
    bytes.append(UInt8(name.count))
    return bytes + name
  }
}

/// Kind 25: the next bytes of a stream.
///
///     0–3 the number of its receiver · 4–7 stream · 8… data, 1 … 15360 bytes
public enum StreamBytes {
  public static let headerBytes = 8

  public static func bytes(_ number: UInt32, _ stream: UInt32, _ data: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerBytes + data.count)
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: stream)
    bytes.append(copying: data)
    return bytes
  }

  /// Reads the receiver's handshake number and the stream. Throws if the message is too short or too long.
  public static func address(_ bytes: RawSpan) throws(SessionMessageError) -> (number: UInt32, stream: UInt32) {
    guard bytes.byteCount > headerBytes else { throw .truncated }
    guard bytes.byteCount <= headerBytes + SessionLimits.streamTurnBytes else { throw .tooLong }
    guard bytes.word32(4) != 0 else { throw .outOfRange }
    return (bytes.word32(0), bytes.word32(4))
  }
}

/// Why a stream was reset. The raw value is sent on the wire.
public enum StreamReset: UInt8, Sendable, CaseIterable {
  /// The application at one end cancelled the stream.
  case cancelled = 1
  /// The receiving application did not accept the stream.
  case refused = 2
  /// The receiving node has no slot for the stream.
  case tooMany = 3
  /// The peer at the other end violated the protocol of the stream.
  case broken = 4
}

/// Kind 26: the end of the sender's direction, after its last byte, or the reset of the complete stream at once.
///
///     0–3 the number of its receiver · 4–7 stream · 8 0 finished, or the reason of the reset · 9–11 zero ·
///     12–19 number of bytes if finished, otherwise zero
public struct StreamEndMessage: Equatable, Sendable {
  /// The kind of end: the sender's direction is complete, or the stream was reset.
  public enum What: Equatable, Sendable {
    case finished(byteCount: UInt64)
    case reset(StreamReset)
  }

  public var number: UInt32
  public var stream: UInt32
  public var what: What

  public init(number: UInt32, stream: UInt32, _ what: What) {
    self.number = number
    self.stream = stream
    self.what = what
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    stream = try reader.u32()
    let code = try reader.u8()
    guard try reader.u8() == 0, try reader.u16() == 0 else { throw .reservedNotZero }
    let byteCount = try reader.u64()
    guard stream != 0 else { throw .outOfRange }
    if code == 0 {
      what = .finished(byteCount: byteCount)
    } else {
      guard let reset = StreamReset(rawValue: code) else { throw .unknownCode }
      guard byteCount == 0 else { throw .reservedNotZero }
      what = .reset(reset)
    }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: stream)
    switch what {
    case .finished(let byteCount):
      bytes += [0, 0, 0, 0]
      bytes.append(bigEndian: byteCount)
    case .reset(let reset):
      bytes += [reset.rawValue, 0, 0, 0]
      bytes.append(bigEndian: UInt64(0))
    }
    return bytes
  }
}
