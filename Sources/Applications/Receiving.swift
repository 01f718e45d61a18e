import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Terminal
import Text
import Transfer
import TransferFiles

/// One run of `causeway receive` or `causeway drop`.
final class Receiving {
  private let options: FilesOptions
  private let rule: AcceptRule
  private let directory: String
  private let bytesMax: UInt64
  private let count: UInt64
  private let console: any Console
  private let view: FilesView
  private let lines: PeerLines
  private let questions: Prompts
  private let end: Instant
  private var connection: any LocalConnection
  /// The sessions with senders, one for each accepted invitation; the oldest is first.
  private var rooms: [SenderRoom] = []
  /// Invitations that wait for a session, the oldest first. The daemon limits their number: a few from each node, and
  /// 32 for this client.
  private var waiting: [WaitingSender] = []
  private var transfers: [IncomingFiles] = []
  private var names = MemberNames()
  private var received: UInt64 = 0
  private var failed: UInt64 = 0
  private var course = Course.receiving
  /// Whether a transfer was cancelled while it was under way.
  private var isCut = false

  private enum Course: Equatable {
    case receiving
    /// The time of --for has passed. The transfers that are under way are being cancelled.
    case timeIsOver
    /// The user has interrupted the command. The transfers that are under way are being cancelled.
    case interrupted
    case over(isInterrupted: Bool)
  }

  private var isOver: Bool { if case .over = course { true } else { false } }
  /// Whether the user has interrupted the command.
  private var isLeaving: Bool { course == .interrupted || course == .over(isInterrupted: true) }

  init(
    _ connection: any LocalConnection, _ console: any Console, _ options: FilesOptions, _ rule: AcceptRule,
    _ directory: String, _ bytesMax: UInt64, _ count: UInt64
  ) throws(CommandError) {
    (self.options, self.rule, self.directory, self.bytesMax) = (options, rule, directory, bytesMax)
    (self.count, self.connection, self.console) = (count, connection, console)
    questions = Prompts(console)
    let view = FilesView(isJSON: options.local.isJSON, console)
    self.view = view
    lines = PeerLines(console, view.leftOut)
    end = options.local.endOfStay(from: console.now)
    try make(.advertise(type: options.type, info: options.local.info), connection)
  }

  func run() throws(CommandError) {
    defer { questions.withdrawAll() }
    while !isOver {
      if let broken = try broken(console, turn) { try connectAgain(broken) }
    }
    lines.printOmittedCounts(isLast: true)
    view.clear()
    for room in rooms { _ = try? connection.carryOut(.leave(session: room.session, text: [])) }
    if isCut { throw CommandError(ExitCode.cut) }
    if failed > 0 { throw CommandError(ExitCode.failed) }
    if count != .max && received < count && !isLeaving { throw CommandError(ExitCode.timedOut) }
  }

  /// Waits until a lost daemon answers again, and then advertises again. Received data is kept in hidden folders
  /// (`Partial`).
  private func connectAgain(_ text: TextBuilder) throws(CommandError) {
    var text = text
    text.add("; reconnecting (^C ends)")
    for transfer in transfers where transfer.phase == .asking { broke(transfer) }
    view.notice(text)
    for transfer in transfers { broke(transfer) }
    guard let again = connection.restored(until: end, signals: console.signals) else {
      course = .over(isInterrupted: isLeaving)
      return
    }
    connection = again
    (rooms, waiting, names) = ([], [], MemberNames())
    transfers = []
    try make(.advertise(type: options.type, info: options.local.info), connection)
  }

  // MARK: The loop

  private func turn() throws(ConnectionError) {
    tidy()
    admit()
    show()
    if isOver { return }
    questions.update()
    var until = min(course == .receiving ? end : .never, lines.nextDeadline, questions.deadline)
    if !waiting.isEmpty {
      let now = console.now
      for room in rooms where room.keptUntil > now { until = min(until, room.keptUntil) }
      until = min(until, now + FileLimits.stillTime)
    }
    for transfer in transfers { until = min(until, transfer.deadline) }
    if transfers.contains(where: { $0.phase == .waiting }) { until = min(until, console.now + FileLimits.stillTime) }
    if transfers.contains(where: { $0.phase == .receiving }) { until = min(until, view.nextProgress) }
    let watch = DaemonConnection.Watch(input: questions.descriptor, signals: console.signals)
    switch try connection.next(until: until, watching: watch) {
    case .event(let event): receive(event)
    case .input: questions.readInput { number, accepts in answered(number, accepts) }
    case .signal: while console.nextSignal() != nil { interrupt() }
    case .outputClosed, .timedOut: break
    }
    lines.printOmittedCounts()
    let now = console.now
    for transfer in transfers where now >= transfer.deadline { transfer.timeUp() }
    if now >= end && course == .receiving {
      course = .timeIsOver
      cancel()
    }
  }

