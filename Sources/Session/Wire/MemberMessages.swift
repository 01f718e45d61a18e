import Primitives

/// Kind 20 (meet): a handshake message between two members of a session. The sender states its number, which later
/// messages to the sender must carry. The message also repeats the receiver's number. The two are connected when each
/// has received its own number.
///
///     0–15 session · 16–19 sender's endpoint · 20–23 receiver's endpoint · 24–27 number, not 0 ·
///     28–31 the other's number, 0 unknown · 32–47 digest of the sender's table ·
///     48–55 window: bytes that may be sent under the number
public struct MeetMessage: Equatable, Sendable {
  public var session: SessionID
  public var from: UInt32
  public var to: UInt32
  public var number: UInt32
  public var echo: UInt32
  public var digest: TableDigest
  public var window: UInt64

  public init(
    session: SessionID, from: UInt32, to: UInt32, number: UInt32, echo: UInt32, digest: TableDigest, window: UInt64
  ) {
    self.session = session
    self.from = from
    self.to = to
    self.number = number
    self.echo = echo
    self.digest = digest
    self.window = window
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    session = try SessionID(&reader)
    from = try reader.u32()
    to = try reader.u32()
    number = try reader.u32()
    echo = try reader.u32()
    digest = try TableDigest(&reader)
    window = try reader.u64()
    guard from != 0, to != 0, number != 0 else { throw .outOfRange }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(session)
    bytes.append(bigEndian: from)
    bytes.append(bigEndian: to)
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: echo)
    bytes += digest.array
    bytes.append(bigEndian: window)
    return bytes
  }
}

/// Kind 21: the sender's table (a snapshot), a part of it (a delta), or only its digest.
///
///     0–15 session · 16–19 sender's endpoint · 20–23 receiver's endpoint · 24 bit 0: send me yours · 25–27 zero ·
///     28–43 digest of the sender's complete table · 44… entries, which may be missing
public struct TableMessage: Equatable, Sendable {
  public var session: SessionID
  public var from: UInt32
  public var to: UInt32
  public var asks: Bool
  public var digest: TableDigest
  public var entries: TableEntries?

  public init(
    session: SessionID, from: UInt32, to: UInt32, asks: Bool, digest: TableDigest, entries: TableEntries? = nil
  ) {
    self.session = session
    self.from = from
    self.to = to
    self.asks = asks
    self.digest = digest
    self.entries = entries
  }

  public init(_ bytes: RawSpan, _ cryptography: any SessionCryptography) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    session = try SessionID(&reader)
    from = try reader.u32()
    to = try reader.u32()
    let flags = try reader.u8()
    guard flags & ~1 == 0, try reader.u8() == 0, try reader.u16() == 0 else { throw .reservedNotZero }
    asks = flags == 1
    digest = try TableDigest(&reader)
    guard from != 0, to != 0 else { throw .outOfRange }
    entries = reader.remaining > 0 ? try TableEntries(&reader, cryptography) : nil
  }

  /// The number of `bytes`.
  public var byteCount: Int { 44 + (entries?.byteCount ?? 0) }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(session)
    bytes.append(bigEndian: from)
    bytes.append(bigEndian: to)
    bytes += [asks ? 1 : 0, 0, 0, 0]
    bytes += digest.array
    entries?.append(to: &bytes)
    return bytes
  }
}

/// Kind 22: a message of an application. The first 4 bytes of this message are the receiver's handshake number.
public enum ApplicationMessage {
  public static let headerBytes = 4

  public static func bytes(_ number: UInt32, _ data: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerBytes + data.count)
    bytes.append(bigEndian: number)
    bytes.append(copying: data)
    return bytes
  }

  /// Reads the receiver's handshake number. Throws if the message is too short or too long.
  public static func number(_ bytes: RawSpan) throws(SessionMessageError) -> UInt32 {
    guard bytes.byteCount >= headerBytes else { throw .truncated }
    guard bytes.byteCount <= headerBytes + SessionLimits.messageBytesMax else { throw .tooLong }
    return bytes.word32(0)
  }
}

/// Kind 23 (window): the sender of this message grants credit for messages in the other direction, or for bytes of a
/// stream. Limits are absolute, so a repeated or late window does no harm.
///
///     0–3 the number of its receiver · 4–7 stream, 0 for messages · 8 bit 0, for messages only: the application
///     does not read at present · 9–11 zero · 12–19 limit
public struct WindowMessage: Equatable, Sendable {
  public var number: UInt32
  public var stream: UInt32
  public var isPaused: Bool
  /// The total number of bytes that may be sent since the handshake, or on the stream.
  public var limit: UInt64

  public init(number: UInt32, stream: UInt32 = 0, isPaused: Bool = false, limit: UInt64) {
    self.number = number
    self.stream = stream
    self.isPaused = isPaused
    self.limit = limit
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    stream = try reader.u32()
    let flags = try reader.u8()
    guard flags <= (stream == 0 ? 1 : 0), try reader.u8() == 0, try reader.u16() == 0 else { throw .reservedNotZero }
    isPaused = flags == 1
    limit = try reader.u64()
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: stream)
    bytes += [isPaused ? 1 : 0, 0, 0, 0]
    bytes.append(bigEndian: limit)
    return bytes
  }
}

/// Kind 27: a request for credit, if the next message costs more than is left, or the return of unused credit.
///
///     0–3 the number of its receiver · 4–11 returned bytes, counted as sent and as taken · 12–19 requested limit,
///     0 for none
public struct NeedMessage: Equatable, Sendable {
  public static let byteCount = 20

  public var number: UInt32
  public var givenBack: UInt64
  public var limit: UInt64

  public init(number: UInt32, givenBack: UInt64, limit: UInt64) {
    self.number = number
    self.givenBack = givenBack
    self.limit = limit
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    givenBack = try reader.u64()
    limit = try reader.u64()
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: givenBack)
    bytes.append(bigEndian: limit)
    return bytes
  }
}
