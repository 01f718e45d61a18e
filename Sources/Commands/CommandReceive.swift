import CSystem
import Configuration
import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Reactor
import Session
import Terminal
import Transfer
import TransferFiles

private let countKey: CInt = 0x63 << 8
private let maxKey: CInt = 0x6D << 8
private let countOption = CommandOption(
  name: "count", key: countKey, argument: "N", help: "End after N offers that were received or failed")
private let maxOption = CommandOption(
  name: "max", key: maxKey, argument: "SIZE", help: "Decline larger offers; SIZE in bytes, or with k, M or G")
private let help: StaticString = """
  Receive files and folders into DIR, which peers send by “causeway send”. Each appears there when it is whole and is what \
  was sent; a name that is taken becomes foto-2.jpg, and nothing is ever replaced. Until then it is in a hidden folder in \
  DIR, and goes on after a break or a new start within 24 hours, without another question.\u{0B}On a terminal it asks for \
  each offer; otherwise, or with --pinned, it takes those of peers whose keys are pinned here. With --json all goes to \
  standard output, in events offer, answer, progress, stored, received, failed.\n\nExit code 1 tells that an offer could not \
  be received, 4 that --for ended before --count, 5 that ^C cut one.
  """
private let dropHelp: StaticString = """
  Receive files and folders into DIR as “causeway receive” does, without anybody there: for ever, without a question, from \
  peers whose keys are pinned here or who are named by --from. For a service.\u{0B}Each result is a line on standard \
  output, what was declined or failed one on standard error; with --json events offer, answer, stored, received, failed.
  """

/// `causeway receive`
func commandReceive(_ words: CommandWords) -> CInt {
  receive(
    words, "causeway receive", help, isDrop: false,
    options: LocalOptions.options + AcceptRule.options + [
      FilesOptions.type, LocalOptions.name, maxOption, countOption, LocalOptions.stay, LocalOptions.json,
    ])
}

/// `causeway drop`
func commandDrop(_ words: CommandWords) -> CInt {
  receive(
    words, "causeway drop", dropHelp, isDrop: true,
    options: LocalOptions.options + AcceptRule.options + [
      FilesOptions.type, LocalOptions.name, maxOption, LocalOptions.json,
    ])
}

private func receive(
  _ words: CommandWords, _ command: StaticString, _ help: StaticString, isDrop: Bool, options known: [CommandOption]
) -> CInt {
  var options = FilesOptions()
  var rule = AcceptRule()
  var directory = ""
  var count = UInt64.max, bytesMax = UInt64.max
  if isDrop { _ = rule.take(AcceptRule.pinnedKey, "") }
  CommandParser.parse(command, words, arguments: "DIR", count: 1...1, help: help, options: known) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    if let accepted = rule.take(key, value) { return accepted }
    switch key {
    case countKey:
      guard let number = Text(value).number(in: 1...1_000_000) else { return "a number from 1 to 1000000" }
      count = number
    case maxKey:
      guard let bytes = byteCount(value) else { return "a number of bytes, perhaps with k, M or G behind it" }
      bytesMax = bytes
    default: directory = value
    }
    return nil
  }
  return run { () throws(CommandFailure) in
    do throws(FileFailure) {
      _ = try Files.folder(path: directory)
    } catch {
      throw CommandFailure(saying: "\(directory): \(error.text)")
    }
    guard access(directory, W_OK | X_OK) == 0 else {
      throw CommandFailure(saying: "\(directory): \(SystemError.last.text)")
    }
    let name: StaticString = isDrop ? "drop" : "receive"
    try Receiving(options, rule, directory, bytesMax, count, name.bytes).run()
  }
}

