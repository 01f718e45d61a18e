import Synchronization
internal import Transfer
internal import TransferFiles

extension Session {
  /// Offers files and folders to a member. See docs/resources.md.
  ///
  /// The member's application has 10 minutes to accept or decline the offer. The accepted files are sent alongside
  /// messages and streams, and hashed during the transfer. If the connection to the member breaks, the offer is
  /// repeated when the member is connected again. The transfer then resumes without another prompt to the receiver's
  /// user. After a restart of this application, a call with the same files resumes the transfer too.
  ///
  /// - Parameters:
  ///   - paths: files, and folders with all their content; at most 65,536 files and folders in total, and no symbolic
  ///     links. Names are UTF-8 without control characters (docs/resources.md, “Records”). The files must not change
  ///     until they are sent. A path that begins with `http://` or `https://` is a URL. The program curl fetches the
  ///     file first, and the file is offered under the last component of the URL's path. A URL with a password is
  ///     refused; put the password in ~/.netrc.
  ///   - member: a connected member.
  ///   - spool: the folder that stores fetched files until their transfer ends. Nil stands for the folder that the
  ///     environment variable TMPDIR names, or /var/tmp if TMPDIR is not set.
  /// - Throws: `invalid` and `storage`, whose text names the file; `outOfReach` if the member is not connected or a
  ///   server does not have the file; `unsupported` if a URL needs curl and curl is not installed; `timedOut` if a
  ///   server sends nothing for a minute; `noSpace`; `ended`; `cancelled`.
  public func offer(
    _ paths: [String], to member: Address, spool: String? = nil
  ) async throws(CausewayError) -> Transfer {
    guard core.isConnected(member) else { throw CausewayError(.outOfReach, "the member is not connected") }
    let isWanted = Wanted()
    let found = await withTaskCancellationHandler {
      await onThread {
        Result { () throws(ResourceError) in
          try ResourceSource(fetching: paths, spool: spool) { _, _ in isWanted.now }
        }
      }
    } onCancel: {
      isWanted.end()
    }
    let source = try found.mapError { CausewayError($0) }.get()
    if Task.isCancelled { throw .cancelled }
    let run = OutgoingTransferTask(self, member, paths, source)
    run.start()
    return Transfer(member, run.core)
  }
}

/// Whether a task still waits for the result of a thread.
private final class Wanted: Sendable {
  private let isWanted = Mutex(true)

  var now: Bool { isWanted.withLock { $0 } }
  func end() { isWanted.withLock { $0 = false } }
}

/// The sender's side of one transfer. After a break the offer is repeated on a new stream; each such stream is one
/// attempt.
final class OutgoingTransferTask: Sendable {
  /// The result of an attempt.
  private enum End: Sendable {
    case outcome(SenderOutcome)
    case broken(CausewayError)
  }

  let core: TransferCore
  private let session: Session
  private let member: Address
  private let paths: [String]
  private let manifest: Manifest
  private let work: Mutex<OutgoingWork>
  private let news = Signal()

  init(_ session: Session, _ member: Address, _ paths: [String], _ source: ResourceSource) {
    self.session = session
    self.member = member
    self.paths = paths
    manifest = source.manifest
    work = Mutex(OutgoingWork(source))
    core = TransferCore(byteCount: manifest.byteCount, fileCount: manifest.files.count)
  }

  func start() {
    let running = Task { await run() }
    Task {
      // The end of the transfer also fulfils `cancelled`, so this task always ends.
      guard let word = await core.cancelled.value() else { return }
      work.withLock { $0.cancel(Array(word.utf8)) }
      news.notify()
      // A member that does not read must not delay the cancellation.
      _ = await within(Limits.farewellMax) { await self.core.ended.value().map { _ in true } }
      running.cancel()
    }
  }

