import CommandLine
import Configuration
import ControlSocket
import DaemonClient
import Doctor
import Explain
import LocalAPI
import Primitives
import Session
import Status
import Text

/// `causeway explain`
public func commandExplain(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  var names: [String] = []
  CommandParser.parse(
    "causeway explain", words, arguments: "[A] B", count: 1...2,
    help: """
      Explain why two nodes can or cannot talk: bearers, trust, links, route, encryption. With one name: this box and \
      that node.\u{0B}A and B are a display name, the first 4 or more digits of an id, or the address of a peer that \
      is not identified yet. Exit code 0 means that this box knows no obstacle, 1 that it knows one, 4 that there is \
      no such node.
      """,
    options: ClientOptions.options + [
      CommandOption(name: "json", key: LocalOptions.jsonKey, argument: nil, help: "Print the daemon's answer as JSON")
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    if key == CommandParser.argument { names.append(value) } else { isJSON = true }
    return nil
  }
  return run { () throws(CommandError) in
    let client = try options.connect()
    let known = try read(fetch(client, .explain(.none, .none))) { report in
      report.nodes.compactMap { node in NodeIDSyntax.parse(ByteString(node.id)).map { (id: $0, name: node.name) } }
    }
    guard let local = known.first?.id else {
      throw CommandError(saying: "the daemon knows no node, not even its own")
    }
    let to = try node(names[names.count - 1], known)
    let from = names.count == 2 ? try node(names[0], known) : local
    let json = try fetch(client, .explain(from, to))
    let canTalk = try read(json) { report in
      if isJSON { put(json) } else { put(report) }
      return report.canTalk
    }
    if !canTalk { throw CommandError(ExitCode.failed) }
  }
}

/// `causeway sessions`
public func commandSessions(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    "causeway sessions", words,
    help:
      "Show the connected applications, their services and their sessions. The content of messages is not shown.",
    options: ClientOptions.options + [
      CommandOption(name: "json", key: LocalOptions.jsonKey, argument: nil, help: "Print the daemon's answer as JSON")
    ]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  return run { () throws(CommandError) in
    let json = try fetch(options.connect(), .applications)
    if isJSON { return put(json) }
    do throws(AccessError) {
      let report = try SessionsReport(json)
      defer { report.release() }
      Output.put(report.text())
    } catch {
      throw CommandError(saying: error.text)
    }
  }
}

private func put(_ json: [UInt8]) {
  var text = TextBuilder()
  for byte in json { text.add(byte: byte) }
  Output.put(text)
}

private func put(_ report: ExplainReport) {
  show("", "\(report.from) → \(report.to)")
  for finding in report.findings {
    let state: Finding.State =
      switch finding.state {
      case .good: .good
      case .note: .note
      case .wrong: .wrong
      }
    Output.put(FindingView.text(state, finding.subject, finding.text, remedy: finding.remedy))
  }
  let outcome: StaticString =
    switch report.outcome {
    case .canTalk: "they can talk"
    case .untried: "there is a route; no session has shown yet that they accept each other"
    case .unanswered: "there is a route; no answer yet"
    case .unknown: "there is a route; only the two know whether they accept each other"
    case .cannotTalk: "they cannot talk"
    }
  FindingView.putVerdict("\(outcome): \(report.verdict)", remedy: report.remedy)
}

func fetch(_ client: ControlClient, _ request: ControlRequest) throws(CommandError) -> [UInt8] {
  do throws(AccessError) {
    return try client.fetch(request)
  } catch {
    throw CommandError(saying: error.text)
  }
}

private func read<Result>(_ json: [UInt8], _ body: (ExplainReport) -> Result) throws(CommandError) -> Result {
  do throws(AccessError) {
    let report = try ExplainReport(json)
    defer { report.release() }
    return body(report)
  } catch {
    throw CommandError(saying: error.text)
  }
}

/// The node that a word of the command line identifies, by name, id or address.
private func node(_ word: String, _ known: [(id: NodeID, name: String)]) throws(CommandError) -> NodeID {
  let typed = Array(word.utf8)
  let sightings = known.map { node in
    Sighting(
      node.id,
      LocalPeer(
        name: Array((node.name.utf8.isEmpty ? node.id.text : node.name).utf8), hops: 0, isVerified: false),
      Service(endpoint: 1, type: []))
  }
  switch NameMatch(typed, in: sightings) {
  case .one(let peer): return peer.node
  case .several(let peers): throw CommandError(saying: severalText(typed, peers.map { $0.node }), ExitCode.timedOut)
  case .nobody(let suggestion):
    // Discovery alone provides only the first half of a node's id, so the typed id can match a known id in this half
    // only.
    if let id = NodeIDSyntax.parse(ByteString(word)), let heard = known.first(where: { $0.id.mayBe(id) }) {
      return heard.id
    }
    var text = TextBuilder(quoting: typed, " is unknown here")
    if let suggestion {
      text.add(": did you mean “")
      text.add(untrusted: suggestion)
      text.add("”?")
    } else {
      text.add(": not pinned, never refused, never seen; “causeway peers” lists the peers")
    }
    throw CommandError(saying: text, ExitCode.timedOut)
  }
}
