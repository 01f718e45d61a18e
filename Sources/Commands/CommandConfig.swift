import Configuration
import Diagnostics
import Primitives
import Trust

/// `causeway config COMMAND`
func commandConfig(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway config",
    [Command(name: "check", summary: "read a configuration and name its first mistake", run: configCheck)],
    help: "The box's configuration. It needs no daemon.")
}

private func configCheck(_ words: CommandWords) -> CInt {
  var path: String?
  CommandParser.parse(
    "causeway config check", words,
    help: "Read a configuration as the daemon would, with policy ca its anchors too, and change nothing.",
    options: [configOption]
  ) { _, value in
    path = value
    return nil
  }
  guard let configuration = loadConfiguration(path) else { return ExitCode.usage }
  if configuration.trust.policy == .authority {
    let anchors = TrustAnchors(directory: configuration.trust.anchors)
    for fault in anchors.faults { printError("\(fault.text); \(fault.effect)") }
    if !anchors.faults.isEmpty { return ExitCode.failed }
    if anchors.certificateCount == 0 {
      printError(
        "[trust] policy is ca, and \(configuration.trust.anchors) holds no certificate: only pinned peers are let in")
      return ExitCode.failed
    }
    for text in anchors.unmatched { printError("note: \(text)") }
  }
  var text = TextBuilder()
  text.add("good; the box is “")
  text.add(untrusted: configuration.node.displayName.utf8)
  text.add("”\n")
  Output.put(text)
  return ExitCode.done
}

/// `causeway reload`
func commandReload(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  CommandParser.parse(
    "causeway reload", words,
    help:
      "The daemon reads its configuration again. A file with a mistake is refused, and the daemon goes on with what it has.",
    options: ClientOptions.options
  ) { key, value in
    _ = options.take(key, value)
    return nil
  }
  return run { () throws(CommandFailure) in
    show("", try options.connect().carryOut(.reload))
  }
}
