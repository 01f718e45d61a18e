import Primitives

extension Instant {
  /// The timestamp of a segment: microseconds modulo 2³², never 0, because 0 means "no timestamp".
  var timestamp: UInt32 {
    let microseconds = UInt32(truncatingIfNeeded: nanoseconds / 1_000)
    return microseconds == 0 ? 1 : microseconds
  }
}

extension UInt32 {
  /// Microseconds from `earlier` to this timestamp, negative when `earlier` is later. The result is valid if the two
  /// are less than 35 minutes apart.
  func elapsed(since earlier: UInt32) -> Int64 { Int64(Int32(bitPattern: self &- earlier)) }
}
