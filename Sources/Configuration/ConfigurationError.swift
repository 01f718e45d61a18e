/// An error in a configuration.
public struct ConfigurationError: Error {
  /// One line: file, line, key, what is wrong and what would be accepted.
  public let text: String
  /// The user may not read the file.
  public let isDenied: Bool

  public init(_ text: String, isDenied: Bool = false) {
    self.text = text
    self.isDenied = isDenied
  }
}
