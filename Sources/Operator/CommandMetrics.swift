import CommandLine
import Status
import Text

/// `causeway metrics`
public func commandMetrics(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var file: String?
  CommandParser.parse(
    "causeway metrics", words,
    help: "Show the status as OpenMetrics text, for Prometheus and compatible tools.",
    options: ClientOptions.options + [
      CommandOption(
        name: "textfile", key: textfileKey, argument: "FILE",
        help: "Write to FILE atomically, for node_exporter's textfile collector, which reads files that end in .prom")
    ]
  ) { key, value in
    if !options.take(key, value) { file = value }
    return nil
  }
  return run { () throws(CommandError) in
    let json = try fetchStatus(options)
    guard let file else { return try report(json) { $0.metricsText() } }
    let text: TextBuilder
    do throws(AccessError) {
      let report = try StatusReport(json)
      defer { report.release() }
      text = report.metricsText()
    } catch {
      throw CommandError(saying: error.text)
    }
    try Output.replace(file, text, mode: 0o644)
  }
}

private let textfileKey: CInt = 0x74