  private func interrupt() {
    switch course {
    case .receiving, .timeIsOver: course = .interrupted
    case .interrupted, .over: course = .over(isInterrupted: true)
    }
    cancel()
  }

  private func cancel() {
    questions.withdrawAll()
    for transfer in transfers {
      if transfer.phase == .receiving || transfer.phase == .away { isCut = true }
      transfer.cancel()
    }
  }

  /// Removes transfers that are over. Ends the command if it has nothing left to do.
  private func tidy() {
    if isFull { for transfer in transfers where transfer.phase == .asking { refuseFurther(transfer) } }
    for transfer in transfers {
      view.printItems(transfer)
      if transfer.hasResult { show(resultOf: transfer) }
      if transfer.phase == .over { count(transfer) }
    }
    transfers.removeAll { $0.phase == .over }
    for transfer in transfers where transfer.phase == .waiting { accept(transfer) }
    let isDone = received + failed >= count || course != .receiving
    if isDone && !transfers.contains(where: { $0.phase != .away }) {
      course = .over(isInterrupted: isLeaving)
    }
  }

  private func transfer(_ number: UInt32) -> IncomingFiles? { transfers.first { $0.has(number) } }

  // MARK: Sessions

  private func invited(_ invitation: Invitation, _ peer: LocalPeer) {
    let from = invitation.from, number = invitation.handle.number
    var text = TextBuilder()
    let answer = rule.answer(from.node, peer)
    if answer == .no { text.add("not accepted here") }
    if course != .receiving { text.add("the receiver is stopping") }
    guard text.bytes.isEmpty else {
      connection.ask(.answer(invitation: number, into: 0, text: text.bytes))
      return view.printDeclined(peer, from, text, lines)
    }
    waiting.append(
      WaitingSender(
        from: from, invitation: number, rules: invitation.rules, isTrusted: answer == .yes || peer.isVerified))
  }

  /// Accepts waiting invitations while there are sessions for them. Invitations of trusted senders come first.
  private func admit() {
    for isTrusted in [true, false] {
      waiting.removeAll { $0.isTrusted == isTrusted && admits($0) }
    }
  }

  private func admits(_ sender: WaitingSender) -> Bool {
    let now = console.now
    switch SenderRooms.choose(for: sender, among: rooms, transfers, now: now) {
    case .free: break
    case .instead(let index):
      let session = rooms[index].session
      for transfer in transfers where transfer.session == session && transfer.phase != .over { giveWay(transfer) }
      leave(session)
    case .none: return false
    }
    let session = connection.ask(.open(type: options.type, sender.rules))
    connection.ask(.answer(invitation: sender.invitation, into: session, text: []))
    rooms.append(
      SenderRoom(
        session: session, invitation: sender.invitation, node: sender.from.node, isTrusted: sender.isTrusted,
        openedAt: now))
    return true
  }

  private func leave(_ session: UInt32) {
    connection.ask(.leave(session: session, text: []))
    rooms.removeAll { $0.session == session }
  }

  private func receive(_ session: UInt32, _ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) {
    guard let index = rooms.firstIndex(where: { $0.session == session }) else { return }
    _ = names.receive(address, state, peer)
    switch state {
    case .connected: if !rooms[index].members.contains(address) { rooms[index].members.append(address) }
    case .left, .ejected:
      rooms[index].members.removeAll { $0 == address }
      names.forget(address)
      if rooms[index].members.isEmpty { leave(session) }
    case .connecting, .paused, .away, .rejected: break
    }
  }

  // MARK: Events