  private func run() async {
    var policy = SenderPolicy()
    let began = ContinuousClock.now
    while true {
      let error: CausewayError
      switch await attempt() {
      case .outcome(let outcome): return end(result(outcome))
      case .broken(let broken): error = broken
      }
      if core.cancelled.now != nil || Task.isCancelled { return end(.failure(Self.cancelledHere)) }
      let pause: UInt64
      if error.reason == .stream(.refused) {
        let elapsed = (ContinuousClock.now - began) / .milliseconds(1)
        guard
          case .retry(let next) = policy.refused(
            random: .random(in: .min ... .max), nowMilliseconds: UInt64(elapsed))
        else {
          return end(
            .failure(CausewayError(.stream(.refused), "the member accepts no resources, or has too many offers")))
        }
        pause = next
      } else {
        let sent = work.withLock { $0.sender.bytesSent }
        guard Self.isBreak(error), case .retry(let next) = policy.pathFailed(bytesSent: sent) else {
          return end(.failure(error))
        }
        core.change { $0.state = .away }
        pause = next
      }
      let isBack = await within(Limits.returnMax) {
        try? await Task.sleep(for: .milliseconds(pause))
        return await self.session.core.returned(self.member)
      }
      guard let isBack else {
        return end(
          .failure(
            core.cancelled.now != nil
              ? Self.cancelledHere : CausewayError(.timedOut, "the member did not return within an hour")))
      }
      guard isBack else { return end(.failure(session.core.ended.now.flatMap { $0 } ?? Self.sessionEnded)) }
    }
  }

  private static let cancelledHere = CausewayError(.cancelled, "this application cancelled the transfer")
  private static let sessionEnded = CausewayError(.ended, "the session has ended")

  /// Whether the error is a break of the path, so that the transfer is attempted again. Sender and receiver use this
  /// function.
  static func isBreak(_ error: CausewayError) -> Bool {
    [.outOfReach, .full, .stream(.lost), .stream(.noPlace)].contains(error.reason)
  }

  private func end(_ result: Result<[String], CausewayError>) {
    work.withLock { $0.close() }
    core.end(result)
    core.cancel("")
  }

  // MARK: An attempt

  private func attempt() async -> End {
    let name = UInt64.random(in: .min ... .max), resources = session.core.resources
    let answer = resources.expect(name, from: member)
    defer { resources.forget(name) }
    do throws(CausewayError) {
      let stream = try await session.connection.openStream(
        ResourceStream.offer(resource: ResourceStream.resource(manifest.digest), attempt: name).text, to: member,
        in: session.number, keeping: session)
      work.withLock { $0.start() }
      core.change { $0.state = .offered }
      return await withTaskGroup(of: End?.self) { group in
        group.addTask { await self.receive(answer) }
        group.addTask { await self.write(stream) }
        group.addTask {
          // A refused stream must end the attempt even if there is nothing to write.
          guard let end = await stream.core.ended.value() else { return nil }
          switch end {
          case .success(let end): return end.error.map { .broken($0) }
          case .failure(let error): return .broken(error)
          }
        }
        var end: End?
        while let next = await group.next() {
          guard let next else { continue }
          end = next
          break
        }
        if case .broken(let error)? = end, error.reason == .stream(.cut) {
          // The receiver's reason for the reset may still be in flight.
          let known = await within(Limits.farewellMax) { await self.outcome() }
          end = .outcome(known ?? .cancelledByPeer(.wanted, text: []))
        }
        group.cancelAll()
        return end ?? .broken(.cancelled)
      }
    } catch {
      return .broken(error)
    }
  }

  /// Waits for the outcome that the receiver reports. Returns nil if the task was cancelled.
  private func outcome() async -> SenderOutcome? {
    while !Task.isCancelled {
      let known = work.withLock { work in
        if work.sender.isEnded && work.outcome == nil { _ = work.step() }
        return work.outcome
      }
      if let known { return known }
      try? await Task.sleep(for: .milliseconds(20))
    }
    return nil
  }

  /// Reads the receiver's stream of answers.
  private func receive(_ answer: Promise<OfferedStream>) async -> End? {
    guard let offered = await answer.value() else { return nil }
    do throws(CausewayError) {
      let stream = try await offered.open(keeping: session)
      var pieces = stream.makeAsyncIterator()
      while let bytes = try await pieces.next() {
        work.withLock { $0.receive(bytes) }
        news.notify()
      }
      // The writing task handles the last records.
      return nil
    } catch {
      return error.reason == .cancelled ? nil : .broken(error)
    }
  }

