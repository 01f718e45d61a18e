import Synchronization

/// What waits for an application to take it. Each kind knows how it stays bounded when nobody does.
protocol Content: Sendable {
  associatedtype Element: Sendable
  mutating func take() -> Element?
  /// `take` would find nothing.
  var isEmpty: Bool { get }
}

/// Content, and the tasks that wait for it.
final class Mailbox<Inside: Content>: Sendable {
  private struct State {
    var content: Inside
    /// What comes after the last element: nothing, or an error.
    var end: Result<Void, CausewayError>?
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var last: UInt64 = 0
  }
  private let state: Mutex<State>

  init(_ content: Inside) { state = Mutex(State(content: content)) }

  /// Changes the content and wakes those who wait.
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

  /// Nothing comes behind what is there. The first end counts.
  func end(_ end: Result<Void, CausewayError>) {
    let waiters = state.withLock { state in
      if state.end == nil { state.end = end }
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Nil at the end, and if nothing else is said when the task was cancelled.
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
          // Something may have come meanwhile: the caller looks again.
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

/// Events for an application, each told once: to whichever task asks next. It throws when the connection to the daemon
/// ends.
public struct Events<Element: Sendable>: AsyncSequence, Sendable {
  public typealias Failure = CausewayError
  let source: @Sendable () async -> Result<Element?, CausewayError>

  public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  /// Takes one event after the other.
  public struct Iterator: AsyncIteratorProtocol {
    let source: @Sendable () async -> Result<Element?, CausewayError>

    /// The next event. Nil when there will be no more, or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(CausewayError)
      -> Element?
    {
      try await source().get()
    }

    public mutating func next() async throws(CausewayError) -> Element? { try await source().get() }
  }
}
