import CSystem
import CommandLine
import DaemonClient
import Text
import Transfer
import TransferFiles

/// The options of the commands that send and receive files.
struct FilesOptions {
  static let typeKey: CInt = 0x79 << 8
  static let type = CommandOption(
    name: "type", key: typeKey, argument: "TYPE",
    help: "The service type that both ends use; default “files”")

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
public func commandSend(_ words: CommandWords) -> CInt {
  var options = FilesOptions()
  var arguments: [String] = []
  CommandParser.parse(
    "causeway send", words, arguments: "FILE... PEER", count: 2...TransferLimits.entriesMax,
    help: """
      Send files and folders to PEER, which runs “causeway receive”, “causeway drop” or another application of the \
      same service type. PEER is a name, or the first 4 or more digits of an id. The receiver has 10 minutes to \
      accept. FILE may be an http or https URL, which the program curl downloads first (user and password belong in \
      ~/.netrc). “-” is standard input: it is read to its end and then sent as “stdin”; “causeway pipe” sends while it \
      reads.\u{0B}An interrupted transfer resumes by itself for one hour, and for 24 hours when the same command is \
      run again. ^C cancels and notifies PEER; a second ^C exits at once. A terminal shows the progress; otherwise, \
      each file is a line. With --json, the events are asking, progress, file, sent and failed.\n\nExit code 0 means \
      that PEER has stored and verified everything, 6 that it declined, 4 that it did not appear or answer in time, 5 \
      that the transfer was cancelled.
      """,
    options: LocalOptions.options + [
      FilesOptions.type, LocalOptions.wait("How long to wait for PEER; default 30"), LocalOptions.json,
    ]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    arguments.append(value)
    return nil
  }
  return run { () throws(CommandError) in
    let word = arguments.removeLast()
    let source: ResourceSource
    let console = ProcessConsole([SIGINT, SIGTERM, SIGHUP])
    let view = FilesView(isJSON: options.local.isJSON, console)
    do throws(ResourceError) {
      source = try ResourceSource(fetching: arguments, takesInput: true) { what, bytes in
        view.drawFetching(what, bytes)
        return console.nextSignal() == nil
      }
      view.clear()
    } catch {
      view.clear()
      if error.reason == .cancelled { throw CommandError(saying: "interrupted", ExitCode.cut) }
      var text = TextBuilder()
      text.add(untrusted: error.path.utf8)
      if !error.path.utf8.isEmpty { text.add(": ") }
      text.add(message: error.text.utf8)
      throw CommandError(saying: text)
    }
    let connection = try options.local.connect(in: Sending.instance(source.manifest, word))
    try Sending(connection, console, options, source, word, view).run()
  }
}