  private func receive(_ event: LocalEvent) {
    switch event {
    case .invited(_, let invitation, _, let peer): invited(invitation, peer)
    case .invitationEnded(_, let received, let outcome):
      waiting.removeAll { $0.invitation == received }
      guard outcome != .connected, let room = rooms.first(where: { $0.invitation == received }) else { return }
      leave(room.session)
    case .member(let session, let address, let state, let peer): receive(session, address, state, peer)
    case .stream(let session, let received, let from, let name): offered(session, received, from, name)
    case .streamRoom(let number, let limit): transfer(number)?.room(limit)
    case .streamBytes(let number, let bytes):
      guard let transfer = transfer(number) else { return }
      if transfer.receive(bytes) { decide(transfer) }
    case .streamEnded(let number, _, let end):
      guard let transfer = transfer(number) else { return }
      let wasReceiving = transfer.phase == .receiving
      transfer.ended(number, end)
      if wasReceiving && transfer.phase == .away { reportInterruption(transfer) }
    case .done(let request, let outcome, _):
      if outcome == .done { return }
      // The request failed because the stream ended before it was accepted or opened, or because the session ended
      // before it was joined.
      if let transfer = transfer(request) { broke(transfer) }
      rooms.removeAll { $0.session == request }
    case .ended(let session, _, _):
      rooms.removeAll { $0.session == session }
      for transfer in transfers where transfer.session == session { broke(transfer) }
    case .doneAt, .welcome, .services, .allTold, .identified, .message, .sent, .room, .decisionWanted: break
    }
  }

  private func broke(_ transfer: IncomingFiles) {
    if transfer.phase == .away || transfer.phase == .over { return }
    let wasReceiving = transfer.phase == .receiving
    transfer.gone(isCut: false)
    if wasReceiving && transfer.phase == .away { reportInterruption(transfer) }
  }

  private func offered(_ session: UInt32, _ received: UInt32, _ from: MemberAddress, _ name: [UInt8]) {
    guard case .offer(let resource, let attempt)? = ResourceStream(name), course == .receiving else {
      connection.ask(.take(stream: received, isWanted: false, limit: 0))
      return
    }
    let peer = names.member(from)?.peer ?? LocalPeer(name: [], hops: 0, isVerified: false)
    let isTrusted = peer.isVerified || rule.answer(from.node, peer) == .yes
    if let known = transfers.first(where: { $0.from == from && $0.resource == resource }) {
      if known.outcome == nil {
        guard known.phase != .away || findSlot(for: from.node, isTrusted: true) else {
          // The offer was accepted before, so it is postponed instead of refused. The sender then tries again until the
          // transfer gets a slot.
          connection.ask(.take(stream: received, isWanted: false, limit: 0, isPostponed: true))
          return
        }
        return known.take(received, attempt, session)
      }
      // The previous transfer of the same files has ended. The sender starts a new transfer.
      known.timeUp()
      tidy()
    }
    let ofNode = transfers.count { $0.from.node == from.node && !$0.isAccepted }
    guard ofNode < FileLimits.unansweredMax, findSlot(for: from.node, isTrusted: isTrusted) else {
      connection.ask(.take(stream: received, isWanted: false, limit: 0))
      return
    }
    let shown = names.member(from)?.peer.name ?? Array(from.node.shortText.utf8)
    let transfer = IncomingFiles(connection, console, from, shown, resource, session, isOfTrusted: isTrusted)
    transfers.append(transfer)
    transfer.take(received, attempt, session)
  }

  /// Finds a slot for an offer among the `slotsMax` active transfers. If necessary, another transfer gives its slot
  /// up and waits until its sender tries again. If too many transfers wait, one of these is cancelled.
  private func findSlot(for node: NodeID, isTrusted: Bool) -> Bool {
    if transfers.count >= FileLimits.awayMax {
      let away = transfers.filter { $0.phase == .away }
      (away.displaced(by: node, now: console.now) ?? away.first)?.cancel()
    }
    let held = transfers.filter { $0.phase != .away && $0.phase != .over }
    switch held.choose(of: TransferLimits.slotsMax, for: node, isTrusted: isTrusted, now: console.now) {
    case .free: return true
    case .instead(let index):
      giveWay(held[index])
      return true
    case .none: return false
    }
  }

  private func giveWay(_ transfer: IncomingFiles) {
    let wasReceiving = transfer.phase == .receiving
    transfer.giveWay()
    guard wasReceiving, transfer.phase == .away, !view.isJSON else { return }
    let text = TextBuilder(name: transfer.name, " gives way to another sender: the transfer resumes when it is retried")
    if lines.admits(text, .interrupted, of: transfer.from.node, peer(of: transfer)) { view.notice(text) }
  }

  private func peer(of transfer: IncomingFiles) -> LocalPeer {
    names.member(transfer.from)?.peer ?? LocalPeer(name: [], hops: 0, isVerified: false)
  }

  // MARK: The answer

