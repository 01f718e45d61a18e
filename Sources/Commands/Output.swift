import CSystem
import Diagnostics
import Reactor

/// Standard output of a command. The first failure is told in one line; the command then ends with `ExitCode.failed`.
enum Output {
  /// Nothing more is written. A command that waits for something ends as soon as it sees this.
  private(set) nonisolated(unsafe) static var hasFailed = false

  static func put(_ text: TextBuilder) {
    if hasFailed || text.write(to: STDOUT_FILENO) { return }
    hasFailed = true
    let error = SystemError.last
    // Who closed the other end of a pipe has seen enough.
    if error.code != EPIPE { printError("standard output: \(error.text)") }
  }
}
