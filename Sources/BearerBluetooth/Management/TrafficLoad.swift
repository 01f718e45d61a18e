import Primitives

/// Detects heavy traffic, called the load. The load begins when `bytesMin` bytes have passed within `window`, and ends
/// when no such window has occurred for `calm`. So a short pause of a transfer does not end the load, and the state
/// changes at most twice within `calm`. The type does no I/O.
struct TrafficLoad: Equatable {
  static let window = TimeSpan.seconds(1)

  let bytesMin: UInt64
  let calm: TimeSpan
  private var bytes: UInt64 = 0
  private var windowEnd = Instant.zero
  /// When the load ends if no more traffic passes.
  private(set) var end = Instant.zero

  init(bytesMin: UInt64, calm: TimeSpan) {
    self.bytesMin = bytesMin
    self.calm = calm
  }

  func isLoaded(_ now: Instant) -> Bool { now < end }

  /// Ends the load, because the cause of the traffic has ended.
  mutating func ended(_ now: Instant) { end = min(end, now) }

  /// Notes that `count` bytes have passed since the last call. Returns whether the load has begun with these bytes.
  mutating func passed(_ count: UInt64, _ now: Instant) -> Bool {
    if now >= windowEnd {
      bytes = 0
      windowEnd = now + Self.window
    }
    bytes = bytes.addingReportingOverflow(count).partialValue
    guard bytes >= bytesMin else { return false }
    let begins = !isLoaded(now)
    end = now + calm
    return begins
  }
}
