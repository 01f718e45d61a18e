import CSystem
import CommandLine
import Configuration
import ControlSocket
import Doctor
import Primitives
import Text
import Trust

/// `causeway config COMMAND`
public func commandConfig(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway config",
    [Command(name: "check", summary: "check a configuration and report its first error", run: configCheck)],
    help: "The configuration of the box. These commands need no daemon.")
}

private func configCheck(_ words: CommandWords) -> CInt {
  var path: String?
  CommandParser.parse(
    "causeway config check", words,
    help: "Check a configuration as the daemon reads it, with policy ca its anchors as well. Nothing is changed.",
    options: [configOption]
  ) { _, value in
    path = value
    return nil
  }
  guard let configuration = loadConfiguration(path) else { return ExitCode.usage }
  let isThere = path != nil || access(Configuration.defaultPath, F_OK) == 0
  let denied = Doctor(configuration, isDaemonRunning: false).deniedFiles(
    configuration: path == nil && isThere ? Configuration.defaultPath : nil)
  for finding in denied { printError("\(finding.text); \(finding.remedy)") }
  if !denied.isEmpty { return ExitCode.failed }
  if configuration.trust.policy == .authority {
    let anchors = TrustAnchors(directory: configuration.trust.anchors)
    for fault in anchors.faults { printError("\(fault.text); \(fault.effect)") }
    if !anchors.faults.isEmpty { return ExitCode.failed }
    if anchors.certificateCount == 0 {
      printError(
        "[trust] policy is ca, but \(configuration.trust.anchors) has no certificate: only pinned peers are accepted")
      return ExitCode.failed
    }
    for text in anchors.unmatched { printError("note: \(text)") }
  }
  var text = TextBuilder()
  if !isThere { text.add("no file \(Configuration.defaultPath), so the defaults apply, which accept every node\n") }
  text.add("valid; the box is “")
  text.add(untrusted: configuration.node.displayName.utf8)
  text.add("”\n")
  Output.put(text)
  return ExitCode.done
}

/// `causeway reload`
public func commandReload(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  CommandParser.parse(
    "causeway reload", words,
    help:
      """
      Make the daemon read its configuration and its trust anchors again. If the configuration has an error, the daemon \
      keeps its settings. Anchors that are not understood refuse all nodes that they may concern.
      """,
    options: ClientOptions.options
  ) { key, value in
    _ = options.take(key, value)
    return nil
  }
  return run { () throws(CommandError) in
    show("", try options.connect().carryOut(.reload))
  }
}
