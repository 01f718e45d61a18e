import CSystem
import Diagnostics
import Primitives
import Reactor

/// `causeway peer browse`
func commandPeerBrowse(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var seconds: UInt64? = 5
  var wanted: String?
  CommandParser.parse(
    "causeway peer browse", words,
    help: "Show who is there, then who comes, changes and goes: “found”, “changed”, “lost”.",
    options: ClientOptions.options + [
      PeerOption.seconds("Stop after N seconds; default 5"),
      CommandOption(name: "follow", key: 0x66, argument: nil, help: "Go on until interrupted"),
      CommandOption(
        name: "wait-for", key: 0x77, argument: "NAME",
        help: "Stop as soon as NAME is there; exit with 4 when it is not in time"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    switch key {
    case 0x66: seconds = nil
    case 0x77: wanted = value
    default:
      guard let number = PeerOption.parseSeconds(value) else { return PeerOption.secondsAccepted }
      seconds = number
    }
    return nil
  }
  return run { () throws(CommandFailure) in try browse(options, until: deadline(after: seconds), wanted) }
}

private func browse(_ options: ClientOptions, until deadline: Instant, _ wanted: String?) throws(CommandFailure) {
  let connection = try PeerConnection(options, kinds: [])
  for peer in connection.book.peers { show("found ", describe(peer)) }
  while true {
    if let wanted, case .one = connection.book.match(wanted) { return }
    switch try connection.next(until: deadline) {
    case .appeared(let peer): show("found ", describe(peer))
    case .changed(let peer): show("changed ", describe(peer))
    case .vanished(let peer): show("lost ", "\(peer.name) (\(peer.id.shortText))")
    case .message, .completed, .otherReady: continue
    case .timedOut:
      guard let wanted else { return }
      throw CommandFailure(saying: "no peer “\(wanted)” appeared in time", ExitCode.timedOut)
    }
  }
}
