import CSystem
import Diagnostics
import Reactor

/// Standard output of a command. The first failure prints one line; the command then ends with `ExitCode.failed`.
enum Output {
  /// After a failure nothing is written. A command that waits must end when it sees this.
  private(set) nonisolated(unsafe) static var hasFailed = false

  /// How wide text may be that is made for people: as the terminal, and 80 where there is none, as over SSH.
  static var columns: Int {
    var size = winsize()
    return csystem_terminal_size(STDOUT_FILENO, &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  static func put(_ text: TextBuilder) {
    if hasFailed || text.write(to: STDOUT_FILENO) { return }
    hasFailed = true
    let error = SystemError.last
    // A closed pipe is no error: its reader has seen enough.
    if error.code != EPIPE { printError("standard output: \(error.text)") }
  }
}