  private func decide(_ transfer: IncomingFiles) {
    guard let offer = transfer.offer, let peer = names.member(transfer.from)?.peer else {
      return transfer.refuse(.declined, TextBuilder())
    }
    let held = transfer.bytesHeld(in: directory), missing = offer.bytes - min(held ?? 0, offer.bytes)
    var free: UInt64 = 0, text = TextBuilder()
    do throws(FileError) {
      free = try Files.space(try Files.folder(path: directory))
    } catch {
      text.add("the destination folder: ")
      text.add(error.text)
    }
    if view.isJSON { view.printOffer(transfer, offer, peer, held ?? 0, free) }
    if !text.bytes.isEmpty { return transfer.refuse(.declined, text) }
    if offer.bytes > bytesMax {
      text.add("at most ")
      text.add(bytesText(bytesMax))
      return transfer.refuse(.tooLarge, text)
    }
    if missing > free {
      text.add(bytesText(missing))
      text.add(" needed, ")
      text.add(bytesText(free))
      text.add(" free")
      return transfer.refuse(.noSpace, text)
    }
    if transfer.isAccepted || held != nil { return accept(transfer) }
    if isFull { return refuseFurther(transfer) }
    switch rule.answer(transfer.from.node, peer) {
    case .yes: accept(transfer)
    case .no: transfer.refuse(.declined, TextBuilder("not accepted here"))
    case .ask where questions.isOver: transfer.refuse(.declined, TextBuilder("nobody is available to answer"))
    case .ask:
      let question = OfferQuestion(transfer, peer, questions, lines)
      transfer.asked(question)
      view.clear()
      let text = offerQuestion(offer, peer, transfer.from.node, free)
      guard let removed = questions.ask(question.number, text, isVerified: peer.isVerified) else { return }
      asking(removed)?.refuse(.declined, TextBuilder("newer offers wait for an answer"))
    }
  }

  /// Whether --count offers were received, have failed, or are being received.
  private var isFull: Bool { received + failed + UInt64(transfers.count { $0.isAccepted }) >= count }

  private func refuseFurther(_ transfer: IncomingFiles) {
    transfer.refuse(.declined, TextBuilder("no more offers are accepted"))
  }

  /// The transfer that waits for the answer to a question.
  private func asking(_ question: UInt32) -> IncomingFiles? { transfers.first { $0.question?.number == question } }

  private func answered(_ number: UInt32, _ accepts: Bool) {
    guard let transfer = asking(number) else { return }
    if accepts { accept(transfer) } else { transfer.refuse(.declined, TextBuilder()) }
  }

  /// Accepts an offer, or lets the offer wait until there is memory for its manifest (its list of files).
  private func accept(_ transfer: IncomingFiles) {
    while !transfers.haveMemory(for: transfer) {
      let holders = transfers.filter { $0 !== transfer && $0.holdsManifest }
      guard let other = holders.displaced(by: transfer.from.node, now: console.now) else { return transfer.wait() }
      giveWay(other)
    }
    transfer.accept(directory, bytesMax)
    if view.isJSON && transfer.phase == .receiving {
      var line = JSONLine(event: "answer")
      line.add("name", transfer.name)
      line.add("accepted", true)
      line.put(on: console)
    }
  }

  // MARK: Output

  private func show() {
    let now = console.now
    guard questions.isEmpty, let transfer = transfers.first(where: { $0.phase == .receiving }), view.isProgressDue(now)
    else { return }
    guard view.isJSON else { return view.draw(transfer.progress.line(transfer.state, now)) }
    var line = JSONLine(event: "progress")
    line.add("name", transfer.name)
    line.add(transfer.state)
    line.put(on: console)
  }

  private func reportInterruption(_ transfer: IncomingFiles) {
    if view.isJSON { return }
    let text = TextBuilder(name: transfer.name, " is out of reach or has left: the transfer resumes when it is retried")
    if lines.admits(text, .interrupted, of: transfer.from.node, peer(of: transfer)) { view.notice(text) }
  }

  /// Counts the result of a transfer as received or failed.
  private func count(_ transfer: IncomingFiles) {
    if transfer.offer == nil { return }
    if transfer.isReceived { received += 1 } else if transfer.counts { failed += 1 }
  }

  private func show(resultOf transfer: IncomingFiles) {
    guard let offer = transfer.offer, !transfer.isResultShown else { return }
    transfer.isResultShown = true
    view.concluded(transfer, offer, transfer.isReceived, peer(of: transfer), lines)
  }
}
