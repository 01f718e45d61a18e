import Primitives

/// A payload of frame type 32 whose length was checked.
///
///     0–7 destination epoch · 8–15 source epoch · 16 lane · 17 flags 0 · 18–19 reserved 0 ·
///     20–23 sender's timestamp in µs, never 0 · 24–31 offset of the first byte · 32… data, at least 1 byte
public struct SegmentView: ~Escapable {
  let payload: RawSpan

  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(PayloadError) {
    guard payload.byteCount > Segment.headerBytes else { throw .tooShort }
    guard payload.byteCount <= ChannelLimits.pathMTUMax else { throw .tooLong }
    self.payload = payload
  }

  /// The bytes of the stream that the segment carries.
  public var data: RawSpan {
    @_lifetime(copy self) get { payload.extracting(Segment.headerBytes...) }
  }

  /// Checks every field of the header and returns the header. Throws the first violation.
  public func checked() throws(PayloadError) -> Segment {
    let lane = try checkedLane(payload.octet(16), reserved: payload.word16(18))
    guard payload.octet(17) == 0 else { throw .reservedNotZero }
    let offset = payload.word64(24)
    guard offset <= ChannelLimits.offsetMax else { throw .offsetTooLarge }
    return Segment(
      epochs: EpochPair(payload),
      lane: lane, timestamp: payload.word32(20), offset: offset)
  }
}

/// The header fields of a segment.
public struct Segment: Equatable, Sendable {
  public static let headerBytes = 32

  public var epochs: EpochPair
  public var lane: Lane
  /// The sender's timestamp. The receiver only echoes the timestamp in an acknowledgement.
  public var timestamp: UInt32
  /// The stream offset of the first data byte.
  public var offset: UInt64

  public init(epochs: EpochPair, lane: Lane, timestamp: UInt32, offset: UInt64) {
    self.epochs = epochs
    self.lane = lane
    self.timestamp = timestamp
    self.offset = offset
  }

  /// Writes the header into the first `headerBytes` bytes of `buffer`, which must be at least that long.
  public func encodeHeader(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(epochs)
      output.append(lane.rawValue)
      output.append(0)
      output.append(bigEndian: UInt16(0))
      output.append(bigEndian: timestamp)
      output.append(bigEndian: offset)
    }
  }
}
