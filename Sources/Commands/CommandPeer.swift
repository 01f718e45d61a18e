/// `causeway peer …`
func commandPeer(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway peer",
    [
      Command(
        name: "verify", summary: "show the code by which two people check each other's box", run: commandPeerVerify)
    ],
    help:
      """
      Look at another node, through the daemon that runs on this machine. NAME is a
      display name, or the first 4 or more hexadecimal digits of an id.
      """
  )
}
