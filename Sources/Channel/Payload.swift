import Primitives

/// Why bytes are not a valid payload. Each case has its own counter.
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
  /// A reset whose two epochs are equal.
  case sameEpoch
  /// A datagram with number 0.
  case numberZero
  /// An acknowledgement and a segment in one payload with different epochs.
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

  /// Reads the first 16 bytes of a payload, which must be at least as long.
  init(_ payload: RawSpan) { self.init(destination: payload.word64(0), source: payload.word64(8)) }
}

extension OutputRawSpan {
  @_lifetime(self: copy self)
  mutating func append(_ epochs: EpochPair) {
    append(bigEndian: epochs.destination)
    append(bigEndian: epochs.source)
  }
}

/// The lane in bytes 16–19 of segments and acknowledgements: lane, one byte that the payload defines, 2 reserved.
func checkedLane(_ raw: UInt8, reserved: UInt16) throws(PayloadRefusal) -> Lane {
  guard let lane = Lane(rawValue: raw) else { throw .unknownLane }
  guard reserved == 0 else { throw .reservedNotZero }
  return lane
}
