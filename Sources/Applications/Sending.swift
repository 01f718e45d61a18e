import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Text
import Transfer
import TransferFiles

/// One run of `causeway send`.
final class Sending {
  private enum Step {
    /// PEER (the receiver that the user named) has not appeared, or has not returned after a break. The next attempt
    /// begins at `from` or later.
    case seeking(from: Instant)
    case inviting(MemberAddress, request: UInt32)
    /// The member has accepted the invitation, and must be reported as connected before the deadline.
    case joining(MemberAddress, until: Instant)
    case sending(MemberAddress)
    /// The last records are on their way: those of this sender, or those of a receiver that cancelled.
    case ending
  }

  /// The end of the transfer at this end, apart from the last records.
  private enum Closing {
    case open
    case decided(SenderOutcome)
    /// The daemon was requested to finish the stream.
    case finished(SenderOutcome)
  }

  private let options: FilesOptions
  private let console: any Console
  private let view: FilesView
  private var connection: any LocalConnection
  private var session: UInt32 = 0
  private var sightings = Sightings()
  private var names = MemberNames()
  private var search: PeerSearch
  private let manifest: Manifest
  private var work: OutgoingWork
  private var step = Step.seeking(from: .zero)
  /// The streams of the last attempt; nil before the first attempt.
  private var streams: OutgoingStreams?
  private var progress = FileProgress()
  private var closing = Closing.open
  /// Whether there are more bytes to read or to hash.
  private var isBusy = false
  private var isInterrupted = false
  private var notices: SendNotices
  private var policy = SenderPolicy()
  /// The deadline for the current step: PEER must appear, answer, or receive the last records before it.
  private var patience: Instant
  /// The daemon's reason for having no room for the last invitation; nil if it had room.
  private var fullWords: [UInt8]?
  private var end: (text: TextBuilder, code: CInt)?

  init(
    _ connection: any LocalConnection, _ console: any Console, _ options: FilesOptions, _ source: ResourceSource,
    _ word: String, _ view: FilesView
  ) throws(CommandError) {
    self.options = options
    self.console = console
    self.connection = connection
    self.view = view
    notices = SendNotices(view)
    manifest = source.manifest
    work = OutgoingWork(source)
    search = PeerSearch(Array(word.utf8), isWaiting: options.local.waits != nil)
    patience = deadline(after: options.local.waitSeconds, from: console.now)
    try begin()
  }

  /// The name of the connection, which is derived from the files and PEER. A repeated command thus has the same name,
  /// and the receiver continues the transfer. A command with other files has another name, and can run at the same
  /// time.
  static func instance(_ manifest: Manifest, _ word: String) -> [UInt8] {
    var hash = SHA256()
    hash.update(manifest.digest.bytes)
    hash.update(Array(word.utf8))
    return utf8("send ") + hash.digest().hexadecimal(bytes: 8)
  }

  /// Opens the session on a new connection to the daemon, and browses for PEER.
  private func begin() throws(CommandError) {
    session = try make(.open(type: options.type, FileLimits.rules), connection)
    try make(.browse(type: options.type), connection)
  }

  func run() throws(CommandError) {
    while end == nil {
      if let broken = try broken(console, turn) { try connectAgain(broken) }
    }
    work.close()
    view.clear()
    // Leave the session. If the command only exited, PEER would see that it crashed.
    _ = try? connection.carryOut(.leave(session: session, text: []))
    if let end { try conclude(end.text, end.code) }
  }

  private func conclude(_ text: TextBuilder, _ code: CInt) throws(CommandError) {
    if view.isJSON {
      var line = JSONLine(event: code == ExitCode.done ? "sent" : "failed")
      line.add("text", text.bytes)
      line.add("files", UInt64(work.sender.filesDone))
      line.add(state)
      line.put(on: console)
    } else if code == ExitCode.done {
      view.say(text)
    } else {
      view.notice(text)
    }
    if code != ExitCode.done { throw CommandError(code) }
  }

  /// Sets the result that ends the command. If called again, the first result is kept.
  private func finish(_ text: TextBuilder, _ code: CInt) { if end == nil { end = (text, code) } }

