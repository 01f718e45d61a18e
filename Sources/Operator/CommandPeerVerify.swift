import CommandLine
import Identity
import Primitives
import Status
import Text

/// `causeway peer verify`
public func commandPeerVerify(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var name = ""
  var seconds: UInt64 = 30
  CommandParser.parse(
    "causeway peer verify", words, arguments: "NAME", count: 1...1,
    help: """
      Show the verification code of this node's key and the peer's. Compare it with the code that the peer's box \
      shows, over the telephone or side by side. If the codes are equal, both keys are authentic, and nobody can \
      intercept what the two encrypt. If they do not encrypt ([peer] encryption), a warning follows.
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
  return run { () throws(CommandError) in
    let connection = try PeerConnection(options)
    let peer = try connection.peer(named: name, until: deadline(after: seconds))
    show("", "\(connection.book.name(peer)) \(peer.text)")
    show("", verificationCode(connection.localID, peer))
    if connection.book.peer(peer)?.isInClear == true {
      printError(
        """
        the code verifies only the keys: neither end encrypts ([peer] encryption), so any node in the mesh can read \
        and forge their messages
        """)
    }
  }
}