/// 5G is 5,000,000,000 bytes.
func byteCount(_ text: String) -> UInt64? {
  var digits = Array(text.utf8), factor: UInt64 = 1
  switch digits.last {
  case UInt8(ascii: "k"): factor = 1_000
  case UInt8(ascii: "M"): factor = 1_000_000
  case UInt8(ascii: "G"): factor = 1_000_000_000
  default: break
  }
  if factor > 1 { digits.removeLast() }
  let number = Text(String(decoding: digits, as: UTF8.self)).number(in: 1...TransferLimits.bytesMax / factor)
  return number.map { $0 * factor }
}

/// One run of `causeway receive` or `causeway drop`.
private final class Receiving {
  /// A session with a sender. Each has one of its own, so that no sender sees another.
  private struct Room {
    let session: UInt32
    /// Of the daemon; 0 when it has ended.
    var invitation: UInt32
    let node: NodeID
    /// Until then its sender may take to say what it offers.
    var keptUntil: Instant
    var members: [MemberAddress] = []
  }

  private let options: FilesOptions
  private let rule: AcceptRule
  private let directory: String
  private let bytesMax: UInt64
  private let count: UInt64
  private let instance: [UInt8]
  private let signals = Signals([SIGINT, SIGTERM, SIGHUP])
  private let view: FilesView
  private let questions = Questions()
  private let end: Instant
  private var connection: DaemonConnection
  /// The oldest first.
  private var rooms: [Room] = []
  /// Invitations without a room, the oldest first. The daemon bounds them: a few of each node, 32 of a client.
  private var waiting: [(from: MemberAddress, number: UInt32, rules: SessionRules)] = []
  private var transfers: [IncomingFiles] = []
  private var names = MemberNames()
  private var received: UInt64 = 0
  private var failed: UInt64 = 0
  /// The user wants to go.
  private var isLeaving = false
  /// The time is over.
  private var isEnding = false
  private var isCut = false
  private var isOver = false

  init(
    _ options: FilesOptions, _ rule: AcceptRule, _ directory: String, _ bytesMax: UInt64, _ count: UInt64,
    _ instance: [UInt8]
  ) throws(CommandFailure) {
    (self.options, self.rule, self.directory, self.bytesMax) = (options, rule, directory, bytesMax)
    (self.count, self.instance) = (count, instance)
    view = FilesView(isJSON: options.local.isJSON)
    end = options.local.endOfStay
    connection = try options.local.connect(in: instance)
    try connection.make(.advertise(type: options.type, info: options.local.info))
  }

  func run() throws(CommandFailure) {
    while !isOver {
      if let broken = try broken(turn) { try connectAgain(broken) }
    }
    view.clear()
    for room in rooms { _ = try? connection.carryOut(.leave(session: room.session, text: [])) }
    if isCut { throw CommandFailure(ExitCode.cut) }
    if failed > 0 { throw CommandFailure(ExitCode.failed) }
    if count != .max && received < count && !isLeaving { throw CommandFailure(ExitCode.timedOut) }
  }

  /// The daemon is gone: the same again when it is back. What came waits in its partials.
  private func connectAgain(_ text: TextBuilder) throws(CommandFailure) {
    var text = text
    text.add("; waiting for it (^C ends)")
    view.notice(text)
    for transfer in transfers { broke(transfer) }
    guard let again = options.local.connectAgain(in: instance, until: end, signals) else {
      isOver = true
      return
    }
    connection = again
    (rooms, waiting, names) = ([], [], MemberNames())
    transfers = []
    try connection.make(.advertise(type: options.type, info: options.local.info))
  }

  // MARK: The loop

