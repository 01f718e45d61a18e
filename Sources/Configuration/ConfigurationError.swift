/// One thing that is wrong with a configuration, ready to be shown.
public struct ConfigurationError: Error {
  /// One line: file, line, key, what is wrong and what would be accepted.
  public let text: String
  public init(_ text: String) { self.text = text }
}
