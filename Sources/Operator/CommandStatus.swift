import CommandLine
import ControlSocket
import Status
import Text

/// `causeway status`
public func commandStatus(_ words: CommandWords) -> CInt {
  show(words, "causeway status", "Show the box, its bearers, links and peers.") { $0.text() }
}

/// `causeway peers`
public func commandPeers(_ words: CommandWords) -> CInt {
  show(words, "causeway peers", "Show the peers in reach, with bearer and number of links.", "peers") {
    $0.peersText()
  }
}

/// `causeway links`
public func commandLinks(_ words: CommandWords) -> CInt {
  show(words, "causeway links", "Show the links to neighbours: bearer, age, speed, traffic.", "links") {
    $0.linksText()
  }
}

/// `causeway radios`
public func commandRadios(_ words: CommandWords) -> CInt {
  show(words, "causeway radios", "Show the state of each radio and other bearer.", "bearers") {
    $0.bearersText()
  }
}

/// Shows the complete status or one part of the status. `part`: the member to print with --json; nil prints the
/// complete JSON.
private func show(
  _ words: CommandWords, _ command: StaticString, _ help: StaticString, _ part: StaticString? = nil,
  _ text: (StatusReport) -> TextBuilder
) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    command, words, help: help,
    options: ClientOptions.options + [
      CommandOption(name: "json", key: LocalOptions.jsonKey, argument: nil, help: "Print the daemon's answer as JSON")
    ]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  return run { () throws(CommandError) in
    let json = try fetchStatus(options)
    try report(json) { report in
      if !isJSON { return text(report) }
      var text = TextBuilder()
      for byte in part.map({ report.json(of: $0) }) ?? json { text.add(byte: byte) }
      return text
    }
  }
}

func fetchStatus(_ options: ClientOptions) throws(CommandError) -> [UInt8] {
  let client = try options.connect()
  do throws(AccessError) {
    return try client.status()
  } catch {
    throw CommandError(saying: error.text)
  }
}

func report(_ json: [UInt8], _ text: (StatusReport) -> TextBuilder) throws(CommandError) {
  do throws(AccessError) {
    let report = try StatusReport(json, columns: Output.columns)
    defer { report.release() }
    Output.put(text(report))
  } catch {
    throw CommandError(saying: error.text)
  }
}