  /// Waits until a lost daemon answers again, and then starts again. If only the last records were missing, ends the
  /// command.
  private func connectAgain(_ text: TextBuilder) throws(CommandError) {
    guard case .ending = step else {
      var text = text
      text.add("; reconnecting (^C ends)")
      view.notice(text)
      patience = console.now + FileLimits.returnTime
      guard let again = connection.restored(until: patience, signals: console.signals) else {
        return finish(
          TextBuilder("the daemon did not return in time"), isInterrupted ? ExitCode.cut : ExitCode.noDaemon)
      }
      connection = again
      (sightings, names) = (Sightings(), MemberNames())
      search.isAllTold = false
      broke()
      return try begin()
    }
    concludeOutcome()
  }

  // MARK: The loop

  private func turn() throws(ConnectionError) {
    if case .joining(_, let until) = step, console.now >= until { step = .seeking(from: .zero) }
    seek()
    produce()
    show()
    if end != nil { return }
    var until = min(patience, isShown ? view.nextProgress : .never)
    switch step {
    case .seeking(let from): if from > console.now { until = min(until, from) }
    case .joining(_, let end): until = min(until, end)
    case .inviting, .sending, .ending: break
    }
    if mayProduce { until = .zero }
    let watch = DaemonConnection.Watch(signals: console.signals)
    switch try connection.next(until: until, watching: watch) {
    case .event(let event): receive(event)
    case .signal: while console.nextSignal() != nil { interrupt() }
    case .input, .outputClosed, .timedOut: break
    }
    if console.now >= patience { timeUp() }
  }

  /// Whether the next bytes can be read, hashed and written. The receiver's last record (`isEnded`) is handled at once,
  /// even if data waits until the stream accepts it.
  private var mayProduce: Bool {
    isBusy && outcome == nil && (streams?.isShort != false || work.sender.isEnded)
  }

  private var outcome: SenderOutcome? {
    switch closing {
    case .open: nil
    case .decided(let outcome), .finished(let outcome): outcome
    }
  }

  private var isShown: Bool { if case .sending = step { work.sender.isAccepted } else { false } }

  private func timeUp() {
    switch step {
    case .seeking where streams != nil:
      finish(TextBuilder(search.word, " did not return within an hour"), ExitCode.timedOut)
    case .seeking where fullWords != nil: finish(fullText, ExitCode.timedOut)
    case .seeking:
      finish(
        TextBuilder(quoting: search.word, " did not appear in time; run “causeway receive” there"),
        ExitCode.timedOut)
    case .inviting, .joining: finish(TextBuilder(search.word, " did not answer in time"), ExitCode.timedOut)
    case .sending where work.sender.isAccepted: patience = .never
    case .sending: finish(TextBuilder(search.word, ": nobody accepted the offer in time"), ExitCode.timedOut)
    case .ending:
      // PEER does not read the last records. The reset of the stream has the same meaning as these records.
      if let stream = streams?.stream { connection.ask(.reset(stream: stream)) }
      concludeOutcome()
    }
  }

  private func interrupt() {
    guard !isInterrupted, case .sending = step else {
      if case .ending = step, !isInterrupted { return }
      return finish(TextBuilder("interrupted"), ExitCode.cut)
    }
    isInterrupted = true
    work.cancel()
    patience = console.now + FileLimits.farewellTime
    step = .ending
    isBusy = true
  }

  // MARK: Finding PEER

  /// Invites PEER to the session, or opens a stream to PEER if it is a connected member.
  private func seek() {
    guard case .seeking(let from) = step, end == nil, console.now >= from else { return }
    if search.peer == nil {
      switch search.look(in: sightings.all) {
      case .nothing: if search.isAllTold { notices.waiting(for: search.word) }
      case .hint(let text): view.notice(text)
      case .failed(let text): return finish(text, ExitCode.failed)
      case .found: break
      }
    }
    guard let peer = search.peer else { return }
    if let member = names.members.first(where: { peer.includes($0.address) && $0.isThere }) {
      return begin(member.address)
    }
    // If several applications on PEER's box receive files, the first one found is invited.
    guard let sighting = sightings.all.first(where: { peer.includes($0.address) }) else { return }
    let now = console.now
    let milliseconds = UInt32(clamping: max((min(patience, now + .seconds(60)) - now).milliseconds, 1))
    let number = connection.ask(.invite(session: session, sighting.address, milliseconds: milliseconds, context: []))
    step = .inviting(sighting.address, request: number)
  }

  private var fullText: TextBuilder {
    var text = TextBuilder(quoting: search.word, " could not be invited")
    text.add(words: fullWords ?? [])
    return text
  }

