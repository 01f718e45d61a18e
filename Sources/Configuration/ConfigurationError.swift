/// An error in a configuration file, or while reading it.
public struct ConfigurationError: Error {
  /// The error in one line: file, line, key, the fault, and the accepted values.
  public let text: String
  /// Whether the user lacks the permission to read the file.
  public let isDenied: Bool

  public init(_ text: String, isDenied: Bool = false) {
    self.text = text
    self.isDenied = isDenied
  }
}
