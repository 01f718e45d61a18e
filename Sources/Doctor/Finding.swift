/// What one check of the box found.
public struct Finding {
  /// How bad it is.
  public enum State: UInt8, Equatable {
    case good
    /// The box works; somebody may want to know, or something will work less well than it could.
    case note
    /// Something that the configuration asks for cannot work.
    case wrong
  }

  /// What was looked at, one word: a stable name for programs.
  public let check: StaticString
  public let state: State
  /// One line. May contain untrusted text.
  public let text: String
  /// What to do, one line; empty when there is nothing to do.
  public let remedy: String

  public init(_ check: StaticString, _ state: State, _ text: String, remedy: String = "") {
    self.check = check
    self.state = state
    self.text = text
    self.remedy = remedy
  }
}
