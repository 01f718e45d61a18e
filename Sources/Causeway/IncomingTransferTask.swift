import Synchronization
internal import Transfer
internal import TransferFiles

/// The receiver's side of one transfer, from the first record of the offer to the end. After a break the sender repeats
/// the offer on a new stream; each such stream is one attempt.
final class IncomingTransferTask: Sendable {
  private enum Decision { case open, deciding, accepted, refused }
  /// The result of an attempt.
  private enum End: Sendable {
    case outcome(ReceiverOutcome)
    case broken(CausewayError)
  }

  private struct Input: Sendable {
    var stream: IncomingStream?
    /// Whether another transfer took the slot of this attempt, possibly before the stream was open.
    var isPostponed = false
  }

  let sender: Member
  let resource: UInt64
  private let connection: Connection
  private let session: SessionCore
  private let work = Mutex(IncomingWork())
  private let decision = Mutex(Decision.open)
  /// The session, kept open during the decision and the transfer.
  private let kept = Mutex<Session?>(nil)
  private let answer = Mutex<OutgoingStream?>(nil)
  /// The sender's stream in this attempt of the transfer.
  private let input = Mutex(Input())
  /// The latest stream that repeats the offer.
  private let newest = Mutex<OfferedStream?>(nil)
  private let news = Signal()
  private let asked = Promise<TransferCore>()
  private let running = Mutex<Task<Void, Never>?>(nil)
  /// Closed when the time limit begins within which the sender must receive the last verdicts (the reports about
  /// files).
  private let isLast = Latch()

  init(_ connection: Connection, _ session: SessionCore, _ sender: Member, _ resource: UInt64) {
    self.connection = connection
    self.session = session
    self.sender = sender
    self.resource = resource
  }

  /// The state that the application sees; a placeholder until the offer has arrived.
  var core: TransferCore { asked.now ?? TransferCore(byteCount: 0, fileCount: 0) }

  func start(_ offered: OfferedStream) {
    running.withLock { $0 = Task { await run(offered) } }
    Task {
      // Two timeouts apply. If no offer arrives, the stream is reset. If the application does not answer, the offer is
      // refused.
      if await within(Limits.offerBegins, { await self.asked.value() }) == nil {
        return stop()
      }
      let time = Duration.seconds(Int64(TransferLimits.offerSeconds))
      if await within(time, { await self.news.next().map { _ in true } }) == nil { await refuse(.timedOut, "") }
    }
  }

  /// Stops reading the sender's stream.
  private func stop() { running.withLock { $0 }?.cancel() }

  func hold(_ session: Session) { kept.withLock { $0 = session } }

  var isAccepted: Bool { decision.withLock { $0 == .accepted } }

  /// Resets the streams because another transfer takes the slot. The sender tries again later: an unanswered offer
  /// starts over, and an accepted transfer resumes.
  func giveWay() {
    let stream = input.withLock { input in
      input.isPostponed = true
      return input.stream
    }
    answer.withLock { $0 }?.reset(isPostponed: true)
    stream?.reset(isPostponed: true)
  }

  /// Continues the transfer on a new stream, on which the sender has repeated its offer. If several streams repeat the
  /// offer, only the latest is used.
  func again(_ offered: OfferedStream) {
    newest.withLock { $0 = offered }
    returned.notify()
  }

  private let returned = Signal()

  // MARK: The application's answer

  func accept(_ directory: String, _ bytesMax: UInt64, _ offer: OfferRecord) async throws(CausewayError) {
    guard decide(.deciding, after: .open) else { throw Self.over }
    guard session.resources.enter(self) else {
      _ = decide(.open, after: .deciding)
      throw CausewayError(.busy, "it is already being received")
    }
    let result = await onThread {
      self.work.withLock { work in
        Result { () throws(ResourceError) in
          try work.accept(directory, bytesMax, offer, from: Array(self.sender.address.description.utf8))
        }
      }
    }
    switch result {
    case .failure(let error):
      session.resources.leave(self)
      _ = decide(.open, after: .deciding)
      throw CausewayError(error)
    case .success(let step):
      guard close(.accepted, after: .deciding) else { throw Self.over }
      if !step.bytes.isEmpty { try? await answer.withLock { $0 }?.write(step.bytes) }
      switch step.outcome {
      case .refused(.tooLarge)?:
        throw CausewayError(.noSpace, "it has \(offer.bytes) bytes, but at most \(bytesMax) are accepted")
      case .refused?:
        throw CausewayError(.noSpace, "\(harmless(directory)): there is no room for \(offer.bytes) bytes")
      case nil: watch()
      case .complete?, .cancelledHere?, .cancelledByPeer?, .storageFailed?, .broken?: throw Self.over
      }
    }
  }

