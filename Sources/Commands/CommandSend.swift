import CSystem
import Diagnostics
import Terminal
import Transfer
import TransferFiles

/// Options of the commands that send and receive files.
struct FilesOptions {
  static let typeKey: CInt = 0x79 << 8
  static let type = CommandOption(
    name: "type", key: typeKey, argument: "TYPE",
    help: "The service type by which both ends find each other; default “files”")

  var local = LocalOptions()
  private(set) var type = Array("files".utf8)

  /// Parses one option as `LocalOptions.take` does.
  mutating func take(_ key: CInt, _ value: String) -> StaticString?? {
    guard key == Self.typeKey else { return local.take(key, value) }
    guard let given = serviceType(value) else { return LocalOptions.typeAccepted }
    type = given
    return .some(nil)
  }
}

/// `causeway send`
func commandSend(_ words: CommandWords) -> CInt {
  var options = FilesOptions()
  var arguments: [String] = []
  CommandParser.parse(
    "causeway send", words, arguments: "FILE... PEER", count: 2...TransferLimits.entriesMax,
    help: """
      Send files and folders to PEER, who runs “causeway receive” or “causeway drop”, or another application of the same \
      service type. PEER is a name, or the first 4 or more digits of an id. Who receives is asked there first, for 10 \
      minutes at most. FILE may be an http or https URL, which is fetched first by the program curl (user and password stand in ~/.netrc), or “-”, standard \
      input, which is read to its end first and sent as “stdin”; “causeway pipe” sends as it reads.\u{0B}It goes on where it was after a \
      break, for an hour; and when the same command is given again, for 24 hours. ^C cancels, and PEER is told; a second \
      one ends at once. On a terminal it shows how far it is, otherwise a line for each file; with --json events \
      asking, progress, file, sent, failed.\n\nExit code 0 tells that all is in its place there and is what was sent; 6 \
      that it was declined, 4 that PEER was not there in time or nobody answered, 5 that it was cancelled.
      """,
    options: LocalOptions.options + [
      FilesOptions.type, LocalOptions.wait("How long to wait for PEER; default 30"), LocalOptions.json,
    ]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    arguments.append(value)
    return nil
  }
  return run { () throws(CommandFailure) in
    let word = arguments.removeLast()
    let source: ResourceSource
    let signals = Signals([SIGINT, SIGTERM, SIGHUP])
    let view = FilesView(isJSON: options.local.isJSON)
    do throws(ResourceFailure) {
      source = try ResourceSource(fetching: arguments, takesInput: true) { what, bytes in
        view.drawFetching(what, bytes)
        return signals.next() == nil
      }
      view.clear()
    } catch {
      view.clear()
      if error.reason == .cancelled { throw CommandFailure(saying: "interrupted", ExitCode.cut) }
      var text = TextBuilder()
      text.add(untrusted: error.path.utf8)
      if !error.path.utf8.isEmpty { text.add(": ") }
      text.add(message: error.text.utf8)
      throw CommandFailure(saying: text)
    }
    try Sending(options, source, word, signals, view).run()
  }
}