  private func turn() throws(ConnectionError) {
    tidy()
    admit()
    show()
    if isOver { return }
    var until = isEnding ? .never : end
    if !waiting.isEmpty {
      let now = monotonicNow()
      for room in rooms where room.keptUntil > now { until = min(until, room.keptUntil) }
    }
    for transfer in transfers { until = min(until, transfer.deadline) }
    if transfers.contains(where: { $0.phase == .waiting }) { until = min(until, monotonicNow() + FileLimits.stillTime) }
    if transfers.contains(where: { $0.phase == .receiving }) { until = min(until, view.nextProgress) }
    let watch = DaemonConnection.Watch(input: questions.descriptor, signals: signals.descriptor)
    switch try connection.next(until: until, watching: watch) {
    case .event(let event): hear(event)
    case .input: questions.readInput { number, accepts in answered(number, accepts) }
    case .signal: while signals.next() != nil { interrupt() }
    case .outputClosed, .timedOut: break
    }
    let now = monotonicNow()
    for transfer in transfers where now >= transfer.deadline {
      if transfer.phase == .asking { withdraw(transfer) }
      transfer.timeUp()
    }
    if now >= end && !isEnding {
      isEnding = true
      cancel()
    }
  }

  private func interrupt() {
    if isLeaving { isOver = true }
    isLeaving = true
    cancel()
  }

  private func cancel() {
    questions.withdrawAll()
    for transfer in transfers {
      if transfer.phase == .receiving || transfer.phase == .away { isCut = true }
      transfer.cancel()
    }
  }

  /// Takes leave of what is over.
  private func tidy() {
    for transfer in transfers {
      view.tellItems(transfer)
      if transfer.phase == .over { concluded(transfer) }
    }
    transfers.removeAll { $0.phase == .over }
    for transfer in transfers where transfer.phase == .waiting { accept(transfer) }
    let isDone = received + failed >= count || isLeaving || isEnding
    if isDone && !transfers.contains(where: { $0.phase != .away }) { isOver = true }
  }

  private func transfer(_ number: UInt32) -> IncomingFiles? { transfers.first { $0.has(number) } }

  // MARK: Sessions

  private func invited(_ invitation: Invitation, _ peer: LocalPeer) {
    let from = invitation.from, number = invitation.handle.number
    var text = TextBuilder()
    if rule.answer(from.node, peer) == .no { text.add("not accepted here") }
    if isLeaving { text.add("it ends") }
    guard text.bytes.isEmpty else {
      connection.ask(.answer(invitation: number, into: 0, text: text.bytes))
      return view.tellDeclined(peer, from, text)
    }
    waiting.append((from, number, invitation.rules))
  }

  /// Accepts the invitations that there is room for.
  private func admit() {
    waiting.removeAll { from, number, rules in
      guard makeRoom(for: from.node) else { return false }
      let session = connection.ask(.open(type: options.type, rules))
      connection.ask(.answer(invitation: number, into: session, text: []))
      rooms.append(
        Room(session: session, invitation: number, node: from.node, keptUntil: monotonicNow() + FileLimits.roomTime))
      return true
    }
  }

  /// One that is not used makes room for another sender.
  private func makeRoom(for node: NodeID) -> Bool {
    let ofNode = rooms.filter { $0.node == node }
    if ofNode.count >= SessionLimits.invitationsPerNodeMax { return leaveUnused(ofNode) }
    return rooms.count < FileLimits.sessionsMax || leaveUnused(rooms)
  }

  private func leaveUnused(_ some: [Room]) -> Bool {
    let now = monotonicNow()
    guard let room = some.first(where: { $0.keptUntil <= now && !isUsed($0) }) else { return false }
    leave(room.session)
    return true
  }

  private func isUsed(_ room: Room) -> Bool { transfers.contains { $0.session == room.session && $0.phase != .away } }

  private func leave(_ session: UInt32) {
    connection.ask(.leave(session: session, text: []))
    rooms.removeAll { $0.session == session }
  }

  private func hear(_ session: UInt32, _ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) {
    guard let index = rooms.firstIndex(where: { $0.session == session }) else { return }
    _ = names.hear(address, state, peer)
    switch state {
    case .connected: if !rooms[index].members.contains(address) { rooms[index].members.append(address) }
    case .left, .ejected:
      rooms[index].members.removeAll { $0 == address }
      names.forget(address)
      if rooms[index].members.isEmpty { leave(session) }
    case .connecting, .paused, .away, .rejected: break
    }
  }

