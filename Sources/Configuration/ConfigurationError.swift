/// An error in a configuration file, or while reading it.
public struct ConfigurationError: Error {
  /// The text of the error in one line: the file, the line, the key, the fault, and the accepted values.
  public let text: String
  /// Whether the error is that the user has no permission to read the file.
  public let isDenied: Bool

  public init(_ text: String, isDenied: Bool = false) {
    self.text = text
    self.isDenied = isDenied
  }
}
