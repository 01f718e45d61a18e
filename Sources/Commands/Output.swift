import CSystem
import Diagnostics
import Reactor

/// Standard output of a command. The first failure prints one line; the command then ends with `ExitCode.failed`.
enum Output {
  /// After a failure nothing is written. A command that waits must end when it sees this.
  private(set) nonisolated(unsafe) static var hasFailed = false

  static func put(_ text: TextBuilder) {
    if hasFailed || text.write(to: STDOUT_FILENO) { return }
    hasFailed = true
    let error = SystemError.last
    // A closed pipe is no error: its reader has seen enough.
    if error.code != EPIPE { printError("standard output: \(error.text)") }
  }
}