  private static let over = CausewayError(.ended, "the offer was already answered, or has ended")

  /// Sets the state to `moving`, and starts a task that waits until the application cancels the transfer.
  private func watch() {
    let core = core
    core.change { $0.state = .moving }
    Task {
      guard let word = await core.cancelled.value() else { return }
      let step = await onThread { self.work.withLock { $0.cancel(Array(word.utf8)) } }
      await conclude(step)
    }
  }

  func decline(_ explanation: String) {
    guard decision.withLock({ $0 == .open }) else { return }
    Task { await refuse(.declined, explanation) }
  }

  private func refuse(_ code: AnswerCode, _ explanation: String) async {
    guard close(.refused, after: .open) else { return }
    let step = work.withLock { $0.refuse(code, Array(explanation.utf8)) }
    await conclude(step)
  }

  private func decide(_ new: Decision, after old: Decision) -> Bool {
    decision.withLock { decision in
      guard decision == old else { return false }
      decision = new
      return true
    }
  }

  /// Records the application's answer. Only the application's first answer has an effect.
  private func close(_ answer: Decision, after old: Decision) -> Bool {
    guard decide(answer, after: old) else { return false }
    session.resources.answered(self)
    session.mailbox.change { $0.remove(self) }
    news.notify()
    return true
  }

  // MARK: Attempts

  private func run(_ first: OfferedStream) async {
    var next = first
    while true {
      switch await attempt(next) {
      case .outcome(let outcome): return end(outcome)
      case .broken(let error):
        let isAccepted = decision.withLock { $0 == .accepted }
        let isComplete = isAccepted && work.withLock { $0.receiver.isComplete }
        switch ReceiverPolicy.attemptFailed(isCut: false, isAccepted: isAccepted, isComplete: isComplete) {
        case .isComplete:
          let step = await onThread { self.work.withLock { $0.finished() } }
          return end(step.outcome ?? .cancelledByPeer(.wanted, text: []), isHeard: false)
        case .cancelledByPeer: return end(.cancelledByPeer(.wanted, text: []))
        case .awaitsReturn:
          guard OutgoingTransferTask.isBreak(error) else { return fail(error) }
          let step = await onThread { self.work.withLock { $0.restart() } }
          if let outcome = step.outcome { return end(outcome) }
        }
      }
      connection.incoming.leave(self)
      core.change { $0.state = .away }
      let again = await within(Limits.returnMax) { await self.comesAgain() }
      guard let again else {
        return fail(
          session.isOpen.isOpen
            ? CausewayError(.timedOut, "the sender did not return within an hour")
            : session.ended.now.flatMap { $0 } ?? CausewayError(.ended, "the session has ended"))
      }
      next = again
    }
  }

