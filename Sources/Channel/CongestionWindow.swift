/// How many bytes of a lane may be in flight: slow start, additive increase and multiplicative decrease as in
/// RFC 5681, counted in bytes, and kept from filling the queues of a slow hop with seconds of data.
struct CongestionWindow {
  private(set) var bytes: UInt64
  private(set) var threshold: UInt64 = .max
  private let bytesMax: UInt64
  private var acknowledgedInAvoidance: UInt64 = 0
  private var acknowledgedWhileSlow: UInt64 = 0

  init(bytesMax: UInt64, segmentBytes: UInt64) {
    self.bytesMax = bytesMax
    bytes = min(bytesMax, Self.initialBytes(segmentBytes: segmentBytes))
  }

  /// RFC 6928 section 2.
  static func initialBytes(segmentBytes: UInt64) -> UInt64 { min(10 * segmentBytes, max(2 * segmentBytes, 14_600)) }

  /// `count` bytes were acknowledged while `flight` bytes were out and the latest segment had spent
  /// `queueing` milliseconds waiting.
  mutating func acknowledged(_ count: UInt64, flight: UInt64, segmentBytes: UInt64, queueing: UInt64) {
    guard queueing <= ChannelLimits.queueingMilliseconds else {
      leaveSlowStart()
      easeOff(count, segmentBytes: segmentBytes, queueing: queueing)
      return
    }
    acknowledgedWhileSlow = 0
    if bytes < threshold {
      // A sender that does not fill its window has not shown that a larger one would fit (RFC 7661).
      guard flight * 2 >= bytes else { return }
      // RFC 3465: at most two segments for one acknowledgement, however many bytes it covers.
      grow(by: min(count, 2 * segmentBytes))
    } else {
      guard flight + 2 * segmentBytes >= bytes else { return }
      acknowledgedInAvoidance += count
      guard acknowledgedInAvoidance >= bytes else { return }
      acknowledgedInAvoidance -= bytes
      grow(by: segmentBytes)
    }
  }

  /// Bytes are missing while others arrive.
  mutating func lost(flight: UInt64, segmentBytes: UInt64) {
    threshold = max(flight / 2, 2 * segmentBytes)
    bytes = min(threshold, bytesMax)
    acknowledgedInAvoidance = 0
  }

  /// Nothing arrives.
  mutating func timedOut(flight: UInt64, segmentBytes: UInt64) {
    threshold = max(flight / 2, 2 * segmentBytes)
    bytes = segmentBytes
    acknowledgedInAvoidance = 0
  }

  /// After silence the old window says nothing any more (RFC 5681 section 4.1).
  mutating func idled(segmentBytes: UInt64) { bytes = min(bytes, Self.initialBytes(segmentBytes: segmentBytes)) }

  private mutating func grow(by count: UInt64) { bytes = min(bytes + count, bytesMax) }

  private mutating func leaveSlowStart() { threshold = min(threshold, bytes) }

  /// With three times the allowed queueing a window's worth of acknowledgements takes an eighth off, down to
  /// the initial window: a hop that became slow without dropping anything.
  private mutating func easeOff(_ count: UInt64, segmentBytes: UInt64, queueing: UInt64) {
    guard queueing > 3 * ChannelLimits.queueingMilliseconds else { return }
    acknowledgedWhileSlow += count
    guard acknowledgedWhileSlow >= bytes else { return }
    acknowledgedWhileSlow = 0
    bytes = max(bytes - bytes / 8, min(bytes, Self.initialBytes(segmentBytes: segmentBytes)))
    threshold = min(threshold, bytes)
  }
}