  private func begin(_ address: MemberAddress) {
    streams = OutgoingStreams(connection, session, to: address, manifest)
    notices.attemptBegins()
    work.start()
    step = .sending(address)
    isBusy = true
    patience = console.now + .seconds(UInt64(TransferLimits.offerSeconds) + 30)
  }

  /// Handles an attempt that was interrupted, and schedules the next attempt. Ends the command if too many attempts
  /// sent no bytes.
  private func broke() {
    if work.sender.isEnded { return concludeOutcome() }
    if isInterrupted { return finish(TextBuilder("interrupted"), ExitCode.cut) }
    let decision = policy.pathFailed(bytesSent: work.sender.bytesSent)
    let now = console.now
    if case .sending = step {
      if decision == .giveUp {
        return finish(TextBuilder(search.word, ": the connection fails repeatedly"), ExitCode.failed)
      }
      patience = now + FileLimits.returnTime
      reportInterruption()
    }
    seekAgain(at: now + .milliseconds(policy.pause))
  }

  /// Repeats a refused offer while the policy allows it.
  private func waitForTurn() {
    let text = TextBuilder(search.word, " accepts no files, or has too many offers at present")
    let now = console.now, isFirst = !policy.isRefused
    guard case .sending = step,
      case .retry(let pause) = policy.refused(
        random: .random(in: .min ... .max), nowMilliseconds: now.nanoseconds / 1_000_000)
    else { return finish(text, ExitCode.refused) }
    if isFirst && !view.isJSON {
      var text = text
      text.add(": retrying (^C ends)")
      view.notice(text)
    }
    seekAgain(at: now + .milliseconds(pause))
  }

  private func seekAgain(at time: Instant) {
    (step, isBusy) = (.seeking(from: time), false)
    streams?.failed()
  }

  private func reportInterruption() {
    view.clear()
    guard !view.isJSON else { return }
    view.notice(TextBuilder(search.word, " is out of reach or has left; waiting for its return (^C ends)"))
  }

  /// Handles the daemon's answer to the request to invite.
  private func invited(_ address: MemberAddress, _ outcome: LocalOutcome, _ words: [UInt8]) {
    fullWords = outcome == .full ? words : nil
    if outcome == .done { return }
    step = .seeking(from: console.now + .seconds(1))
    // If PEER is already a member (`alreadyMember`), the daemon reports it as connected shortly.
    if outcome == .alreadyMember { awaitMember(address) }
    if outcome == .full { notices.full(fullText) }
    if outcome == .notAllowed {
      let why: StaticString = ": the two boxes do not agree on [peer] encryption, and files are only sent encrypted"
      finish(TextBuilder(search.word, why), ExitCode.refused)
    }
  }

  private func invited(_ address: MemberAddress, _ outcome: InvitationOutcome) {
    switch outcome {
    case .connected: awaitMember(address)
    case .declined(let words):
      var text = TextBuilder(search.word, " does not accept files")
      text.add(words: words)
      finish(text, ExitCode.refused)
    case .incompatible:
      finish(TextBuilder(search.word, " does not accept files (incompatible session rules)"), ExitCode.refused)
    case .timedOut, .busy, .full: step = .seeking(from: console.now + .seconds(2))
    case .cancelled, .noService, .sessionEnded: step = .seeking(from: console.now + .seconds(1))
    }
  }

  /// Waits until the daemon reports the member that accepted the invitation as connected.
  private func awaitMember(_ address: MemberAddress) {
    step = .joining(address, until: console.now + FileLimits.memberTime)
    connected(address)
  }

  private func connected(_ address: MemberAddress) {
    guard names.member(address)?.isThere == true else { return }
    switch step {
    case .inviting(address, _), .joining(address, _): begin(address)
    case .seeking, .inviting, .joining, .sending, .ending: break
    }
  }

  // MARK: Events

