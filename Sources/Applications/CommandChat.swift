import CSystem
import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// `causeway chat`
public func commandChat(_ words: CommandWords) -> CInt {
  var options = LocalOptions()
  var type = Array("chat".utf8)
  var with: [UInt8]?
  CommandParser.parse(
    "causeway chat", words, arguments: "[TYPE]", count: 0...1,
    help: """
      Chat with everyone in reach who runs this command, or another application of the same service type; default \
      “chat”. Each line of standard input is sent to all members. Lines for a member out of reach are kept until it \
      returns. Received messages appear as “<name> text”.\u{0B}On a terminal, the prompt shows how many lines are not \
      delivered yet, or ✓ if every member has all of them. ^D or ^C leaves; a second ^C discards undelivered \
      lines.\n\nOtherwise, the command ends when all input lines are delivered; --for keeps it running. Exit code 4 \
      means that lines were not delivered in time, 1 that a line was lost. With --json, everything goes to standard \
      output, as events self, member, message, delivered and lost.
      """,
    options: LocalOptions.options + [
      LocalOptions.name,
      CommandOption(
        name: "with", key: chatWithKey, argument: "PEER",
        help: "Chat only with PEER: a name, or the first 4 or more digits of an id"),
      LocalOptions.wait(
        "How long piped lines wait for their delivery; default 30. Also keeps waiting for a name that looks misspelt"
      ),
      LocalOptions.stay, LocalOptions.json,
    ]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    if key == chatWithKey {
      with = Array(value.utf8)
      return nil
    }
    guard let given = serviceType(value) else { return LocalOptions.typeAccepted }
    type = given
    return nil
  }
  return run { () throws(CommandError) in
    let connection = try options.connect(as: "chat")
    let console = ProcessConsole([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP])
    let chat = try Chat(connection, console, options, type, with)
    do throws(CommandError) {
      try chat.run()
      chat.close()
    } catch {
      chat.close()
      throw error
    }
    try chat.finish()
  }
}

private let chatWithKey: CInt = 0x70

/// One run of `causeway chat`.
final class Chat {
  /// The maximum number of members that the rules of the session allow.
  static let membersMax = SessionLimits.membersMax
  /// The maximum time until a line is sent again to a member that had no room for the line.
  static let retryTime = TimeSpan.seconds(1)

  private let options: LocalOptions
  private let connection: any LocalConnection
  private let console: any Console
  private let session: UInt32
  private var window = MessageWindow()
  private var sightings = Sightings()
  private var names = MemberNames()
  /// The search for the peer given by --with, the only one to chat with. Nil without --with: chat with all members.
  private var search: PeerSearch?
  private var outbox = Outbox()
  private var input: LineInput
  private let view: ChatView
  private let lines: PeerLines
  private let end: Instant
  private var retryAt = Instant.never
  /// The deadline for the delivery of the waiting lines (--wait). Each delivered line renews the deadline. While a user
  /// types there is none.
  private var patienceEnd = Instant.never
  private var told: UInt64 = 0
  private var lostCount = 0
  private var isLeaving = false
  private var hasEnded = false
  /// Messages that arrived before the peer of --with was identified.
  private var early: [(from: MemberAddress, text: [UInt8])] = []
  private static let earlyMax = 64
  /// The error that ends `run`, if any.
  private var failure: (text: TextBuilder, code: CInt)?

  init(
    _ connection: any LocalConnection, _ console: any Console, _ options: LocalOptions, _ type: [UInt8],
    _ with: [UInt8]?
  ) throws(CommandError) {
    (self.connection, self.console, self.options) = (connection, console, options)
    search = with.map { PeerSearch($0, isWaiting: options.waits != nil) }
    end = options.endOfStay(from: console.now)
    let rules = SessionRules(membersMax: Self.membersMax)
    session = try make(.open(type: type, rules), connection)
    input = LineInput(byteCountMax: Int(connection.terms.messageBytesMax))
    try make(.browse(type: type), connection)
    try make(.gather(session: session), connection)
    try make(.advertise(type: type, info: options.info), connection)
    if options.isJSON {
      view = ChatView(.json, console)
    } else if let screen = console.openScreen() {
      view = ChatView(
        .typing(TypingScreen(screen, byteCountMax: Int(connection.terms.messageBytesMax)) { console.put($0) }), console)
    } else {
      view = ChatView(.plain, console)
    }
    lines = PeerLines(console, view.notice)
    window.open(connection, session)
    introduce()
  }

