/// The result of one check of the machine.
public struct Finding {
  /// The severity of a finding.
  public enum State: UInt8, Equatable {
    case good
    /// The box works, but not as well as possible, or the check found something that the operator should know.
    case note
    /// A configured feature cannot work.
    case wrong
  }

  /// A stable name of the check for programs: one word.
  public let check: StaticString
  public let state: State
  /// The finding in one line. The text of the finding may contain untrusted text.
  public let text: String
  /// The advice in one line; empty if there is nothing to do.
  public let remedy: String

  public init(_ check: StaticString, _ state: State, _ text: String, remedy: String = "") {
    self.check = check
    self.state = state
    self.text = text
    self.remedy = remedy
  }
}
