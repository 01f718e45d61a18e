import Primitives

/// Why bytes are not a valid payload. Each case has its own counter.
public enum PayloadError: UInt8, Error, Sendable, CaseIterable {
  /// The payload is shorter than its fixed part, or than its range count requires.
  case tooShort
  /// The payload is longer than its range count requires, or than any frame.
  case tooLong
  case unknownLane
  /// Flags or reserved bytes are not 0.
  case reservedNotZero
  /// An acknowledgement has more than 4 ranges.
  case tooManyRanges
  /// A range is empty, is out of order, or touches the preceding range or the cumulative offset.
  case rangesUnordered
  /// The window limit is below the cumulative offset.
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

/// The epochs of a payload's sender and of its addressed receiver. Segments, acknowledgements and datagrams begin with
/// this pair.
public struct EpochPair: Equatable, Sendable {
  public var destination: UInt64
  public var source: UInt64

  public init(destination: UInt64, source: UInt64) {
    self.destination = destination
    self.source = source
  }

  /// Reads the pair from the first 16 bytes of a payload, which must be at least that long.
  init(_ payload: RawSpan) { self.init(destination: payload.word64(0), source: payload.word64(8)) }
}

extension OutputRawSpan {
  @_lifetime(self: copy self)
  mutating func append(_ epochs: EpochPair) {
    append(bigEndian: epochs.destination)
    append(bigEndian: epochs.source)
  }
}

/// The lane of a segment or acknowledgement. `raw` is byte 16 of the payload, and `reserved` is bytes 18–19, which must
/// be 0.
func checkedLane(_ raw: UInt8, reserved: UInt16) throws(PayloadError) -> Lane {
  guard let lane = Lane(rawValue: raw) else { throw .unknownLane }
  guard reserved == 0 else { throw .reservedNotZero }
  return lane
}
