import CSystem
import Diagnostics
import Reactor

/// The standard output of a command. The first failure prints one line; the command then ends with `ExitCode.failed`.
enum Output {
  /// Whether writing has failed. Nothing is written after that, and a command that waits must end.
  private(set) nonisolated(unsafe) static var hasFailed = false

  /// The output width: the terminal's, or 80 columns without one, as over SSH.
  static var columns: Int {
    var size = winsize()
    return csystem_terminal_size(STDOUT_FILENO, &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  /// Whether standard output is a terminal with colours whose user did not set NO_COLOR (no-color.org).
  static var isColoured: Bool {
    if let setting = getenv("NO_COLOR"), setting.pointee != 0 { return false }
    if let type = getenv("TERM"), strcmp(type, "dumb") == 0 || type.pointee == 0 { return false }
    return isatty(STDOUT_FILENO) == 1
  }

  /// The question shown on a terminal. The cursor is behind it, so other output starts on a new line and repeats it.
  private static nonisolated(unsafe) var question: (text: TextBuilder, terminal: CInt)?
  private static nonisolated(unsafe) let isTerminal = isatty(STDOUT_FILENO) == 1

  /// Prints a question. It stays the last line on the terminal until `endQuestion`.
  static func ask(_ text: TextBuilder, on terminal: CInt) {
    question = (text, terminal)
    text.write(to: terminal)
  }

  /// Ends the question. An answer has already ended its line on the terminal.
  static func endQuestion(isAnswered: Bool) {
    if !isAnswered, let question { TextBuilder("\n").write(to: question.terminal) }
    question = nil
  }

  /// Calls `body` to write to the terminal, above the question if there is one.
  private static func aboveQuestion(_ body: () -> Void) {
    guard let question else { return body() }
    TextBuilder("\n").write(to: question.terminal)
    body()
    question.text.write(to: question.terminal)
  }

  /// Writes one line to standard error, after the program's name. The text is already sanitised.
  static func putError(_ text: TextBuilder) {
    var line = TextBuilder("causeway: ")
    line.add(text)
    line.add("\n")
    aboveQuestion { line.write(to: STDERR_FILENO) }
  }

  static func put(_ text: TextBuilder) {
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
    // A closed pipe is not an error: its reader wants no more output.
    if error.code != EPIPE { printError("standard output: \(error.text)") }
  }

  /// Replaces a file atomically: writes a new file beside it and renames it. Readers see the old text or the new one. A
  /// write that fails leaves nothing behind.
  static func replace(_ path: String, _ text: TextBuilder, mode: mode_t) throws(CommandFailure) {
    let fresh = "\(path).new-\(getpid())"
    let descriptor = csystem_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw CommandFailure(saying: "\(fresh): \(SystemError.last.text)") }
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
    throw CommandFailure(saying: "\(path): \(error.text)")
  }
}
