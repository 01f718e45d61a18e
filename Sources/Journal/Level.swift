/// The severity of a record. Lower values are more severe; the raw value is stored in the journal file.
public enum Level: UInt8, Comparable, Sendable {
  /// The daemon cannot continue: a broken invariant, no memory.
  case fault = 0
  /// A request cannot be fulfilled until a person acts.
  case error = 1
  /// Something is missing or refused; the daemon continues without it and watches for it.
  case warning = 2
  /// Normal operation: peers and links that come and go.
  case notice = 3
  /// Intermediate steps of those.
  case info = 4
  /// Single frames and timers.
  case debug = 5

  @inlinable public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }

  /// The word in the log, in the configuration and on the command line.
  public var name: StaticString {
    switch self {
    case .fault: "fault"
    case .error: "error"
    case .warning: "warning"
    case .notice: "notice"
    case .info: "info"
    case .debug: "debug"
    }
  }
}
