import CommandLine
import ControlSocket
import Primitives
import Status
import Text

/// `causeway routes`
public func commandRoutes(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    "causeway routes", words,
    help: """
      Show the current route to each peer, link by link. “causeway trace” probes the boxes on it.
      """,
    options: ClientOptions.options + [LocalOptions.json]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  return run { () throws(CommandError) in
    let connection = try PeerConnection(options)
    if !isJSON { return Output.put(try routesText(connection)) }
    for peer in connection.book.peers {
      let way = try connection.way(to: peer.id)
      var line = JSONLine(event: "route")
      line.add("id", Array(peer.id.text.utf8))
      line.add("name", Array(peer.name.utf8))
      line.add("nodes", way.map { Array($0.node.text.utf8) })
      line.add("bearers", way.map { Array("\($0.bearer.name)".utf8) })
      line.put()
    }
  }
}

/// The route to each peer as a table. If `hasNames` is false, nodes appear as the first digits of their ids.
func routesText(_ connection: PeerConnection, hasNames: Bool = true) throws(CommandError) -> TextBuilder {
  var table = TextTable(["PEER", "ID", "LINKS", "ROUTE"], cuttable: [0])
  for peer in connection.book.peers {
    let way = try connection.way(to: peer.id)
    var links = ""
    for hop in way {
      let name = hop.name.utf8.isEmpty || !hasNames ? hop.node.shortText : hop.name
      links += "\(links.utf8.isEmpty ? "" : ", ")\(hop.bearer.name) to \(name)"
    }
    let name = hasNames ? peer.name : "peer-\(peer.id.shortText)"
    table.add([name, peer.id.shortText, "\(way.count)", way.isEmpty ? "no route" : links])
  }
  var text = TextBuilder()
  if table.isEmpty { text.add("no peers\n") } else { table.write(to: &text, columns: Output.columns) }
  return text
}