  private func receive(_ event: LocalEvent) {
    switch event {
    case .services(_, let reference, let node, let peer, let services):
      _ = sightings.update(reference: reference, node, peer, services)
    case .allTold: search.isAllTold = true
    case .done(let request, let outcome, let words):
      if case .inviting(let address, request) = step {
        invited(address, outcome, words)
      } else if outcome != .done && request == streams?.stream {
        broke()
      }
    case .invitationEnded(let number, _, let outcome):
      if case .inviting(let address, number) = step { invited(address, outcome) }
    case .member(_, let address, let state, let peer):
      _ = names.receive(address, state, peer)
      switch state {
      case .left, .ejected:
        names.forget(address)
        switch step {
        case .inviting(address, _): step = .seeking(from: .zero)
        case .joining(address, let until): step = .seeking(from: until)
        case .seeking, .inviting, .joining, .sending, .ending: break
        }
      case .connected: connected(address)
      case .connecting, .paused, .away, .rejected: break
      }
    case .stream(_, let received, let from, let name):
      guard streams != nil else {
        connection.ask(.take(stream: received, isWanted: false, limit: 0))
        return
      }
      streams?.opened(received, name, isFromReceiver: isTarget(from), connection)
    case .streamRoom(let stream, let limit): if stream == streams?.stream { streams?.room(limit, connection) }
    case .streamBytes(let stream, let bytes):
      guard streams?.isAnswer(stream) == true else { return }
      work.receive(bytes)
      streams?.took(bytes.count, connection)
      isBusy = true
    case .streamEnded(let stream, _, let end): if stream == streams?.stream { ended(end) }
    case .ended(_, let end, _): finish(sessionEndText(end), ExitCode.cut)
    case .doneAt, .welcome, .invited, .identified, .message, .sent, .room, .decisionWanted: break
    }
  }

  private func isTarget(_ address: MemberAddress) -> Bool {
    switch step {
    case .sending(let target): target == address
    case .ending: true
    case .seeking, .inviting, .joining: false
    }
  }

  private func ended(_ streamEnd: StreamEnd) {
    switch (step, streamEnd) {
    case (.ending, .reset(.cancelled)) where outcome == nil, (.sending, .reset(.cancelled)):
      // The last record of the end that cancelled, with its reason, may still arrive on the other stream.
      step = .ending
      patience = min(patience, console.now + FileLimits.farewellTime)
      streams?.cancelled()
    case (.ending, _): concludeOutcome()
    case (_, .reset(.refused)): waitForTurn()
    case (_, .reset(.broken)): finish(TextBuilder("the stream was cut: the protocol was violated"), ExitCode.failed)
    case (_, .reset(.cancelled)), (_, .reset(.tooMany)), (_, .lost), (_, .finished): broke()
    }
  }

  // MARK: Files

  /// Reads, hashes and writes as many bytes as the stream accepts now.
  private func produce() {
    switch step {
    case .sending, .ending: break
    case .seeking, .inviting, .joining: return
    }
    guard mayProduce else { return finishStream() }
    let made = work.step(readsMax: FileLimits.readsMax)
    isBusy = made.isMore
    streams?.write(made.bytes, connection)
    guard let outcome = made.outcome else { return }
    closing = .decided(outcome)
    isBusy = false
    step = .ending
    if streams?.stream == nil { return concludeOutcome() }
    patience = console.now + FileLimits.farewellTime
    finishStream()
  }

  /// Finishes the stream after the last records are written.
  private func finishStream() {
    guard case .decided(let outcome) = closing, let streams, let stream = streams.stream, streams.isEmpty else {
      return
    }
    closing = .finished(outcome)
    connection.ask(.finish(stream: stream))
  }

  private var state: FileProgress.State {
    let sender = work.sender
    return FileProgress.State(
      done: sender.bytesDone, total: manifest.byteCount, held: sender.bytesHeld, moved: sender.bytesSent,
      comparing: sender.comparing)
  }

  private func show() {
    if work.sender.isAsking || work.sender.isAccepted, case .sending(let address) = step,
      let peer = names.member(address)?.peer
    {
      notices.asking(peer, address, manifest)
    }
    if isShown { patience = .never }
    notices.files(work)
    let now = console.now
    guard isShown, view.isProgressDue(now) else { return }
    if view.isJSON {
      var line = JSONLine(event: "progress")
      line.add(state)
      line.put(on: console)
    } else {
      view.draw(progress.line(state, now))
    }
  }

  // MARK: The end

  private func concludeOutcome() {
    guard let outcome = outcome ?? work.outcome ?? finalOutcome() else {
      let text = isInterrupted ? TextBuilder("interrupted") : TextBuilder(search.word, " cancelled the transfer")
      return finish(text, ExitCode.cut)
    }
    show()
    let said = work.conclusion(outcome, to: search.word)
    finish(said.text, said.code)
  }

  /// The outcome that the receiver's last record states; nil if that record has not arrived.
  private func finalOutcome() -> SenderOutcome? { work.sender.isEnded ? work.step().outcome : nil }
}
