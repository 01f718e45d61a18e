/// How much a journal record matters. Lower values matter more; the raw value stands in the journal file.
public enum Level: UInt8, Comparable, Sendable {
  /// The box cannot go on: a broken invariant, no memory.
  case fault = 0
  /// Something asked for cannot be done, and stays so until somebody acts.
  case error = 1
  /// Something is absent or refused; the box goes on without it and watches for it.
  case warning = 2
  /// What an operator wants to see of a normal day: peers and links that come and go.
  case notice = 3
  /// Steps on the way to those.
  case info = 4
  /// Single frames and timers.
  case debug = 5

  @inlinable public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }

  /// The word used in the log, in the configuration and on the command line.
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
