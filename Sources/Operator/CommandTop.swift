import CSystem
import CommandLine
import Configuration
import ControlSocket
import Monitor
import Primitives
import Reactor
import Status
import Terminal
import Text

/// `causeway top`
public func commandTop(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var top = TopOptions()
  CommandParser.parse(
    "causeway top", words,
    help: """
      Show the traffic of each link and radio, and the nodes that send most, once a second. On a terminal, it fills \
      the screen until q or ^C; ? lists the keys. Otherwise, it prints the tables each time.
      """,
    options: ClientOptions.options + TopOptions.options
  ) { key, value in options.take(key, value) ? nil : top.take(key, value) }
  return run { () throws(CommandError) in
    let path = try options.socketPath()
    let screen = top.isOnce || top.isJSON ? nil : Screen().map { FullScreen($0) }
    defer { screen?.close() }
    let run = TopRun(path, top, screen)
    try run.go()
  }
}

/// The options of `causeway top`.
private struct TopOptions {
  static let options = [
    CommandOption(
      name: "interval", key: 0x69, argument: "SECONDS", help: "Time between two updates, 1 to 3600; default 1"),
    CommandOption(name: "once", key: 0x6F, argument: nil, help: "Sample twice, print the tables once, and exit"),
    LocalOptions.json,
  ]

  var interval: UInt64 = 1
  var isOnce = false
  var isJSON = false

  mutating func take(_ key: CInt, _ value: String) -> StaticString? {
    switch key {
    case 0x69:
      guard let seconds = ByteString(value).number(in: 1...3600) else { return "a number of seconds from 1 to 3600" }
      interval = seconds
    case 0x6F: isOnce = true
    default: isJSON = true
    }
    return nil
  }
}

/// One run of `causeway top`. The loop blocks only in `poll`, so that keys and signals are handled while the daemon
/// hangs.
private final class TopRun {
  /// The time after which a daemon that does not answer is reported. The request stays open, and no second connection
  /// is made: connections to a hanging daemon would accumulate in its queue.
  private static let answerTime = TimeSpan.seconds(5)
  /// The width of the tables when the output is not a terminal, in columns.
  private static let tableColumns = 100

  private let path: String
  private let options: TopOptions
  private let screen: FullScreen?
  private let signals = Signals([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT])
  private var model = TopModel()
  private var keys = KeyReader()
  private var client: ControlClient?
  /// The pieces received so far of the daemon's answer.
  private var answer: [UInt8] = []
  private var askedAt: Instant?
  /// Whether the missing answer was reported to the user.
  private var isSilent = false
  private var nextLook = Instant.zero
  private var isOver = false

  init(_ path: String, _ options: TopOptions, _ screen: FullScreen?) {
    self.path = path
    self.options = options
    self.screen = screen
  }

  func go() throws(CommandError) {
    draw()
    while !isOver && !model.isOver && !Output.hasFailed && screen?.hasFailed != true {
      let now = monotonicNow()
      if let askedAt, !isSilent, now - askedAt >= Self.answerTime {
        isSilent = true
        try printSilence()
      }
      if now >= nextLook { try look(now) }
      wait(until: isSilent ? nextLook : askedAt.map { min($0 + Self.answerTime, nextLook) } ?? nextLook)
      try receive()
    }
    if screen?.hasFailed == true { throw CommandError(ExitCode.failed) }
  }

  // MARK: The daemon

  private func look(_ now: Instant) throws(CommandError) {
    nextLook = now + .seconds(options.interval)
    if askedAt != nil {
      if isSilent { try printSilence() }
      return
    }
    do throws(AccessError) {
      if client == nil { client = try ControlClient(path: path) }
      client?.send(.status)
      askedAt = now
    } catch {
      try lose(error.text, ExitCode.noDaemon)
    }
  }

  /// Handles the events that the daemon has sent, without waiting for more.
  private func receive() throws(CommandError) {
    while let client, askedAt != nil {
      switch client.next(milliseconds: 0) {
      case .event(.statusPiece(let piece)):
        answer += piece
        if piece.isEmpty { try take() }
      case .event: continue
      case .timedOut: return
      case .closed(let reason): try lose(reason)
      }
    }
  }

  private func take() throws(CommandError) {
    let json = answer
    forget()
    do throws(AccessError) {
      model.add(try StatusSample(json), at: monotonicNow())
    } catch {
      return try lose(error.text)
    }
    // The first sample has no rates yet. It is shown on a screen, but not printed as a table.
    if screen != nil || model.figures?.bytesForwarded != nil { show() }
  }

  private func lose(_ reason: String, _ code: CInt = ExitCode.failed) throws(CommandError) {
    client = nil
    forget()
    try printNotice(reason, code)
  }

