import Synchronization
internal import Transfer

/// What a session has to do with resources: which streams belong to which transfer.
final class Resources: Sendable {
  private struct Route: Hashable {
    let sender: Address
    let resource: UInt64
  }

  private struct State {
    /// Answers that are expected: from whom, and who waits.
    var answers: [UInt64: (member: Address, promise: Promise<OfferedStream>)] = [:]
    /// Transfers that were accepted: the same offer is theirs.
    var routes: [Route: IncomingRun] = [:]
  }
  /// Offers that are not answered yet.
  private let unanswered = IncomingPlaces(Limits.offersMax, hasReserve: false)
  private let state = Mutex(State())

  /// A stream whose name is reserved. One that nobody wants is dropped, and so refused.
  func hear(_ stream: OfferedStream, _ connection: Connection, _ session: SessionInside) {
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
      let run = IncomingRun(connection, session, stream.sender, resource)
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

  /// An offer was answered, or has ended before.
  func answered(_ run: IncomingRun) { unanswered.leave(run) }

  /// False when this resource of this sender is being received already.
  func enter(_ run: IncomingRun) -> Bool {
    let route = Route(sender: run.sender.address, resource: run.resource)
    return state.withLock { state in
      guard state.routes[route] == nil else { return false }
      state.routes[route] = run
      return true
    }
  }

  func leave(_ run: IncomingRun) {
    let route = Route(sender: run.sender.address, resource: run.resource)
    state.withLock { if $0.routes[route] === run { $0.routes[route] = nil } }
  }
}
