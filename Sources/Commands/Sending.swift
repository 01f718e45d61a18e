import DaemonClient
import LocalAPI
import Primitives
import Reactor
import Session
import Terminal
import Text
import Transfer
import TransferFiles

/// One run of `causeway send`.
final class Sending {
  private enum Step {
    /// PEER (the receiver that the user named) has not appeared, or has not returned after a break.
    case seeking
    case inviting(MemberAddress, UInt32)
    case sending(MemberAddress)
    /// The last records are on their way: those of this sender, or those of a receiver that cancelled.
    case ending
  }

  private let options: FilesOptions
  private let signals: Signals
  private let view: FilesView
  private let instance: [UInt8]
  private var connection: DaemonConnection
  private var session: UInt32 = 0
  private var sightings = Sightings()
  private var names = MemberNames()
  private var search: PeerSearch
  private let manifest: Manifest
  private var work: OutgoingWork
  private var step = Step.seeking
  private var attempt: UInt64 = 0
  private var writer = StreamWriter(0)
  private var answer: UInt32 = 0
  private var window = StreamWindow()
  private var progress = FileProgress()
  private var outcome: SenderOutcome?
  /// Whether the daemon was requested to finish the stream.
  private var hasFinished = false
  /// Whether there are more bytes to read or to hash.
  private var isBusy = false
  private var isInterrupted = false
  /// Whether the user was notified that PEER is asked to accept. The notice is not repeated when the offer is repeated
  /// after a break.
  private var hasAsked = false
  private var toldFiles = 0
  private var policy = SenderPolicy()
  /// The time at which the next attempt begins.
  private var retryAt = Instant.zero
  /// The deadline for the current step: PEER must appear, answer, or receive the last records before it.
  private var patience: Instant
  private var hasMet = false
  private var hasHinted = false
  /// The daemon's reason for having no room for the last invitation; nil if it had room.
  private var fullWords: [UInt8]?
  private var hasToldFull = false
  private var end: (text: TextBuilder, code: CInt)?

  init(
    _ options: FilesOptions, _ source: ResourceSource, _ word: String, _ signals: Signals, _ view: FilesView
  ) throws(CommandError) {
    self.options = options
    self.signals = signals
    self.view = view
    manifest = source.manifest
    work = OutgoingWork(source)
    search = PeerSearch(Array(word.utf8), isWaiting: options.local.waits != nil)
    // The name of the connection is derived from the files and PEER. A repeated command thus has the same name, and the
    // receiver continues the transfer. A command with other files has another name, and can run at the same time.
    var hash = SHA256()
    hash.update(source.manifest.digest.bytes)
    hash.update(Array(word.utf8))
    instance = utf8("send ") + hash.digest().hexadecimal(bytes: 8)
    connection = try options.local.connect(in: instance)
    patience = deadline(after: options.local.waitSeconds)
    try begin()
  }

  /// Opens the session on a new connection to the daemon, and browses for PEER.
  private func begin() throws(CommandError) {
    session = try connection.make(.open(type: options.type, FileLimits.rules)).number
    try connection.make(.browse(type: options.type))
  }

