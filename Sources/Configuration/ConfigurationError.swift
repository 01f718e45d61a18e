/// An error in a configuration.
public struct ConfigurationError: Error {
  /// One line: file, line, key, what is wrong and what would be accepted.
  public let text: String
  public init(_ text: String) { self.text = text }
}