  func close() {
    lines.printOmittedCounts(isLast: true)
    view.close()
  }

  /// Prints a failure and throws the exit code.
  func finish() throws(CommandError) {
    if let failure { throw CommandError(saying: failure.text, failure.code) }
    if lostCount > 0 { throw CommandError(ExitCode.failed) }
  }

  private func introduce() {
    view.introduce(connection)
    guard isTyped else { return }
    var text = TextBuilder("you are ")
    text.add(untrusted: ownName)
    text.add(" (")
    text.add(connection.node.shortText)
    text.add("); ^D leaves")
    view.notice(text)
  }

  private var ownName: [UInt8] {
    options.name.isEmpty ? connection.name : options.name + utf8("@") + connection.name
  }

  // MARK: The loop

  func run() throws(CommandError) {
    while true {
      takeLines()
      sendLines()
      printProgress()
      if isOver { return leaveSession() }
      let deadline = min(min(end, lines.nextDeadline), min(patienceEnd, retryAt))
      let watch = DaemonConnection.Watch(
        input: mayRead ? console.input : -1, signals: console.signals, output: console.output)
      if console.hasFailed { throw CommandError(ExitCode.failed) }
      let wake: DaemonConnection.Wake
      do throws(ConnectionError) {
        wake = try connection.next(until: deadline, watching: watch)
      } catch {
        // The text is shown after the terminal is restored.
        var text = TextBuilder()
        text.add(message: error.text.utf8)
        return fail(text)
      }
      switch wake {
      case .event(let event): receive(event)
      case .input: readInput()
      case .signal: while let signal = console.nextSignal() { take(signal) }
      case .outputClosed: throw CommandError(ExitCode.failed)
      case .timedOut: timeUp()
      }
    }
  }

  /// Leaves the session. If the command only exited, other members would see that it crashed.
  private func leaveSession() {
    if !hasEnded { _ = try? connection.carryOut(.leave(session: session, text: [])) }
  }

  private var isOver: Bool {
    failure != nil || (input.isOver && !input.hasLine && outbox.isEmpty && (end == .never || isLeaving))
  }

  private var isTyped: Bool { if case .typing = view.kind { true } else { false } }

  private var mayRead: Bool {
    !input.isOver && (isTyped || (!connection.isBehind && !input.hasLine))
  }

  private func timeUp() {
    let now = console.now
    lines.printOmittedCounts()
    if now >= retryAt {
      retryAt = .never
      outbox.retry()
    }
    if now >= end {
      let left = outbox.waitingCount
      if left > 0 { return fail(undelivered(TextBuilder("the time ran out: ")), ExitCode.timedOut) }
      input.close()
      isLeaving = true
    } else if now >= patienceEnd {
      fail(missing, ExitCode.timedOut)
    }
  }

  /// The text that states which lines were not delivered within the time of --wait.
  private var missing: TextBuilder {
    var text = TextBuilder()
    if !outbox.hasNobody {
      text = undelivered(text)
      var glue: StaticString = " to "
      for member in names.members where outbox.lacking(member.address) > 0 {
        text.add(glue)
        text.add(names.name(member.address, sightings))
        glue = ", "
      }
      text.add(" within ")
      text.add(options.waitSeconds)
      text.add(" s")
      return text
    }
    text = search.map { TextBuilder(quoting: $0.word, " did not appear") } ?? TextBuilder("no peer appeared")
    text.add(" within ")
    text.add(options.waitSeconds)
    text.add(" s: ")
    return undelivered(text)
  }

  /// The text `before`, and the number of lines that have not reached all members.
  private func undelivered(_ before: TextBuilder) -> TextBuilder {
    var text = before
    text.add(lines: outbox.waitingCount)
    text.add(outbox.waitingCount == 1 ? " was" : " were" as StaticString)
    text.add(" not delivered")
    return text
  }