  private func write(_ stream: OutgoingStream) async -> End? {
    // The receiver must answer the offer before this time, regardless of anything else that the receiver sends.
    let deadline = ContinuousClock.now + .seconds(Int64(TransferLimits.offerSeconds) + 30)
    while true {
      let step = await onThread { self.work.withLock { $0.step() } }
      reportProgress()
      do throws(CausewayError) {
        if !step.bytes.isEmpty { try await stream.write(step.bytes) }
      } catch {
        // The outcome is valid even if the receiver does not receive the last records.
        if let outcome = step.outcome { return .outcome(outcome) }
        return error.reason == .cancelled ? nil : .broken(error)
      }
      if let outcome = step.outcome {
        _ = await within(Limits.farewellMax) { () -> Bool? in
          try? await stream.finish()
          return true
        }
        return .outcome(outcome)
      }
      if step.isMore { continue }
      if work.withLock({ $0.sender.isAccepted }) {
        guard await news.next() != nil else { return nil }
      } else {
        let time = deadline - .now
        let isNews = await within(max(time, .zero)) { await self.news.next().map { _ in true } }
        if isNews == nil {
          return Task.isCancelled ? nil : .outcome(.refused(.timedOut, text: []))
        }
      }
    }
  }

  private func reportProgress() {
    let known = work.withLock { work in
      let sender = work.sender
      return (
        isAccepted: sender.isAccepted, done: sender.bytesDone, held: sender.bytesHeld, moved: sender.bytesSent,
        files: sender.filesDone
      )
    }
    core.change { progress in
      if known.isAccepted { progress.state = .moving }
      progress.bytesDone = known.done
      progress.bytesHeld = known.held
      progress.bytesMoved = known.moved
      progress.filesDone = known.files
    }
  }

  // MARK: The end

  private func result(_ outcome: SenderOutcome) -> Result<[String], CausewayError> {
    switch outcome {
    case .complete(let verdicts):
      guard let missing = verdicts.firstIndex(where: { $0 == .notSent || $0 == .differs }) else {
        return .success(paths)
      }
      let (path, failure) = work.withLock { (readable($0.path(missing)), $0.failure.map { readable($0) }) }
      let count = verdicts.count { $0 != .stored }
      return .failure(
        CausewayError(
          .incomplete, "\(failure ?? "\(path) arrived with different content"); \(count) files were not stored"))
    case .refused(let code, let word): return .failure(refusal(code, readable(word)))
    case .cancelledHere: return .failure(Self.cancelledHere)
    case .cancelledByPeer(let code, let word): return .failure(Self.cancelled(code, readable(word)))
    case .broken(let fault):
      return .failure(CausewayError(.stream(.broken), "the member violated the protocol: \(fault.text)"))
    }
  }

  private func refusal(_ code: AnswerCode, _ word: String) -> CausewayError {
    let why = word.isEmpty ? "" : ": \(word)"
    switch code {
    case .noSpace: return CausewayError(.noSpace, "the member has not enough space for it\(why)")
    case .tooLarge: return CausewayError(.noSpace, "it is larger than the member accepts\(why)")
    case .timedOut: return CausewayError(.timedOut, "nobody answered the offer in time\(why)")
    case .busy: return CausewayError(.busy, "the member is already receiving it\(why)")
    case .declined, .accepted, .acceptedAgain: return CausewayError(.declined, "declined\(why)")
    }
  }

  /// The error of a transfer that the other end cancelled. Sender and receiver use this function.
  static func cancelled(_ code: CancelCode, _ word: String) -> CausewayError {
    let why = word.isEmpty ? "" : ": \(word)"
    switch code {
    case .wanted: return CausewayError(.cancelled, "the member cancelled the transfer\(why)")
    case .storageFailed: return CausewayError(.storage, "the member cannot store it\(why)")
    case .storageFull: return CausewayError(.noSpace, "the member's disk is full\(why)")
    case .broken:
      return CausewayError(.stream(.broken), "the member reports that this end violated the protocol\(why)")
    }
  }
}

extension SessionCore {
  func isConnected(_ member: Address) -> Bool { mailbox.read { $0.members[member]?.isConnected == true } }

  /// Waits until a member is connected. Returns false if the session has ended, or nil if the task was cancelled.
  func returned(_ member: Address) async -> Bool? {
    while true {
      let news = news
      if !isOpen.isOpen { return false }
      if isConnected(member) { return true }
      if await news.value() == nil { return nil }
    }
  }
}
