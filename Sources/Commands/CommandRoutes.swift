import Configuration
import Diagnostics
import Primitives

/// `causeway routes`
func commandRoutes(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    "causeway routes", words,
    help: """
      Show the way to each peer: every link on it, as this box chooses them now. “causeway trace” asks those boxes.
      """,
    options: ClientOptions.options + [LocalOptions.json]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  return run { () throws(CommandFailure) in
    let connection = try PeerConnection(options)
    var table = Table(["PEER", "ID", "LINKS", "WAY"], cuttable: [0])
    for peer in connection.book.peers {
      let way = try connection.way(to: peer.id)
      if isJSON {
        var line = JSONLine(event: "route")
        line.add("id", Array(peer.id.text.utf8))
        line.add("name", Array(peer.name.utf8))
        line.add("nodes", way.map { Array($0.node.text.utf8) })
        line.add("bearers", way.map { Array("\($0.bearer.name)".utf8) })
        line.put()
        continue
      }
      var links = ""
      for hop in way {
        let name = hop.name.utf8.isEmpty ? hop.node.shortText : hop.name
        links += "\(links.utf8.isEmpty ? "" : ", ")\(hop.bearer.name) to \(name)"
      }
      table.add([peer.name, peer.id.shortText, "\(way.count)", way.isEmpty ? "no way now" : links])
    }
    if isJSON { return }
    var text = TextBuilder()
    if table.isEmpty { text.add("no peers\n") } else { table.write(to: &text, columns: Output.columns) }
    Output.put(text)
  }
}
