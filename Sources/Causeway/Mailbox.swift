import Synchronization

/// A queue of elements for the application. Each conforming type limits its own size if the application does not read.
protocol Content: Sendable {
  associatedtype Element: Sendable
  mutating func take() -> Element?
  /// Whether `take` would return nil.
  var isEmpty: Bool { get }
}

/// A queue (`Content`), and the tasks that wait for its next element.
final class Mailbox<Inside: Content>: Sendable {
  private struct State {
    var content: Inside
    /// How the sequence ends after the last queued element: with success or an error. Nil before the end.
    var end: Result<Void, CausewayError>?
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var last: UInt64 = 0
  }
  private let state: Mutex<State>

  init(_ content: Inside) { state = Mutex(State(content: content)) }

  /// Changes the content and wakes the waiting tasks.
  func change<Value: Sendable>(_ body: (inout Inside) -> Value) -> Value {
    let (value, waiters) = state.withLock { state in
      let value = body(&state.content)
      defer { state.waiters = [:] }
      return (value, Array(state.waiters.values))
    }
    for waiter in waiters { waiter.resume() }
    return value
  }

  func read<Value: Sendable>(_ body: (Inside) -> Value) -> Value { state.withLock { body($0.content) } }

  /// Ends the sequence after the elements that are already queued. Only the first call has an effect.
  func end(_ end: Result<Void, CausewayError>) {
    let waiters = state.withLock { state in
      if state.end == nil { state.end = end }
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits for the next element. Returns nil at the end of the sequence. When the task is cancelled, returns the
  /// argument `cancelled`, which is nil by default.
  func next(
    ifCancelled cancelled: Result<Inside.Element?, CausewayError> = .success(nil)
  ) async -> Result<Inside.Element?, CausewayError> {
    while true {
      let found: Result<Inside.Element?, CausewayError>? = state.withLock { state in
        if let element = state.content.take() { return .success(element) }
        return state.end.map { $0.map { nil } }
      }
      if let found { return found }
      if Task.isCancelled { return cancelled }
      await wait()
    }
  }

  private func wait() async {
    let ticket = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in
          // An element may have arrived after the caller's check. The caller then checks again.
          if Task.isCancelled || state.end != nil || !state.content.isEmpty { return false }
          state.waiters[ticket] = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: ticket) }?.resume()
    }
  }
}

/// A sequence of events for an application. Each event is delivered once, to the task that calls `next` first. Unless
/// stated otherwise, the sequence throws when the connection to the daemon ends.
public struct Events<Element: Sendable>: AsyncSequence, Sendable {
  public typealias Failure = CausewayError
  let source: @Sendable () async -> Result<Element?, CausewayError>

  public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  /// The iterator of a sequence of events.
  public struct Iterator: AsyncIteratorProtocol {
    let source: @Sendable () async -> Result<Element?, CausewayError>

    /// The next event, or nil at the end of the sequence or when the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(CausewayError)
      -> Element?
    {
      try await source().get()
    }

    public mutating func next() async throws(CausewayError) -> Element? { try await source().get() }
  }
}
