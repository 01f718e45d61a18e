import CSystem

/// A failed access to a file or socket, or an answer that cannot be understood.
public struct AccessError: Error {
  /// The error and the advice, in one line.
  public let text: String
  /// Whether this user lacks the permission.
  public let isDenied: Bool

  public init(_ text: String, isDenied: Bool = false) {
    self.text = text
    self.isDenied = isDenied
  }

  /// The daemon's answer to a command is not what this version expects.
  public static let notUnderstood = AccessError(
    "the daemon's answer is not understood; does it have another version?")

  /// The error of the system call that failed last on this thread. `what`: the file or socket, as the start of the
  /// text.
  public static func system(_ what: String, _ advice: String = "") -> AccessError {
    AccessError("\(what): \(String(cString: strerror(csystem_errno())))\(advice)")
  }
}
