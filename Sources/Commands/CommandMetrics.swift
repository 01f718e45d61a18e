import CSystem
import Configuration
import Diagnostics
import Reactor

/// `causeway metrics`
func commandMetrics(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var file: String?
  CommandParser.parse(
    "causeway metrics", words,
    help: "Show the status as OpenMetrics text, for Prometheus and what reads its formats.",
    options: ClientOptions.options + [
      CommandOption(
        name: "textfile", key: textfileKey, argument: "FILE",
        help: "Write it there, at once as a whole: for node_exporter's textfile collector, whose files end in .prom")
    ]
  ) { key, value in
    if !options.take(key, value) { file = value }
    return nil
  }
  return run { () throws(CommandFailure) in
    let json = try fetchStatus(options)
    guard let file else { return try report(json) { $0.metricsText() } }
    do throws(DiagnosticsError) {
      let report = try StatusReport(json)
      defer { report.release() }
      try replace(file, report.metricsText())
    } catch {
      throw CommandFailure(saying: error.text)
    }
  }
}

private let textfileKey: CInt = 0x74

/// Writes beside the file, and renames over it: a reader sees the old text or the new one.
private func replace(_ path: String, _ text: TextBuilder) throws(DiagnosticsError) {
  let fresh = path + ".new"
  let descriptor = csystem_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
  guard descriptor >= 0 else { throw DiagnosticsError("\(fresh): \(SystemError.last.text)") }
  var isWritten = text.write(to: descriptor)
  var error = SystemError.last
  close(descriptor)
  if isWritten && rename(fresh, path) != 0 {
    isWritten = false
    error = .last
  }
  if !isWritten {
    unlink(fresh)
    throw DiagnosticsError("\(path): \(error.text)")
  }
}
