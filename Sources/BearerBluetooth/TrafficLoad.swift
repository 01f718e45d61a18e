import Primitives

/// Detects heavy traffic. The load begins when `bytesMin` have passed within `window`, and ends after `calm` without
/// that. So a pause of a transfer changes nothing, and there are at most two changes within `calm`. Pure.
struct TrafficLoad: Equatable {
  static let window = TimeSpan.seconds(1)

  let bytesMin: UInt64
  let calm: TimeSpan
  private var bytes: UInt64 = 0
  private var windowEnd = Instant.zero
  /// When the load ends if nothing more passes.
  private(set) var end = Instant.zero

  init(bytesMin: UInt64, calm: TimeSpan) {
    self.bytesMin = bytesMin
    self.calm = calm
  }

  func isLoaded(_ now: Instant) -> Bool { now < end }

  /// Ends the load, because its cause has ended.
  mutating func ended(_ now: Instant) { end = min(end, now) }

  /// Notes that `count` bytes have passed since the last call. Returns whether the load has begun with them.
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