  /// Waits for the same offer on another stream. Returns nil if the session or the transfer has ended, or if the task
  /// was cancelled.
  private func comesAgain() async -> OfferedStream? {
    await withTaskGroup(of: OfferedStream?.self) { group in
      group.addTask {
        while true {
          if let offered = self.newest.withLock({ newest in
            defer { newest = nil }
            return newest
          }) {
            if self.connection.incoming.enter(self) { return offered }
            // The sender repeats the offer until there is a slot.
            offered.refuse(isPostponed: true)
          }
          if await self.returned.next() == nil { return nil }
        }
      }
      group.addTask {
        _ = await self.session.ended.value()
        return nil
      }
      group.addTask {
        // During this wait, only a cancellation by the application ends the transfer.
        _ = await self.core.ended.value()
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  private func attempt(_ offered: OfferedStream) async -> End {
    guard case .offer(_, let attempt)? = ResourceStream(offered.name) else { return .broken(.cancelled) }
    input.withLock { $0 = Input() }
    do throws(CausewayError) {
      let stream = try await offered.open(keeping: nil)
      let isPostponed = input.withLock { input in
        input.stream = stream
        return input.isPostponed
      }
      if isPostponed { stream.reset(isPostponed: true) }
      let answer = try await connection.openStream(
        ResourceStream.answer(attempt: attempt).text, to: sender.address, in: session.number, keeping: nil)
      self.answer.withLock { $0 = answer }
      defer { stream.reset() }
      var pieces = stream.makeAsyncIterator()
      while let bytes = try await pieces.next() {
        connection.incoming.moved(self)
        let step = await onThread { self.work.withLock { $0.receive(bytes) } }
        if let outcome = try await report(step, answer) {
          await farewell(answer)
          return .outcome(outcome)
        }
      }
      let step = await onThread { self.work.withLock { $0.finished() } }
      let outcome = try await report(step, answer)
      await farewell(answer)
      return outcome.map { .outcome($0) } ?? .broken(.cancelled)
    } catch {
      return .broken(error)
    }
  }

  /// Sends the records that a step has produced, and publishes the progress. Returns the outcome if the step was the
  /// transfer's last step.
  private func report(_ step: IncomingWork.Step, _ answer: OutgoingStream) async throws(CausewayError)
    -> ReceiverOutcome?
  {
    do throws(CausewayError) {
      if !step.bytes.isEmpty { try await answer.write(step.bytes) }
    } catch {
      // The outcome is valid even if the sender does not receive the last records.
      if step.outcome == nil { throw error }
    }
    if let offer = step.offer {
      asked.fulfil(TransferCore(byteCount: offer.bytes, fileCount: Int(offer.files)))
      session.mailbox.change { $0.add(Offer(self, offer)) }
    }
    guard asked.now != nil else { return step.outcome }
    let known = work.withLock { work in
      let receiver = work.receiver
      return (
        done: receiver.bytesDone, held: receiver.bytesHeld, moved: receiver.bytesReceived, files: receiver.filesDone,
        isAccepted: receiver.isAccepted, isComplete: receiver.isComplete
      )
    }
    core.change { progress in
      if known.isAccepted { progress.state = .moving }
      progress.bytesDone = known.done
      progress.bytesHeld = known.held
      progress.bytesMoved = known.moved
      progress.filesDone = known.files
    }
    if known.isComplete && isLast.close() {
      Task {
        try? await Task.sleep(for: Limits.verdictsMax)
        stop()
      }
    }
    return step.outcome
  }

  // MARK: The end

  /// Ends the transfer because the application refused or cancelled the transfer.
  private func conclude(_ step: IncomingWork.Step) async {
    guard let outcome = step.outcome else { return }
    if let answer = answer.withLock({ $0 }) { await farewell(answer, step.bytes) }
    end(outcome)
  }

  /// Sends the last records and finishes the stream, within the time `Limits.farewellMax`.
  private func farewell(_ answer: OutgoingStream, _ bytes: [UInt8] = []) async {
    _ = await within(Limits.farewellMax) { () -> Bool? in
      try? await answer.write(bytes)
      try? await answer.finish()
      return true
    }
  }

  private func end(_ outcome: ReceiverOutcome, isHeard: Bool = true) {
    let result: Result<[String], CausewayError>
    switch outcome {
    case .complete(let verdicts):
      if let missing = verdicts.firstIndex(where: { $0 != .stored && $0 != .kept }) {
        let count = verdicts.count { $0 != .stored }
        let path = readable(work.withLock { $0.path(missing) })
        result = .failure(CausewayError(.incomplete, "\(path) was not received; \(count) files were not stored"))
      } else {
        result = .success(work.withLock { $0.paths })
        // Without the sender's confirmation, the partial (the folder with the received data) is kept. Without the
        // partial, a sender that repeats the offer would have to send everything again.
        if isHeard { work.withLock { $0.removePartial() } }
      }
    case .refused(let code): result = .failure(CausewayError(code == .timedOut ? .timedOut : .declined, "refused here"))
    case .cancelledHere: result = .failure(CausewayError(.cancelled, "this application cancelled the transfer"))
    case .cancelledByPeer(let code, let word): result = .failure(OutgoingTransferTask.cancelled(code, readable(word)))
    case .storageFailed(let isFull, let word):
      result = .failure(
        CausewayError(
          isFull ? .noSpace : .storage, isFull ? "the disk is full: the received data is kept for 24 h" : readable(word)
        ))
    case .broken(let fault):
      work.withLock { $0.removePartial() }
      result = .failure(CausewayError(.stream(.broken), "the member violated the protocol: \(fault.text)"))
    }
    finish(result)
  }

  private func fail(_ error: CausewayError) {
    finish(.failure(error.reason == .stream(.cut) ? OutgoingTransferTask.cancelled(.wanted, "") : error))
  }

  private func finish(_ result: Result<[String], CausewayError>) {
    _ = close(.refused, after: .open)
    session.resources.leave(self)
    connection.incoming.leave(self)
    stop()
    work.withLock { $0.close() }
    let core = core
    core.end(result)
    core.cancel("")
    kept.withLock { $0 = nil }
  }
}
