import Synchronization
internal import Transfer

/// Assigns the streams of a session that have reserved names to the session's file transfers. See docs/resources.md,
/// “Streams”.
final class Resources: Sendable {
  private struct Route: Hashable {
    let sender: Address
    let resource: UInt64
  }

  private struct State {
    /// The answer streams that outgoing transfers of this application expect, by the number of the attempt.
    var answers: [UInt64: (member: Address, promise: Promise<OfferedStream>)] = [:]
    /// Accepted incoming transfers. A repeated offer of the same resource (set of files) from the same sender continues
    /// the accepted transfer.
    var routes: [Route: IncomingTransferTask] = [:]
  }
  /// The slots for unanswered offers.
  private let unanswered = IncomingSlots(Limits.offersMax, hasReserve: false)
  private let state = Mutex(State())

  /// Handles a stream with a reserved name. A stream that no transfer expects is released, and its `deinit` refuses it.
  func receive(_ stream: OfferedStream, _ connection: Connection, _ session: SessionCore) {
    switch ResourceStream(stream.name) {
    case .answer(let attempt)?:
      let expected = state.withLock { state -> Promise<OfferedStream>? in
        guard state.answers[attempt]?.member == stream.sender.address else { return nil }
        return state.answers.removeValue(forKey: attempt)?.promise
      }
      expected?.fulfil(stream)
    case .offer(let resource, _)?:
      let route = Route(sender: stream.sender.address, resource: resource)
      if let known = state.withLock({ $0.routes[route] }) { return known.again(stream) }
      let run = IncomingTransferTask(connection, session, stream.sender, resource)
      guard connection.incoming.enter(run) else { return }
      guard unanswered.enter(run) else { return connection.incoming.leave(run) }
      run.start(stream)
    case nil: break
    }
  }

  func expect(_ attempt: UInt64, from member: Address) -> Promise<OfferedStream> {
    let promise = Promise<OfferedStream>()
    state.withLock { $0.answers[attempt] = (member, promise) }
    return promise
  }

  func forget(_ attempt: UInt64) { _ = state.withLock { $0.answers.removeValue(forKey: attempt) } }

  /// Frees the slot of an offer that was answered or has ended.
  func answered(_ run: IncomingTransferTask) { unanswered.leave(run) }

  /// Registers an accepted transfer. Returns false if this resource of this sender is already being received.
  func enter(_ run: IncomingTransferTask) -> Bool {
    let route = Route(sender: run.sender.address, resource: run.resource)
    return state.withLock { state in
      guard state.routes[route] == nil else { return false }
      state.routes[route] = run
      return true
    }
  }

  func leave(_ run: IncomingTransferTask) {
    let route = Route(sender: run.sender.address, resource: run.resource)
    state.withLock { if $0.routes[route] === run { $0.routes[route] = nil } }
  }
}
