import CommandLine
import ControlSocket
import QRCode
import Text

private let plainKey: CInt = 0x70

/// `causeway join`
public func commandJoin(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  var isPlain = false
  CommandParser.parse(
    "causeway join", words,
    help: """
      Show how a phone joins the box's Wi-Fi group as an ordinary station: name and passphrase of the network, the \
      box's fingerprint, and a QR code of all three for the phone's camera. Only root and the daemon's user may run \
      it.
      """,
    options: ClientOptions.options + [
      CommandOption(name: "json", key: LocalOptions.jsonKey, argument: nil, help: "Print the daemon's answer as JSON"),
      CommandOption(
        name: "network-only", key: plainKey, argument: nil,
        help: "Omit the fingerprint from the QR code, for a camera that rejects it"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    if key == plainKey { isPlain = true } else { isJSON = true }
    return nil
  }
  return run { () throws(CommandError) in
    let client = try options.connect()
    do throws(AccessError) {
      let json = try client.fetch(.join)
      var text = TextBuilder()
      if isJSON {
        for byte in json { text.add(byte: byte) }
      } else {
        write(try JoinInvitation(json), isPlain: isPlain, to: &text)
      }
      Output.put(text)
    } catch {
      throw CommandError(saying: error.text)
    }
  }
}

private func write(_ invitation: JoinInvitation, isPlain: Bool, to text: inout TextBuilder) {
  text.add("network      ")
  text.add(verbatim: invitation.ssid.utf8)
  text.add("\npassphrase   ")
  text.add(verbatim: invitation.passphrase.utf8)
  text.add("\nbox          ")
  text.add(untrusted: invitation.name.utf8)
  text.add("\nfingerprint  ")
  text.add(untrusted: invitation.id.utf8)
  text.add("\naddress      ")
  text.add(untrusted: invitation.address.utf8)
  text.add("\n\n")
  guard let symbol = QRSymbol(invitation.uri(withFingerprint: !isPlain)), symbol.columns <= Output.columns else {
    text.add("The QR code needs a wider terminal.\n")
    return
  }
  for byte in symbol.lines(isColoured: Output.isColoured) { text.add(byte: byte) }
}
