import Synchronization

/// A value that is there once, for any number of tasks that wait for it.
final class Promise<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiters: [UInt64: CheckedContinuation<Value?, Never>] = [:]
    var last: UInt64 = 0
  }
  private let state = Mutex(State())

  /// The first value counts.
  func fulfil(_ value: Value) {
    let waiters = state.withLock { state in
      guard state.value == nil else { return [CheckedContinuation<Value?, Never>]() }
      state.value = value
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: value) }
  }

  var now: Value? { state.withLock { $0.value } }

  /// Nil when the task was cancelled before.
  func value() async -> Value? {
    let ticket = state.withLock { state in
      state.last += 1
      return state.last
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: Value?? = state.withLock { state in
          if let value = state.value { return .some(value) }
          if Task.isCancelled { return .some(nil) }
          state.waiters[ticket] = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: ticket) }?.resume(returning: nil)
    }
  }
}

/// Places for what may be under way at once, given in the order of asking. Who waits is a task of the application.
final class Gate: Sendable {
  private struct State {
    var free: Int
    var waiters: [(ticket: UInt64, places: Int, promise: Promise<Void>)] = []
    var last: UInt64 = 0
  }
  private let state: Mutex<State>
  let places: Int

  init(_ places: Int) {
    self.places = places
    state = Mutex(State(free: places))
  }

  /// At least 1, and never more than there are.
  private func counted(_ wanted: Int) -> Int { min(max(wanted, 1), places) }

  /// False when the task was cancelled before its turn.
  func enter(_ wanted: Int = 1) async -> Bool {
    let count = counted(wanted), turn = Promise<Void>()
    let ticket: UInt64? = state.withLock { state in
      if state.waiters.isEmpty && state.free >= count {
        state.free -= count
        return nil
      }
      state.last += 1
      state.waiters.append((state.last, count, turn))
      return state.last
    }
    guard let ticket else { return true }
    if await turn.value() != nil { return true }
    let hadItsTurn = state.withLock { state in
      let before = state.waiters.count
      state.waiters.removeAll { $0.ticket == ticket }
      return state.waiters.count == before
    }
    if hadItsTurn { leave(count) } else { leave(counting: 0) }
    return false
  }

  /// Somebody waits for a place.
  var isWaiting: Bool { state.withLock { !$0.waiters.isEmpty } }

  func leave(_ wanted: Int = 1) { leave(counting: counted(wanted)) }

  private func leave(counting count: Int) {
    let next = state.withLock { state in
      state.free += count
      var next: [Promise<Void>] = []
      while let first = state.waiters.first, first.places <= state.free {
        state.free -= first.places
        next.append(first.promise)
        state.waiters.removeFirst()
      }
      return next
    }
    for promise in next { promise.fulfil(()) }
  }
}
