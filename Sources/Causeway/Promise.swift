import Synchronization

/// A value that is set once, and that any number of tasks can await.
final class Promise<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiters: [UInt64: CheckedContinuation<Value?, Never>] = [:]
    var last: UInt64 = 0
  }
  private let state = Mutex(State())

  /// Sets the value of the promise. Later calls of `fulfil` have no effect.
  func fulfil(_ value: Value) {
    let waiters = state.withLock { state in
      guard state.value == nil else { return [CheckedContinuation<Value?, Never>]() }
      state.value = value
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: value) }
  }

  /// The value, or nil before the value is set.
  var now: Value? { state.withLock { $0.value } }

  /// Waits for the value. Returns nil if the task was cancelled first.
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

/// A counting semaphore for tasks. The units of the semaphore are called slots. Slots are granted in the order of the
/// requests.
final class Gate: Sendable {
  private struct State {
    var free: Int
    var waiters: [(ticket: UInt64, slots: Int, promise: Promise<Void>)] = []
    var last: UInt64 = 0
  }
  private let state: Mutex<State>
  let slots: Int

  init(_ slots: Int) {
    self.slots = slots
    state = Mutex(State(free: slots))
  }

  /// Clamps a request to 1 … `slots`.
  private func counted(_ wanted: Int) -> Int { min(max(wanted, 1), slots) }

  /// Waits for `wanted` slots. Returns false if the task was cancelled first.
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

  /// Whether a task waits for a slot.
  var isWaiting: Bool { state.withLock { !$0.waiters.isEmpty } }

  func leave(_ wanted: Int = 1) { leave(counting: counted(wanted)) }

  private func leave(counting count: Int) {
    let next = state.withLock { state in
      state.free += count
      var next: [Promise<Void>] = []
      while let first = state.waiters.first, first.slots <= state.free {
        state.free -= first.slots
        next.append(first.promise)
        state.waiters.removeFirst()
      }
      return next
    }
    for promise in next { promise.fulfil(()) }
  }
}