  // MARK: What happens

  private func hear(_ event: LocalEvent) {
    switch event {
    case .invited(_, let invitation, _, let peer): invited(invitation, peer)
    case .invitationEnded(_, let received, let outcome):
      waiting.removeAll { $0.number == received }
      guard outcome != .connected, let room = rooms.first(where: { $0.invitation == received }) else { return }
      leave(room.session)
    case .member(let session, let address, let state, let peer): hear(session, address, state, peer)
    case .stream(let session, let received, let from, let name): offered(session, received, from, name)
    case .streamRoom(let number, let limit): transfer(number)?.room(limit)
    case .streamBytes(let number, let bytes):
      guard let transfer = transfer(number) else { return }
      if transfer.hear(bytes) { decide(transfer) }
    case .streamEnded(let number, _, let end):
      guard let transfer = transfer(number) else { return }
      let wasReceiving = transfer.phase == .receiving
      if transfer.phase == .asking { withdraw(transfer) }
      transfer.ended(number, end)
      if wasReceiving && transfer.phase == .away { tellBreak(transfer) }
    case .done(let request, let outcome, _):
      if outcome == .done { return }
      // The stream was gone before it was taken or opened, or the session before it was joined.
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
    if transfer.phase == .asking { withdraw(transfer) }
    let wasReceiving = transfer.phase == .receiving
    transfer.gone(isCut: false)
    if wasReceiving && transfer.phase == .away { tellBreak(transfer) }
  }

  private func withdraw(_ transfer: IncomingFiles) {
    questions.withdraw(transfer.stream, TextBuilder(transfer.name, " waits no longer: its offer is over"))
  }

  private func offered(_ session: UInt32, _ received: UInt32, _ from: MemberAddress, _ name: [UInt8]) {
    guard case .offer(let resource, let attempt)? = ResourceStream(name), !isLeaving else {
      connection.ask(.take(stream: received, isWanted: false, limit: 0))
      return
    }
    if let known = transfers.first(where: { $0.from == from && $0.resource == resource }) {
      if known.phase == .asking { withdraw(known) }
      if known.outcome == nil { return known.take(received, attempt, session) }
      // The last one has ended: its sender begins anew.
      known.timeUp()
      tidy()
    }
    let ofNode = transfers.count { $0.from.node == from.node && !$0.isAccepted }
    guard ofNode < FileLimits.unansweredMax, makePlace() else {
      connection.ask(.take(stream: received, isWanted: false, limit: 0))
      return
    }
    let shown = names.member(from)?.peer.name ?? Array(from.node.shortText.utf8)
    let transfer = IncomingFiles(connection, from, shown, resource, session)
    transfers.append(transfer)
    transfer.take(received, attempt, session)
  }

  /// One that stands still makes place for another; of those that are waited for the oldest is given up.
  private func makePlace() -> Bool {
    if transfers.count >= FileLimits.awayMax { transfers.first { $0.phase == .away }?.cancel() }
    if transfers.count(where: { $0.phase != .away }) < FileLimits.transfersMax { return true }
    guard let still = stillTransfer else { return false }
    still.gone(isCut: false)
    return true
  }

  private var stillTransfer: IncomingFiles? {
    let now = monotonicNow()
    return transfers.first { $0.phase == .receiving && now - $0.lastHeard >= FileLimits.stillTime }
  }

  // MARK: The answer

  private func decide(_ transfer: IncomingFiles) {
    guard let offer = transfer.offer, let peer = names.member(transfer.from)?.peer else {
      return transfer.refuse(.declined, TextBuilder())
    }
    let held = transfer.bytesHeld(in: directory), missing = offer.bytes - min(held ?? 0, offer.bytes)
    var free: UInt64 = 0, text = TextBuilder()
    do throws(FileFailure) {
      free = try Files.space(try Files.folder(path: directory))
    } catch {
      text.add("its folder: ")
      text.add(error.text)
    }
    if view.isJSON { view.tellOffer(transfer, offer, peer, held ?? 0, free) }
    if !text.bytes.isEmpty { return transfer.refuse(.declined, text) }
    if offer.bytes > bytesMax {
      text.add("no more than ")
      text.add(bytesText(bytesMax))
      return transfer.refuse(.tooLarge, text)
    }
    if missing > free {
      text.add(bytesText(missing))
      text.add(" to come, ")
      text.add(bytesText(free))
      text.add(" free")
      return transfer.refuse(.noSpace, text)
    }
    if transfer.isAccepted || held != nil { return accept(transfer) }
    let others = transfers.count { $0.isAccepted && $0 !== transfer }
    if received + failed + UInt64(others) >= count {
      return transfer.refuse(.declined, TextBuilder("no more is taken"))
    }
    switch rule.answer(transfer.from.node, peer) {
    case .yes: accept(transfer)
    case .no: transfer.refuse(.declined, TextBuilder("not accepted here"))
    case .ask where questions.isOver: transfer.refuse(.declined, TextBuilder("nobody is there who could be asked"))
    case .ask:
      transfer.asked()
      view.clear()
      questions.ask(transfer.stream, question(offer, peer, transfer.from.node, free))
    }
  }

  private func answered(_ number: UInt32, _ accepts: Bool) {
    guard let transfer = transfer(number), transfer.phase == .asking else { return }
    if accepts { accept(transfer) } else { transfer.refuse(.declined, TextBuilder()) }
  }

  /// Accepts an offer, or lets it wait until there is memory for its manifest.
  private func accept(_ transfer: IncomingFiles) {
    if !hasMemory(for: transfer) {
      if let still = stillTransfer { still.gone(isCut: false) }
      if !hasMemory(for: transfer) { return transfer.wait() }
    }
    transfer.accept(directory, bytesMax)
    if view.isJSON && transfer.phase == .receiving {
      var line = JSONLine(event: "answer")
      line.add("name", transfer.name)
      line.add("accepted", true)
      line.put()
    }
  }

  private func hasMemory(for transfer: IncomingFiles) -> Bool {
    var (bytes, entries) = transfer.manifestSize
    for other in transfers where other !== transfer && other.holdsManifest {
      bytes += other.manifestSize.bytes
      entries += other.manifestSize.entries
    }
    return bytes <= FileLimits.manifestBytesMax && entries <= FileLimits.entriesMax
  }

  /// dave (NOT verified, e4654c9f) offers “photos”: 40 files, 361 MB; 41 GB free. Accept? [y/N]
  private func question(_ offer: OfferRecord, _ peer: LocalPeer, _ node: NodeID, _ free: UInt64) -> TextBuilder {
    var text = TextBuilder()
    text.add(peer, node)
    text.add(" offers ")
    text.add(offer)
    text.add("; ")
    text.add(bytesText(free))
    text.add(" free. Accept? [y/N] ")
    return text
  }

  // MARK: What is told

  private func show() {
    let now = monotonicNow()
    guard questions.isEmpty, let transfer = transfers.first(where: { $0.phase == .receiving }), view.isProgressDue(now)
    else { return }
    guard view.isJSON else { return view.draw(transfer.progress.line(transfer.state, now)) }
    var line = JSONLine(event: "progress")
    line.add("name", transfer.name)
    line.add(transfer.state)
    line.put()
  }

  private func tellBreak(_ transfer: IncomingFiles) {
    if view.isJSON { return }
    view.notice(TextBuilder(transfer.name, " is out of reach or gone: it goes on when the same is sent again"))
  }

  /// A transfer is over.
  private func concluded(_ transfer: IncomingFiles) {
    guard let offer = transfer.offer else { return }
    let isReceived = transfer.isReceived
    if isReceived { received += 1 } else if transfer.counts { failed += 1 }
    view.concluded(transfer, offer, isReceived)
  }
}
