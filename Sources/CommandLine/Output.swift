import CSystem
import Reactor
import Text

/// The standard output of a command. After the first failed write one line is printed on standard error, and the
/// command ends with `ExitCode.failed`.
public enum Output {
  /// Whether a write has failed. After a failure nothing is written, and a command that waits for events must end.
  public private(set) nonisolated(unsafe) static var hasFailed = false

  /// The width of standard output in columns. It is 80 if standard output is not a terminal, as when SSH runs a
  /// command.
  public static var columns: Int {
    var size = winsize()
    return csystem_terminal_size(STDOUT_FILENO, &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  /// Whether standard output is a terminal with colours, and the user has not disabled colours by NO_COLOR
  /// (no-color.org).
  public static var isColoured: Bool {
    if let setting = getenv("NO_COLOR"), setting.pointee != 0 { return false }
    if let type = getenv("TERM"), strcmp(type, "dumb") == 0 || type.pointee == 0 { return false }
    return isatty(STDOUT_FILENO) == 1
  }

  /// The question shown on a terminal; nil if none is shown. The cursor is at its end, so other output starts on a new
  /// line, and the question is printed again below.
  private static nonisolated(unsafe) var question: (text: TextBuilder, terminal: CInt)?
  private static let isTerminal = isatty(STDOUT_FILENO) == 1

  /// Prints a question, which is kept as the last line on the terminal until `endQuestion`.
  public static func ask(_ text: TextBuilder, on terminal: CInt) {
    question = (text, terminal)
    text.write(to: terminal)
  }

  /// Ends the shown question. If it was answered, the user's return key has already ended the line; otherwise a line
  /// feed ends it.
  public static func endQuestion(isAnswered: Bool) {
    if !isAnswered, let question { TextBuilder("\n").write(to: question.terminal) }
    question = nil
  }

  /// Calls `body`, which writes to the terminal, and prints the question again below if one is shown.
  private static func aboveQuestion(_ body: () -> Void) {
    guard let question else { return body() }
    TextBuilder("\n").write(to: question.terminal)
    body()
    question.text.write(to: question.terminal)
  }

  /// Writes one line to standard error, after the program's name. `text` must already be free of control characters.
  public static func putError(_ text: TextBuilder) {
    var line = TextBuilder("causeway: ")
    line.add(text)
    line.add("\n")
    aboveQuestion { line.write(to: STDERR_FILENO) }
  }

  public static func put(_ text: TextBuilder) {
    if hasFailed { return }
    var isWritten = false
    if isTerminal {
      aboveQuestion { isWritten = text.write(to: STDOUT_FILENO) }
    } else {
      isWritten = text.write(to: STDOUT_FILENO)
    }
    if isWritten { return }
    hasFailed = true
    let error = SystemError.last
    // EPIPE is not reported, because the reader of the pipe has chosen to read no more.
    if error.code != EPIPE { printError("standard output: \(error.text)") }
  }

  /// Replaces a file atomically: writes a new file in the same directory and renames it to `path`. Readers see the old
  /// text or the new text. After a failed write the new file is removed.
  public static func replace(_ path: String, _ text: TextBuilder, mode: mode_t) throws(CommandError) {
    let fresh = "\(path).new-\(getpid())"
    let descriptor = csystem_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw CommandError(saying: "\(fresh): \(SystemError.last.text)") }
    var isWritten = text.write(to: descriptor)
    var error = SystemError.last
    if close(descriptor) != 0 && isWritten {
      isWritten = false
      error = .last
    }
    if isWritten && rename(fresh, path) != 0 {
      isWritten = false
      error = .last
    }
    if isWritten { return }
    unlink(fresh)
    throw CommandError(saying: "\(path): \(error.text)")
  }
}

/// Prints one line on standard output. Control characters in `text` are replaced (`TextBuilder.add(message:)`).
public func show(_ prefix: StaticString, _ text: String) {
  var line = TextBuilder()
  line.add(prefix)
  line.add(message: text.utf8)
  line.add("\n")
  Output.put(line)
}

/// Prints one line on standard error, after the program's name. Control characters in `text` are replaced
/// (`TextBuilder.add(message:)`).
public func printError(_ text: String) {
  var line = TextBuilder()
  line.add(message: text.utf8)
  Output.putError(line)
}

/// Prints one line on standard error, after the program's name. `text` must already be free of control characters.
public func printError(_ text: TextBuilder) { Output.putError(text) }
