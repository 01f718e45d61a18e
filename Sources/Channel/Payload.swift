import Primitives

/// Why bytes are not a valid payload. Counted by name.
public enum PayloadRefusal: UInt8, Error, Sendable, CaseIterable {
  /// Shorter than its fixed part or than its range count requires.
  case tooShort
  /// Longer than its range count requires or than any frame.
  case tooLong
  case unknownLane
  /// Flags or reserved bytes are not 0.
  case reservedNotZero
  /// More than 4 ranges.
  case tooManyRanges
  /// A range is empty, touches its predecessor or the cumulative offset, or is out of order.
  case rangesUnordered
  /// The window ends below the cumulative offset.
  case windowBelowCumulative
  /// An offset beyond `ChannelLimits.offsetMax`.
  case offsetTooLarge
  /// A reset that names one epoch twice.
  case sameEpoch
  /// A datagram without a number.
  case numberZero
  /// An acknowledgement and a segment in one payload that name other epochs.
  case epochsDiffer
}

/// A half-open range of stream offsets.
public struct ByteRange: Equatable, Sendable {
  public var start: UInt64
  public var end: UInt64

  public init(start: UInt64, end: UInt64) {
    self.start = start
    self.end = end
  }

  var byteCount: UInt64 { end - start }
}

/// The epochs of the sender and of the addressed receiver. Segments, acknowledgements and datagrams begin with them.
public struct EpochPair: Equatable, Sendable {
  public var destination: UInt64
  public var source: UInt64

  public init(destination: UInt64, source: UInt64) {
    self.destination = destination
    self.source = source
  }

  /// What a payload of at least 16 bytes begins with.
  init(_ payload: RawSpan) { self.init(destination: payload.word64(0), source: payload.word64(8)) }
}

extension OutputRawSpan {
  @_lifetime(self: copy self)
  mutating func append(_ epochs: EpochPair) {
    append(bigEndian: epochs.destination)
    append(bigEndian: epochs.source)
  }
}

/// Bytes 16–19 of segments and acknowledgements: lane, one byte that the payload defines, 2 reserved.
func checkedLane(_ raw: UInt8, reserved: UInt16) throws(PayloadRefusal) -> Lane {
  guard let lane = Lane(rawValue: raw) else { throw .unknownLane }
  guard reserved == 0 else { throw .reservedNotZero }
  return lane
}
