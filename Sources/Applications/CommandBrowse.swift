import CSystem
import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// `causeway browse`
public func commandBrowse(_ words: CommandWords) -> CInt {
  var options = LocalOptions()
  var type: [UInt8] = []
  CommandParser.parse(
    "causeway browse", words, arguments: "[TYPE]", count: 0...1,
    help: """
      Show the services that peers advertise, of one type or of all: name, first digits of the id, distance in hops, \
      discovery info. On a terminal, the table is updated until q or ^C; otherwise, each change is a line: found, \
      changed, lost.\u{0B}VERIFIED means that the peer's key is pinned here (“causeway identity trust”). Other peers \
      may choose any name.
      """,
    options: LocalOptions.options + [LocalOptions.json, LocalOptions.stay]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    guard let given = serviceType(value) else { return LocalOptions.typeAccepted }
    type = given
    return nil
  }
  return run { () throws(CommandError) in
    let connection = try options.connect(as: "browse")
    let console = ProcessConsole([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP])
    var browse = Browse(connection, console, isJSON: options.isJSON)
    defer { browse.close() }
    try browse.run(type, until: options.endOfStay(from: console.now))
  }
}

/// One run of `causeway browse`.
struct Browse {
  private let connection: any LocalConnection
  private let console: any Console
  private let isJSON: Bool
  /// The terminal that shows the table; nil if changes are shown as lines.
  private let screen: Screen?
  private var sightings = Sightings()
  private let lines: PeerLines
  private var isAllTold = false
  /// The number of lines that the table now occupies on the screen.
  private var drawn = 0

  init(_ connection: any LocalConnection, _ console: any Console, isJSON: Bool) {
    self.connection = connection
    self.console = console
    self.isJSON = isJSON
    screen = isJSON ? nil : console.openScreen()
    lines = PeerLines(console) { text in
      var line = text
      line.add("\n")
      console.put(line)
    }
  }

  /// Restores the terminal.
  func close() { screen?.close() }

  mutating func run(_ type: [UInt8], until deadline: Instant) throws(CommandError) {
    let watch = DaemonConnection.Watch(
      input: screen == nil ? -1 : console.input, signals: console.signals, output: console.output)
    try make(.browse(type: type), connection)
    draw()
    while true {
      switch try wake(connection, console, until: min(deadline, lines.nextDeadline), watch) {
      case .event(.services(_, let reference, let node, let peer, let services)):
        for change in sightings.update(reference: reference, node, peer, services) { writeLine(change) }
        draw()
      case .event(.allTold):
        isAllTold = true
        if isJSON { JSONLine(event: "all_told").put(on: console) }
        draw()
      case .event: continue
      case .input: if isQuitPressed() { return }
      case .signal:
        while let signal = console.nextSignal() {
          switch signal {
          case SIGWINCH: draw()
          case SIGTSTP:
            screen?.suspend()
            drawn = 0
            draw()
          default: return
          }
        }
      case .outputClosed: throw CommandError(ExitCode.failed)
      case .timedOut:
        lines.printOmittedCounts(isLast: console.now >= deadline)
        if console.now >= deadline { return }
      }
    }
  }

  private func isQuitPressed() -> Bool {
    switch console.read(atMost: 64) {
    case .bytes(let keys): keys.contains { $0 == UInt8(ascii: "q") || $0 == 4 }
    case .nothing: false
    case .end, .failed: true
    }
  }

  // MARK: Lines

  private func writeLine(_ change: Sightings.Change) {
    switch change {
    case .found(let sighting): writeLine("found", sighting)
    case .changed(let sighting): writeLine("changed", sighting)
    case .lost(let sighting): writeLine("lost", sighting)
    }
  }

  private func writeLine(_ event: StaticString, _ sighting: Sighting) {
    if screen != nil { return }
    guard isJSON else {
      var line = TextBuilder()
      line.add(event)
      line.add(" ")
      line.add(sighting.described)
      return lines.write(line, .service, of: sighting.address.node, sighting.peer)
    }
    var line = JSONLine(event: event)
    line.add("name", sighting.peer.name)
    line.add(sighting.address)
    line.add("type", sighting.service.type)
    line.add("hops", UInt64(sighting.peer.hops))
    line.add("verified", sighting.peer.isVerified)
    line.add("info", sighting.service.info)
    line.put(on: console)
  }

  // MARK: The table

  private mutating func draw() {
    guard let screen else { return }
    let (columns, rows) = screen.size
    var table = TextTable(["NAME", "ID", "TYPE", "HOPS", "VERIFIED", "INFO"])
    for sighting in sightings.all {
      table.add([
        String(decoding: sighting.peer.name, as: UTF8.self), sighting.address.node.shortText,
        String(decoding: sighting.service.type, as: UTF8.self), "\(sighting.peer.hops)",
        sighting.peer.isVerified ? "yes" : "no", String(decoding: sighting.infoText, as: UTF8.self),
      ])
    }
    var text = TextBuilder()
    table.write(to: &text)
    var lines = text.bytes.split(separator: 0x0A).map { Array($0) }
    if table.isEmpty { lines.append((isAllTold ? "No services yet." as StaticString : "Searching …").bytes) }
    let room = max(rows - 1, 2)
    if lines.count > room {
      let hidden = lines.count - room + 1
      lines.removeLast(hidden)
      lines.append(Array("… and \(hidden) more".utf8))
    }
    var page = TextBuilder()
    page.add("\r")
    if drawn > 0 { page.add("\u{1B}[\(drawn)A") }
    page.add("\u{1B}[J")
    for line in lines {
      let length = prefixLength(line, columns: columns)
      let isCut = length < line.count
      for byte in isCut ? Array(line[..<prefixLength(line, columns: columns - 1)]) : line { page.add(byte: byte) }
      page.add(isCut ? "…\r\n" : "\r\n")
    }
    drawn = lines.count
    console.put(page)
  }
}

extension Sighting {
  /// The service's discovery pairs, separated by spaces.
  var infoText: [UInt8] {
    var text: [UInt8] = []
    for pair in service.info { text += text.isEmpty ? pair : [0x20] + pair }
    return text
  }

  /// One line, for example: bob (b0b01234) chat, 2 hops, verified, room=kitchen
  var described: TextBuilder {
    var text = TextBuilder()
    text.add(name: peer.name)
    text.add(" (")
    text.add(address.node.shortText)
    text.add(") ")
    text.add(untrusted: service.type)
    text.add(", ")
    text.add(peer)
    for pair in service.info {
      text.add(", ")
      text.add(untrusted: pair)
    }
    return text
  }
}