  func run() throws(CommandError) {
    while end == nil {
      if let broken = try broken(turn) { try connectAgain(broken) }
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
      line.put()
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
      patience = monotonicNow() + FileLimits.returnTime
      guard let again = options.local.connectAgain(in: instance, until: patience, signals) else {
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
    if case .inviting(_, 0) = step, monotonicNow() >= retryAt { step = .seeking }
    seek()
    produce()
    show()
    if end != nil { return }
    var until = min(patience, isShown ? view.nextProgress : .never)
    switch step {
    case .seeking where retryAt > monotonicNow(), .inviting(_, 0): until = min(until, retryAt)
    case .seeking, .inviting, .sending, .ending: break
    }
    if isBusy && outcome == nil && (writer.isShort || work.sender.isEnded) { until = .zero }
    let watch = DaemonConnection.Watch(signals: signals.descriptor)
    switch try connection.next(until: until, watching: watch) {
    case .event(let event): hear(event)
    case .signal: while signals.next() != nil { interrupt() }
    case .input, .outputClosed, .timedOut: break
    }
    if monotonicNow() >= patience { timeUp() }
  }

  private var isShown: Bool { if case .sending = step { work.sender.isAccepted } else { false } }

  private func timeUp() {
    switch step {
    case .seeking where hasMet:
      finish(TextBuilder(search.word, " did not return within an hour"), ExitCode.timedOut)
    case .seeking where fullWords != nil: finish(fullText, ExitCode.timedOut)
    case .seeking:
      finish(
        TextBuilder(quoting: search.word, " did not appear in time; run “causeway receive” there"),
        ExitCode.timedOut)
    case .inviting: finish(TextBuilder(search.word, " did not answer in time"), ExitCode.timedOut)
    case .sending where work.sender.isAccepted: patience = .never
    case .sending: finish(TextBuilder(search.word, ": nobody accepted the offer in time"), ExitCode.timedOut)
    case .ending:
      // PEER does not read the last records. The reset of the stream has the same meaning as these records.
      connection.ask(.reset(stream: writer.stream))
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
    patience = monotonicNow() + FileLimits.farewellTime
    step = .ending
    isBusy = true
  }

  // MARK: Finding PEER

  /// Invites PEER to the session, or opens a stream to PEER if it is a connected member.
  private func seek() {
    guard case .seeking = step, end == nil, monotonicNow() >= retryAt else { return }
    if search.peer == nil {
      switch search.look(in: sightings.all) {
      case .nothing: tellWaiting()
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
    let now = monotonicNow()
    let milliseconds = UInt32(clamping: max((min(patience, now + .seconds(60)) - now).milliseconds, 1))
    let number = connection.ask(.invite(session: session, sighting.address, milliseconds: milliseconds, context: []))
    step = .inviting(sighting.address, number)
  }

  /// Shows, once, that the daemon has no room for an invitation. The invitation is repeated.
  private func tellFull() {
    if hasToldFull || view.isJSON { return }
    hasToldFull = true
    var text = fullText
    text.add("; retrying (^C ends)")
    view.notice(text)
  }

  private var fullText: TextBuilder {
    var text = TextBuilder(quoting: search.word, " could not be invited")
    text.add(words: fullWords ?? [])
    return text
  }

  private func tellWaiting() {
    guard search.isAllTold, !hasHinted, !view.isJSON else { return }
    hasHinted = true
    view.notice(TextBuilder(quoting: search.word, " is not receiving yet: waiting for it"))
  }

  private func begin(_ address: MemberAddress) {
    attempt = UInt64.random(in: .min ... .max)
    let name = ResourceStream.offer(resource: ResourceStream.resource(manifest.digest), attempt: attempt).name
    writer = StreamWriter(connection.ask(.stream(session: session, to: address, name: name)))
    (answer, window, toldFiles, hasMet) = (0, StreamWindow(), 0, true)
    work.start()
    step = .sending(address)
    isBusy = true
    patience = monotonicNow() + .seconds(UInt64(TransferLimits.offerSeconds) + 30)
  }

  /// Handles an attempt that was interrupted, and schedules the next attempt. Ends the command if too many attempts
  /// sent no bytes.
  private func broke() {
    if work.sender.isEnded { return concludeOutcome() }
    if isInterrupted { return finish(TextBuilder("interrupted"), ExitCode.cut) }
    let decision = policy.pathFailed(bytesSent: work.sender.bytesSent)
    let now = monotonicNow()
    if case .sending = step {
      if decision == .giveUp {
        return finish(TextBuilder(search.word, ": the connection fails repeatedly"), ExitCode.failed)
      }
      patience = now + FileLimits.returnTime
      tellBreak()
    }
    seekAgain(at: now + .milliseconds(policy.pause))
  }

  /// Repeats a refused offer while the policy allows it.
  private func waitForTurn() {
    let text = TextBuilder(search.word, " accepts no files, or has too many offers at present")
    let now = monotonicNow(), isFirst = !policy.isRefused
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

  private func seekAgain(at time: Instant) { (step, isBusy, answer, retryAt) = (.seeking, false, 0, time) }

  private func tellBreak() {
    view.clear()
    guard !view.isJSON else { return }
    view.notice(TextBuilder(search.word, " is out of reach or has left; waiting for its return (^C ends)"))
  }

  private func invited(_ address: MemberAddress, _ outcome: InvitationOutcome) {
    step = .seeking
    switch outcome {
    case .connected:
      awaitMember(address)
    case .declined(let words):
      var text = TextBuilder(search.word, " does not accept files")
      text.add(words: words)
      finish(text, ExitCode.refused)
    case .incompatible:
      finish(TextBuilder(search.word, " does not accept files (incompatible session rules)"), ExitCode.refused)
    case .timedOut, .busy, .full: retryAt = monotonicNow() + .seconds(2)
    case .cancelled, .noService, .sessionEnded: retryAt = monotonicNow() + .seconds(1)
    }
  }

  /// Waits until the daemon reports the member that accepted the invitation as connected.
  private func awaitMember(_ address: MemberAddress) {
    step = .inviting(address, 0)
    retryAt = monotonicNow() + FileLimits.memberTime
    connected(address)
  }

  private func connected(_ address: MemberAddress) {
    guard case .inviting(address, _) = step, names.member(address)?.isThere == true else { return }
    begin(address)
  }

  // MARK: Events

  private func hear(_ event: LocalEvent) {
    switch event {
    case .services(_, let place, let node, let peer, let services):
      _ = sightings.hear(place: place, node, peer, services)
    case .allTold: search.isAllTold = true
    case .done(let request, let outcome, let words):
      if case .inviting(_, request) = step { fullWords = outcome == .full ? words : nil }
      if outcome == .done { return }
      if case .inviting(let address, request) = step {
        // If PEER is already a member (`alreadyMember`), the daemon reports it as connected shortly.
        step = .seeking
        retryAt = monotonicNow() + .seconds(1)
        if outcome == .alreadyMember { awaitMember(address) }
        if outcome == .full { tellFull() }
        if outcome == .notAllowed {
          let why: StaticString = ": the two boxes do not agree on [peer] encryption, and files are only sent encrypted"
          finish(TextBuilder(search.word, why), ExitCode.refused)
        }
      } else if request == writer.stream {
        broke()
      }
    case .invitationEnded(let number, _, let outcome):
      if case .inviting(let address, number) = step { invited(address, outcome) }
    case .member(_, let address, let state, let peer):
      _ = names.hear(address, state, peer)
      switch state {
      case .left, .ejected:
        names.forget(address)
        if case .inviting(address, _) = step { step = .seeking }
      case .connected: connected(address)
      case .connecting, .paused, .away, .rejected: break
      }
    case .stream(_, let received, let from, let name):
      let isAnswer = answer == 0 && ResourceStream(name) == .answer(attempt: attempt) && isTarget(from)
      let number = connection.ask(.take(stream: received, isWanted: isAnswer, limit: isAnswer ? window.limit : 0))
      if isAnswer { answer = number }
    case .streamRoom(writer.stream, let limit): writer.room(limit, connection)
    case .streamBytes(answer, let bytes):
      work.hear(bytes)
      window.took(bytes.count, answer, connection)
      isBusy = true
    case .streamEnded(writer.stream, _, let end): ended(end)
    case .ended(_, let end, _): finish(sessionEndText(end), ExitCode.cut)
    case .doneAt, .welcome, .invited, .identified, .message, .sent, .room, .streamBytes, .streamRoom, .streamEnded,
      .decisionWanted:
      break
    }
  }

  private func isTarget(_ address: MemberAddress) -> Bool {
    switch step {
    case .sending(let target): target == address
    case .ending: true
    case .seeking, .inviting: false
    }
  }

  private func ended(_ streamEnd: StreamEnd) {
    switch (step, streamEnd) {
    case (.ending, .reset(.cancelled)) where outcome == nil, (.sending, .reset(.cancelled)):
      // The last record of the end that cancelled, with its reason, may still arrive on the other stream.
      step = .ending
      patience = min(patience, monotonicNow() + FileLimits.farewellTime)
      writer = StreamWriter(0)
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
    case .seeking, .inviting: return
    }
    // Handle the receiver's last record (`isEnded`) at once, even if data waits until the stream accepts it.
    guard isBusy, outcome == nil, writer.isShort || work.sender.isEnded else { return finishStream() }
    let made = work.step(readsMax: FileLimits.readsMax)
    isBusy = made.isMore
    if writer.stream != 0 { writer.write(made.bytes, connection) }
    guard let outcome = made.outcome else { return }
    self.outcome = outcome
    isBusy = false
    step = .ending
    if writer.stream == 0 { return concludeOutcome() }
    patience = monotonicNow() + FileLimits.farewellTime
    finishStream()
  }

  /// Finishes the stream after the last records are written.
  private func finishStream() {
    guard outcome != nil, !hasFinished, writer.isEmpty else { return }
    hasFinished = true
    connection.ask(.finish(stream: writer.stream))
  }

  private var state: FileProgress.State {
    let sender = work.sender
    return FileProgress.State(
      done: sender.bytesDone, total: manifest.byteCount, held: sender.bytesHeld, moved: sender.bytesSent,
      comparing: sender.comparing)
  }

  private func show() {
    if (work.sender.isAsking || work.sender.isAccepted) && !hasAsked, case .sending(let address) = step,
      let peer = names.member(address)?.peer
    {
      hasAsked = true
      view.tellAsking(peer, address, manifest)
    }
    if isShown { patience = .never }
    while toldFiles < manifest.files.count, let verdict = work.sender.verdicts[toldFiles] {
      view.tellFile(work.path(toldFiles), manifest.size(file: toldFiles), verdict)
      toldFiles += 1
    }
    let now = monotonicNow()
    guard isShown, view.isProgressDue(now) else { return }
    if view.isJSON {
      var line = JSONLine(event: "progress")
      line.add(state)
      line.put()
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
