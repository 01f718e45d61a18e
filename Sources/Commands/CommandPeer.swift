import CSystem
import Configuration

/// `causeway peer …`
func commandPeer(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway peer",
    [
      Command(name: "browse", summary: "show peers as they come and go", run: commandPeerBrowse),
      Command(name: "chat", summary: "send lines of text and show those that arrive", run: commandPeerChat),
      Command(name: "send", summary: "send a file", run: commandPeerSend),
      Command(
        name: "verify", summary: "show the code by which two people check each other's box", run: commandPeerVerify),
      Command(name: "receive", summary: "receive files into a directory", run: commandPeerReceive),
    ],
    help:
      """
      Be a peer, through the daemon that runs on this machine. NAME is a display
      name, or the first 4 or more hexadecimal digits of an id.
      """
  )
}

/// Options of several peer commands.
enum PeerOption {
  static let toKey: CInt = 0x74
  static let secondsKey: CInt = 0x6E

  static let to = CommandOption(name: "to", key: toKey, argument: "NAME", help: "Whom to send to")

  static func seconds(_ help: StaticString) -> CommandOption {
    CommandOption(name: "seconds", key: secondsKey, argument: "N", help: help)
  }

  static let secondsAccepted: StaticString = "a number of seconds from 1 to 1000000"

  static func parseSeconds(_ value: String) -> UInt64? { Text(value).number(in: 1...1_000_000) }
}
