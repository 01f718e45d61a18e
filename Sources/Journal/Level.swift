/// The severity of a record. Lower values are more severe. The raw value is stored in the journal file.
public enum Level: UInt8, Comparable, Sendable {
  /// The daemon cannot continue: an invariant is violated, or memory is exhausted.
  case fault = 0
  /// A request fails until a person acts.
  case error = 1
  /// A resource is missing, or something was refused. The daemon continues without the missing resource, and checks
  /// later whether the lack has ended.
  case warning = 2
  /// Normal operation, such as peers and links that appear and disappear.
  case notice = 3
  /// Intermediate steps of normal operation.
  case info = 4
  /// Individual frames and timers.
  case debug = 5

  @inlinable public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }

  /// The name of the level in the log, in the configuration and on the command line.
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
