import Text

/// The exit codes of all commands.
public enum ExitCode {
  public static let done: CInt = 0
  /// The command failed; a line on stderr states the reason.
  public static let failed: CInt = 1
  /// The command line or the configuration is wrong.
  public static let usage: CInt = 2
  /// No daemon answers at the control socket.
  public static let noDaemon: CInt = 3
  /// A time limit of the command has passed.
  public static let timedOut: CInt = 4
  /// A stream was cut: the receiver has only the first part of the bytes that the sender wrote.
  public static let cut: CInt = 5
  /// The peer refused, for example an invitation, a stream or an offer.
  public static let refused: CInt = 6

  public static let help: StaticString =
    """
    Exit codes: 0 done, 1 failed (the reason is on stderr), 2 wrong usage or
    configuration, 3 no daemon answers, 4 timeout, 5 a stream was cut, 6 the peer
    refused.
    """
}

/// A failure that ends a command with an exit code.
public struct CommandError: Error {
  public let code: CInt
  /// The reason, free of control characters. Nil if it was printed before, or if there is nothing to print.
  public let text: [UInt8]?

  public init(_ code: CInt) {
    self.code = code
    text = nil
  }

  /// `text`: the reason, in which control characters are replaced (`TextBuilder.add(message:)`).
  public init(saying text: String, _ code: CInt = ExitCode.failed) {
    var line = TextBuilder()
    line.add(message: text.utf8)
    self.init(saying: line, code)
  }

  public init(saying text: TextBuilder, _ code: CInt = ExitCode.failed) {
    self.code = code
    self.text = text.bytes
  }

  /// Prints the reason on standard error.
  public func report() {
    guard let text else { return }
    var line = TextBuilder()
    for byte in text { line.add(byte: byte) }
    printError(line)
  }
}

/// Runs the body of a command, and prints the reason if it fails. Returns the exit code.
public func run(_ body: () throws(CommandError) -> Void) -> CInt {
  do throws(CommandError) {
    try body()
    return ExitCode.done
  } catch {
    error.report()
    return error.code
  }
}
