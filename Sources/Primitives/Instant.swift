/// A duration in nanoseconds. A duration is never negative: subtraction of instants saturates at zero.
public struct TimeSpan: Comparable, Sendable {
  public var nanoseconds: UInt64

  @inlinable public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
  @inlinable public static func microseconds(_ n: UInt64) -> TimeSpan { TimeSpan(nanoseconds: n &* 1_000) }
  @inlinable public static func milliseconds(_ n: UInt64) -> TimeSpan { TimeSpan(nanoseconds: n &* 1_000_000) }
  @inlinable public static func seconds(_ n: UInt64) -> TimeSpan { TimeSpan(nanoseconds: n &* 1_000_000_000) }

  @inlinable public var microseconds: UInt64 { nanoseconds / 1_000 }
  @inlinable public var milliseconds: UInt64 { nanoseconds / 1_000_000 }

  @inlinable public static func < (a: TimeSpan, b: TimeSpan) -> Bool { a.nanoseconds < b.nanoseconds }
  @inlinable public static func + (a: TimeSpan, b: TimeSpan) -> TimeSpan {
    let (sum, overflow) = a.nanoseconds.addingReportingOverflow(b.nanoseconds)
    return TimeSpan(nanoseconds: overflow ? .max : sum)
  }
  @inlinable public static func * (a: TimeSpan, factor: UInt64) -> TimeSpan {
    let (product, overflow) = a.nanoseconds.multipliedReportingOverflow(by: factor)
    return TimeSpan(nanoseconds: overflow ? .max : product)
  }
  @inlinable public static func / (a: TimeSpan, divisor: UInt64) -> TimeSpan {
    TimeSpan(nanoseconds: a.nanoseconds / divisor)
  }
}

/// A point on the monotonic clock, in nanoseconds since an origin that only the rim knows. The core receives every
/// instant as an argument and never reads a clock.
public struct Instant: Comparable, Sendable {
  public var nanoseconds: UInt64

  @inlinable public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
  public static let zero = Instant(nanoseconds: 0)
  /// An instant later than every instant of a clock. As a deadline, this value means "no deadline".
  public static let never = Instant(nanoseconds: .max)

  @inlinable public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }
  @inlinable public static func + (a: Instant, span: TimeSpan) -> Instant {
    let (sum, overflow) = a.nanoseconds.addingReportingOverflow(span.nanoseconds)
    return Instant(nanoseconds: overflow ? .max : sum)
  }
  /// The span from `b` to `a`; zero when `b` is later.
  @inlinable public static func - (a: Instant, b: Instant) -> TimeSpan {
    TimeSpan(nanoseconds: a.nanoseconds > b.nanoseconds ? a.nanoseconds - b.nanoseconds : 0)
  }
}
