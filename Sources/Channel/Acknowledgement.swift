import Primitives

/// A payload of frame type 33 whose length was checked.
///
///     0–7 destination epoch · 8–15 source epoch · 16 lane · 17 range count 0–4 · 18–19 reserved 0 ·
///     20–23 timestamp of the newest segment received since the last acknowledgement, 0 if none ·
///     24–31 cumulative offset: every byte below this offset has arrived ·
///     32–39 window limit: the receiver accepts bytes below this offset ·
///     40… ranges that arrived above the cumulative offset: u64 start, u64 end; ascending, disjoint
public struct AcknowledgementView: ~Escapable {
  let payload: RawSpan

  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(PayloadError) {
    guard payload.byteCount == (try Self.byteCount(in: payload)) else { throw .tooLong }
    self.payload = payload
  }

  /// The length of the acknowledgement at the start of a payload, in bytes. The acknowledgement is at most as long as
  /// the payload.
  static func byteCount(in payload: RawSpan) throws(PayloadError) -> Int {
    guard payload.byteCount >= Acknowledgement.headerBytes else { throw .tooShort }
    let rangeCount = Int(payload.octet(17))
    guard rangeCount <= Acknowledgement.rangesMax else { throw .tooManyRanges }
    let length = Acknowledgement.headerBytes + rangeCount * Acknowledgement.rangeBytes
    guard payload.byteCount >= length else { throw .tooShort }
    return length
  }

  /// Checks every field and returns the acknowledgement. Throws the first violation.
  public func checked() throws(PayloadError) -> Acknowledgement {
    let lane = try checkedLane(payload.octet(16), reserved: payload.word16(18))
    var result = Acknowledgement(
      epochs: EpochPair(payload),
      lane: lane, echo: payload.word32(20), cumulative: payload.word64(24), windowLimit: payload.word64(32))
    guard result.cumulative <= ChannelLimits.offsetMax, result.windowLimit <= ChannelLimits.offsetMax else {
      throw .offsetTooLarge
    }
    guard result.windowLimit >= result.cumulative else { throw .windowBelowCumulative }
    var floor = result.cumulative
    for index in 0..<Int(payload.octet(17)) {
      let at = Acknowledgement.headerBytes + index * Acknowledgement.rangeBytes
      let range = ByteRange(start: payload.word64(at), end: payload.word64(at + 8))
      guard range.start > floor, range.end > range.start else { throw .rangesUnordered }
      guard range.end <= ChannelLimits.offsetMax else { throw .offsetTooLarge }
      result.append(range)
      floor = range.end
    }
    return result
  }
}

/// The acknowledgement of one lane: the byte ranges that have arrived, and the receive window.
public struct Acknowledgement: Sendable {
  public static let headerBytes = 40
  public static let rangeBytes = 16
  public static let rangesMax = 4
  public static let bytesMax = headerBytes + rangesMax * rangeBytes

  public var epochs: EpochPair
  public var lane: Lane
  /// The timestamp of the newest segment received since the last acknowledgement; 0 if there was none.
  public var echo: UInt32
  /// The offset below which every byte has arrived.
  public var cumulative: UInt64
  /// The offset below which the receiver accepts bytes: the end of the receive window.
  public var windowLimit: UInt64
  /// The number of ranges that arrived above `cumulative`, at most `rangesMax`.
  public private(set) var rangeCount = 0
  typealias Ranges = FixedArray<4, ByteRange>
  private var ranges = Ranges(repeating: ByteRange(start: 0, end: 0))

  public init(epochs: EpochPair, lane: Lane, echo: UInt32, cumulative: UInt64, windowLimit: UInt64) {
    self.epochs = epochs
    self.lane = lane
    self.echo = echo
    self.cumulative = cumulative
    self.windowLimit = windowLimit
  }

  /// The range at `index`, 0 to `rangeCount` − 1, in ascending order.
  public func range(_ index: Int) -> ByteRange {
    precondition(index < rangeCount)
    return ranges[index]
  }

  /// Adds a range, which must be above all earlier ones. `rangeCount` must be less than `rangesMax`.
  public mutating func append(_ range: ByteRange) {
    precondition(rangeCount < Self.rangesMax)
    ranges[rangeCount] = range
    rangeCount += 1
  }

  public var byteCount: Int { Self.headerBytes + rangeCount * Self.rangeBytes }

  /// Writes `byteCount` bytes to the start of `buffer`, which must be at least that long.
  public func encode(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(epochs)
      output.append(lane.rawValue)
      output.append(UInt8(rangeCount))
      output.append(bigEndian: UInt16(0))
      output.append(bigEndian: echo)
      output.append(bigEndian: cumulative)
      output.append(bigEndian: windowLimit)
      for index in 0..<rangeCount {
        output.append(bigEndian: ranges[index].start)
        output.append(bigEndian: ranges[index].end)
      }
    }
  }
}