  private func fail(_ text: TextBuilder, _ code: CInt = ExitCode.failed) {
    if failure == nil { failure = (text, code) }
  }

  private func take(_ signal: CInt) {
    switch (signal, view.kind) {
    case (SIGWINCH, .typing(let screen)): screen.draw()
    case (SIGWINCH, _): break
    case (SIGTSTP, .typing(let screen)):
      screen.screen.suspend()
      screen.draw()
    case (SIGTSTP, _): console.stop()
    case (SIGINT, _): leave()
    default:
      leave()
      leave()
    }
  }

  /// Leaves the chat at once if all lines are delivered. Otherwise leaves after their delivery, or when the user asks
  /// again.
  private func leave() {
    let left = outbox.waitingCount
    if isLeaving && left > 0 { fail(undelivered(TextBuilder("gave up: "))) }
    isLeaving = true
    input.close()
    if left == 0 || failure != nil { return }
    var text = undelivered(TextBuilder())
    text.add(" yet; ^C leaves anyway")
    view.notice(text)
  }

  // MARK: Input

  private func readInput() {
    guard case .typing(let screen) = view.kind else { return input.read(console) }
    switch console.read(atMost: 1_024) {
    case .bytes(let keys): for key in keys where !input.isOver { typed(key, screen) }
    case .nothing: return
    case .end, .failed: leave()
    }
  }

  private func typed(_ key: UInt8, _ screen: TypingScreen) {
    switch screen.take(key) {
    case .none, .changed, .refused, .redraw: return
    case .end: leave()
    case .line(let line): typed(line, screen)
    }
  }

  private func typed(_ line: [UInt8], _ screen: TypingScreen) {
    if line.isEmpty { return }
    guard outbox.hasRoom(for: line.count) else {
      screen.ring()
      screen.restore(line)
      return view.notice(TextBuilder("too many lines are undelivered: this one is not sent"))
    }
    var text = TextBuilder()
    text.add("<")
    text.add(untrusted: ownName)
    text.add("> ")
    text.add(message: line)
    screen.show(text)
    outbox.add(line)
  }

  /// Moves lines from standard input to the outbox while the outbox has room.
  private func takeLines() {
    while input.hasLine, outbox.hasRoom(for: Int(connection.terms.messageBytesMax)) || outbox.isEmpty {
      guard let line = input.next() else { break }
      if !line.isEmpty { outbox.add(line) }
    }
  }

  // MARK: Output

  private func sendLines() {
    while !connection.isBehind, let next = outbox.nextSend(as: connection.nextNumber) {
      connection.ask(.send(session: session, .interactive, to: next.to, data: next.line))
    }
    retryAt = outbox.hasStalled ? min(retryAt, console.now + Self.retryTime) : .never
  }

  /// Shows how many lines are delivered.
  private func printProgress() {
    let hasProgress = outbox.doneCount > told
    if hasProgress {
      told = outbox.doneCount
      if view.isJSON {
        var line = JSONLine(event: "delivered")
        line.add("lines", told)
        line.put(on: console)
      }
    }
    // While a user types, the user decides how long to wait for deliveries. Otherwise the time of --wait applies.
    if outbox.isEmpty || isTyped && !isLeaving {
      patienceEnd = .never
    } else if hasProgress || patienceEnd == .never {
      patienceEnd = console.now + .seconds(options.waitSeconds)
    }
    guard case .typing(let screen) = view.kind else { return }
    var prompt = TextBuilder()
    if !outbox.isEmpty { prompt.add(UInt64(outbox.waitingCount)) }
    prompt.add(!outbox.isEmpty ? "… > " : told > 0 ? "✓ > " : outbox.hasNobody ? "nobody yet > " : "> " as StaticString)
    if screen.prompt != prompt.bytes {
      screen.prompt = prompt.bytes
      screen.draw()
    }
  }

  // MARK: Events

