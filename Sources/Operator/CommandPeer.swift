import CommandLine

/// `causeway peer …`
public func commandPeer(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway peer",
    [
      Command(
        name: "verify", summary: "show the code to verify a peer's key in person", run: commandPeerVerify)
    ],
    help:
      """
      Verify another node, through the daemon on this machine. NAME is a display
      name, or the first 4 or more hexadecimal digits of an id.
      """
  )
}