  /// Clears the state of the open request.
  private func forget() {
    answer = []
    askedAt = nil
    isSilent = false
  }

  private func printSilence() throws(CommandError) { try printNotice("the daemon does not answer; see “causeway log”") }

  private func printNotice(_ reason: String, _ code: CInt = ExitCode.failed) throws(CommandError) {
    if screen == nil { throw CommandError(saying: reason, code) }
    model.lose(reason, at: monotonicNow())
    draw()
  }

  // MARK: Terminal

  private func wait(until deadline: Instant) {
    let left = (deadline - monotonicNow()).nanoseconds / 1_000_000 + 1
    var polled = [
      pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: client?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
      pollfd(fd: screen == nil ? -1 : STDIN_FILENO, events: Int16(POLLIN), revents: 0),
      // Even without requested events, poll reports POLLERR if standard output is a pipe whose reader is gone.
      pollfd(
        fd: screen?.descriptor ?? STDOUT_FILENO, events: screen?.isWaiting == true ? Int16(POLLOUT) : 0, revents: 0),
    ]
    poll(&polled, nfds_t(polled.count), CInt(clamping: left))
    while let signal = signals.next() { take(signal) }
    if polled[2].revents != 0 { readKeys() }
    if polled[3].revents & Int16(POLLERR) != 0 { isOver = true }
    if screen?.isWaiting == true { screen?.flush() }
  }

  private func take(_ signal: CInt) {
    switch signal {
    case SIGWINCH:
      screen?.forget()
      draw()
    case SIGTSTP:
      if screen == nil { kill(getpid(), SIGSTOP) } else { screen?.suspend() }
      draw()
    case SIGCONT:
      screen?.resume()
      draw()
    default: isOver = true
    }
  }

  private func readKeys() {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    if count <= 0 {
      isOver = count == 0 || csystem_errno() != EINTR
      return
    }
    for byte in bytes[..<count] {
      guard let key = keys.take(byte) else { continue }
      if key == .character(0x0C) { screen?.forget() }
      model.press(key)
    }
    draw()
  }

  // MARK: Output

  private func show() {
    if screen != nil { return draw() }
    if options.isJSON {
      model.figures?.putJSON()
    } else {
      var text = model.table(columns: Self.tableColumns, at: monotonicNow())
      if !options.isOnce { text.add("\n") }
      Output.put(text)
    }
    isOver = options.isOnce
  }

  private func draw() {
    guard let screen else { return }
    let (columns, rows) = screen.size
    screen.draw(model.page(columns: columns, rows: rows, at: monotonicNow()))
  }
}

extension Figures {
  /// Prints one JSON object per line: the box, its bearers, its links, and the nodes that send most.
  fileprivate func putJSON() {
    var box = JSONLine(event: "box")
    box.add("id", sample.id)
    box.add("name", sample.name)
    box.add("uptime_seconds", sample.uptimeSeconds)
    box.add("peers", sample.peerCount)
    box.add("frames_forwarded_per_second", optional: framesForwarded)
    box.add("bytes_forwarded_per_second", optional: bytesForwarded)
    box.add("frames_refused_per_second", optional: framesRefused)
    box.add("problems", sample.problems)
    box.put()
    for radio in radios {
      var line = JSONLine(event: "bearer")
      line.add("name", radio.sample.name)
      line.add("state", radio.sample.state)
      line.add("places_used", optional: radio.sample.slotsUsed)
      line.add("places_max", optional: radio.sample.slotsMax)
      line.add("bytes_received_per_second", optional: radio.received)
      line.add("bytes_sent_per_second", optional: radio.sent)
      line.add("air_permille", optional: radio.airPermille)
      line.add("scanning_permille", optional: radio.scanningPermille)
      line.add("dialling_permille", optional: radio.diallingPermille)
      line.put()
    }
    for link in links {
      var line = JSONLine(event: "link")
      line.add("slot", optional: link.sample.slot)
      line.add("peer", link.sample.peer)
      line.add("name", link.sample.name)
      line.add("bearer", link.sample.bearer)
      line.add("state", link.sample.state)
      line.add("bytes_received_per_second", optional: link.received)
      line.add("bytes_sent_per_second", optional: link.sent)
      line.add("round_trip_microseconds", optional: link.sample.roundTripMicroseconds)
      line.add("loss_permille", optional: link.lossPermille)
      line.add("bytes_queued", link.sample.queued)
      line.put()
    }
    for talker in talkers {
      var line = JSONLine(event: "talker")
      line.add("id", talker.sample.id)
      line.add("name", talker.sample.name)
      line.add("bytes_forwarded_per_second", optional: talker.rate)
      line.add("bytes_forwarded", talker.sample.bytes)
      line.put()
    }
  }
}