  private func receive(_ event: LocalEvent) {
    switch event {
    case .services(_, let reference, let node, let peer, let services):
      _ = sightings.update(reference: reference, node, peer, services)
      resolve()
    case .allTold:
      search?.isAllTold = true
      resolve()
    case .member(_, let address, let state, let peer): receive(address, state, peer)
    case .message(_, let from, _, let text):
      window.took(text.count, connection, session)
      if isWanted(from) {
        view.message(names.name(from, sightings), from, text)
      } else if search?.peer == nil && early.count < Self.earlyMax {
        early.append((from, text))
      }
    case .sent(let request, let to, let delivery): note(outbox.sent(request, to: to, delivery), to)
    case .done(let request, let outcome, _): if outcome != .done { outbox.refused(request) }
    case .room(_, let address): outbox.room(address)
    case .stream(_, let stream, _, _): connection.ask(.take(stream: stream, isWanted: false, limit: 0))
    case .ended(_, let end, _):
      hasEnded = true
      fail(sessionEndText(end))
    case .doneAt, .welcome, .invited, .invitationEnded, .identified, .streamBytes, .streamRoom, .streamEnded,
      .decisionWanted:
      break
    }
  }

  /// Whether to exchange lines with a member: with --with, only members of the named peer.
  private func isWanted(_ address: MemberAddress) -> Bool { search.map { $0.peer?.includes(address) ?? false } ?? true }

  private func receive(_ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) {
    let before = names.receive(address, state, peer)
    if isWanted(address), let member = names.member(address) { take(member, before) }
    switch state {
    case .left, .ejected: names.forget(address)
    case .connecting, .connected, .paused, .away, .rejected: resolve()
    }
  }

  private func take(_ member: MemberNames.Member, _ before: MemberState?) {
    let address = member.address
    view.member(
      names.name(address, sightings), address, member.peer, from: before, to: member.state,
      lacking: outbox.lacking(address), lines)
    switch member.state {
    case .connected, .paused: outbox.connected(address)
    case .away: outbox.away(address)
    case .left, .ejected: note(outbox.gone(address), address)
    case .connecting, .rejected: break
    }
  }

  /// Reports `count` lines that a member will never receive, because it left the session.
  private func note(_ count: Int, _ address: MemberAddress) {
    if count == 0 { return }
    lostCount += count
    let name = names.name(address, sightings)
    guard view.isJSON else {
      var text = TextBuilder(name, " did not receive the last ")
      text.add(lines: count)
      return view.notice(text)
    }
    var line = JSONLine(event: "lost")
    line.add("name", name.text)
    line.add(address)
    line.add("lines", UInt64(count))
    line.put(on: console)
  }

  // MARK: The named peer

  /// Identifies the peer of --with when it appears, as the provider of a service or as a member.
  private func resolve() {
    guard search != nil else { return }
    let members = names.members.map { member in
      Sighting(member.address.node, member.peer, Service(endpoint: member.address.endpoint, type: []))
    }
    switch search?.look(in: sightings.all + members) ?? .nothing {
    case .nothing: break
    case .hint(let text): view.notice(text)
    case .failed(let text): fail(text)
    case .found(let peer):
      for member in names.members where peer.includes(member.address) { take(member, nil) }
      for message in early where peer.includes(message.from) {
        view.message(names.name(message.from, sightings), message.from, message.text)
      }
      early = []
    }
  }
}

/// The receive window for the messages of a session: how many bytes the daemon may deliver to this command.
struct MessageWindow {
  private static let bytes: UInt64 = 262_144

  private var taken: UInt64 = 0
  private var limit: UInt64 = 0

  mutating func open(_ connection: any LocalConnection, _ session: UInt32) {
    limit = Self.bytes
    connection.post(.window(session: session, limit: limit))
  }

  /// Counts the bytes of a message that was shown. When half of the window is used, grants the daemon a full window
  /// again.
  mutating func took(_ byteCount: Int, _ connection: any LocalConnection, _ session: UInt32) {
    taken += UInt64(byteCount + LocalLimits.windowOverheadBytes)
    guard taken + Self.bytes / 2 >= limit else { return }
    limit = taken + Self.bytes
    connection.post(.window(session: session, limit: limit))
  }
}
