import CSystem
import Diagnostics

/// `causeway status`
func commandStatus(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    "causeway status", words, help: "Show the box, its bearers, links and peers.",
    options: ClientOptions.options + [
      CommandOption(name: "json", key: 0x6A, argument: nil, help: "Print the daemon's answer as it is: JSON")
    ]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  return run { () throws(CommandFailure) in
    let json = try fetchStatus(options)
    if isJSON {
      var text = TextBuilder()
      for byte in json { text.add(byte: byte) }
      Output.put(text)
    } else {
      try report(json) { $0.text() }
    }
  }
}

/// `causeway peers`
func commandPeers(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  CommandParser.parse(
    "causeway peers", words, help: "Show who can be reached, over which bearer and by how many links.",
    options: ClientOptions.options
  ) { key, value in
    _ = options.take(key, value)
    return nil
  }
  return run { () throws(CommandFailure) in try report(fetchStatus(options)) { $0.peersText() } }
}

func fetchStatus(_ options: ClientOptions) throws(CommandFailure) -> [UInt8] {
  let client = try options.connect()
  do throws(DiagnosticsError) {
    return try client.status()
  } catch {
    throw CommandFailure(saying: error.text)
  }
}

func report(_ json: [UInt8], _ text: (StatusReport) -> TextBuilder) throws(CommandFailure) {
  do throws(DiagnosticsError) {
    let report = try StatusReport(json)
    defer { report.release() }
    Output.put(text(report))
  } catch {
    throw CommandFailure(saying: error.text)
  }
}
