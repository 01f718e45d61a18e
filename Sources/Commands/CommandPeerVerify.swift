import Diagnostics
import Identity
import Primitives
import SecureTransport

/// `causeway peer verify`
func commandPeerVerify(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var name = ""
  var seconds: UInt64 = 30
  CommandParser.parse(
    "causeway peer verify", words, arguments: "NAME", count: 1...1,
    help: """
      Show the code of this node's key and the peer's. Compare it with what the other end shows, over the telephone or \
      side by side: when the codes are the same, the keys are the right ones, and where the two seal what they say nobody \
      stands between them. Where they do not ([peer] encryption), it says so.
      """,
    options: ClientOptions.options + [
      CommandOption(
        name: "seconds", key: 0x6E, argument: "N", help: "Wait this long for the peer to appear; default 30")
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    switch key {
    case CommandParser.argument: name = value
    default:
      guard let number = parseSeconds(value) else { return secondsAccepted }
      seconds = number
    }
    return nil
  }
  return run { () throws(CommandFailure) in
    let connection = try PeerConnection(options)
    let peer = try connection.peer(named: name, until: deadline(after: seconds))
    show("", "\(connection.book.name(peer)) \(peer.text)")
    show("", verificationCode(connection.localID, peer))
    if connection.book.peer(peer)?.isInClear == true {
      printError(
        """
        the code is about the keys alone: both ends chose not to seal ([peer] encryption), so anybody in the mesh can \
        read what they say and speak in either name
        """)
    }
  }
}
