import Configuration
import Diagnostics

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
    let text: TextBuilder
    do throws(DiagnosticsError) {
      let report = try StatusReport(json)
      defer { report.release() }
      text = report.metricsText()
    } catch {
      throw CommandFailure(saying: error.text)
    }
    try Output.replace(file, text, mode: 0o644)
  }
}

private let textfileKey: CInt = 0x74
