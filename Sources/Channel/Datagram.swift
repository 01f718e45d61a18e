import Primitives

/// Payload of frame type 34: a message that fits into one frame. A message of frame type 34 is sent once and arrives at
/// most once.
///
///     0–7 destination epoch · 8–15 source epoch · 16 kind · 17–19 reserved 0 ·
///     20–27 number, counted from 1 in each epoch of its sender · 28… message
public struct DatagramView: ~Escapable {
  let payload: RawSpan

  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(PayloadError) {
    guard payload.byteCount >= Datagram.headerBytes else { throw .tooShort }
    guard payload.byteCount <= ChannelLimits.pathMTUMax else { throw .tooLong }
    self.payload = payload
  }

  public var message: RawSpan {
    @_lifetime(copy self) get { payload.extracting(Datagram.headerBytes...) }
  }

  /// Checks every field of the header and returns the header. Throws the first violation.
  public func checked() throws(PayloadError) -> Datagram {
    guard payload.octet(17) == 0, payload.word16(18) == 0 else { throw .reservedNotZero }
    let number = payload.word64(20)
    guard number != 0 else { throw .numberZero }
    return Datagram(
      epochs: EpochPair(payload), kind: payload.octet(16),
      number: number)
  }
}

/// The header of a datagram.
public struct Datagram: Equatable, Sendable {
  public static let headerBytes = 28

  public var epochs: EpochPair
  public var kind: UInt8
  public var number: UInt64

  public init(epochs: EpochPair, kind: UInt8, number: UInt64) {
    self.epochs = epochs
    self.kind = kind
    self.number = number
  }

  /// Writes the header into the first `headerBytes` bytes of `buffer`, which must be at least that long.
  public func encodeHeader(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(epochs)
      output.append(kind)
      output.append(0)
      output.append(bigEndian: UInt16(0))
      output.append(bigEndian: number)
    }
  }
}

/// A message that arrived as a datagram.
public struct ReceivedDatagram: Equatable, Sendable {
  public let kind: UInt8
  public let bytes: [UInt8]
}

/// Counters of a channel's datagrams.
public struct DatagramStatistics: Equatable, Sendable {
  public var sent: UInt64 = 0
  public var received: UInt64 = 0
  /// Dropped datagrams: duplicates, and those with a number older than the replay window.
  public var duplicatesReceived: UInt64 = 0
  /// The number of datagrams dropped before the owner read them, to make room for newer datagrams.
  public var droppedUnread: UInt64 = 0
}
