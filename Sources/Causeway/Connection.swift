import Synchronization
internal import Transfer

/// The receiver of the daemon's events for one object, such as a browse, a session or a stream. The events carry the
/// object's number.
protocol EventHandler: AnyObject, Sendable {
  func receive(_ event: Event, _ connection: Connection) throws(CausewayError)
  /// The connection has ended; no further event follows.
  func end(_ error: CausewayError)
}

/// The daemon's answer to a successful request.
struct Answer: Sendable {
  /// The result for each member that a message was sent to.
  var results: [Address: Delivery] = [:]
  /// The endpoint of this application, if the request created a service or a session.
  var endpoint: UInt32?
}

/// One connection to the daemon.
///
/// A dedicated thread reads and writes the socket. All methods outside “The thread” can be called from any thread. The
/// thread keeps the object alive while the socket is open. The `deinit` of `Lease` ends the connection when the
/// application has released all objects of the connection.
final class Connection: Sendable {
  private struct State {
    var lastNumber: UInt32 = 0
    var answers: [UInt32: (promise: Promise<Result<Answer, CausewayError>>, answer: Answer)] = [:]
    var handlers: [UInt32: any EventHandler] = [:]
    /// Packets that are queued for the daemon. `requests`, `Node.results` and `room()` limit the bytes of queued
    /// packets in normal use, and `Limits.unreadBytesMax` limits the bytes in any case.
    var output: [UInt8] = []
    var written = 0
    /// Fulfilled when `output` has drained to `Limits.unsentBytesMax` bytes. Nil while no task waits for room in
    /// `output`.
    var room: Promise<Void>?
    var error: CausewayError?

    var unsent: Int { output.count - written }
  }
  private let state = Mutex(State())
  private let stream: Int32
  private let bell: (listener: Int32, rope: Int32)
  private let welcome = Promise<Result<Welcome, CausewayError>>()
  /// Fulfilled with the reason when the connection has ended.
  let ended = Promise<CausewayError>()
  private let requests = Gate(Limits.requestsMax)
  let incoming = IncomingSlots(TransferLimits.slotsMax, hasReserve: true)

  /// Takes ownership of a connected, non-blocking socket.
  init(_ stream: Int32) throws(CausewayError) {
    self.stream = stream
    do {
      bell = try Platform.bell()
    } catch {
      Platform.close(stream)
      throw error
    }
    guard Platform.startThread({ self.run() }) else {
      Platform.close(stream)
      throw CausewayError(.noDaemon, "this process cannot start another thread")
    }
  }

  deinit {
    Platform.close(bell.listener)
    Platform.close(bell.rope)
  }

  // MARK: Requests

  /// An unused request number.
  func number() -> UInt32 {
    state.withLock { state in
      repeat {
        state.lastNumber = state.lastNumber == .max ? 1 : state.lastNumber + 1
      } while state.handlers[state.lastNumber] != nil || state.answers[state.lastNumber] != nil
      return state.lastNumber
    }
  }

  /// Forgets the receiver of the events with this number. The receiver is released outside the lock, because the
  /// receiver's `deinit` may call this connection.
  func forget(_ number: UInt32) { _ = state.withLock { $0.handlers.removeValue(forKey: number) } }

  func hello(_ name: String) async throws(CausewayError) -> Welcome {
    write(.hello(name: name), number())
    guard let answer = await welcome.value() else { throw .cancelled }
    return try answer.get()
  }

  /// Sends a request that creates an object. `receiver` receives the object's events, unless the request is refused.
  @discardableResult
  func make(
    _ request: Request, _ number: UInt32, for receiver: any EventHandler, undo: Request
  ) async throws(CausewayError) -> Answer {
    guard await requests.enter() else { throw .cancelled }
    defer { requests.leave() }
    state.withLock { state in
      if state.error == nil { state.handlers[number] = receiver }
    }
    do {
      return try await ask(request, number)
    } catch {
      forget(number)
      // The daemon may still carry out the request.
      if error == .cancelled { write(undo, self.number()) }
      throw error
    }
  }

  /// Sends a request and waits for its answer.
  @discardableResult
  func ask(_ request: Request, _ number: UInt32? = nil) async throws(CausewayError) -> Answer {
    let number = number ?? self.number(), promise = Promise<Result<Answer, CausewayError>>()
    let error = state.withLock { state in
      if state.error == nil { state.answers[number] = (promise, Answer()) }
      return state.error
    }
    if let error { throw error }
    write(request, number)
    guard let answer = await promise.value() else {
      state.withLock { _ = $0.answers.removeValue(forKey: number) }
      throw .cancelled
    }
    return try answer.get()
  }

  /// Sends a request without waiting for its answer.
  func write(_ request: Request, _ number: UInt32) {
    let packet = request.packet(number)
    let goes = state.withLock { state in
      guard state.error == nil else { return false }
      if state.unsent > Limits.unreadBytesMax {
        state.error = CausewayError.broken("it has not read the last \(Limits.unreadBytesMax) bytes")
      } else {
        state.output.append(contentsOf: packet)
      }
      return true
    }
    if goes { Platform.ring(bell.rope) }
  }

  /// Waits until no more than `Limits.unsentBytesMax` bytes are queued, so that bytes of a stream can be queued.
  /// Returns false if the task was cancelled.
  func room() async -> Bool {
    while true {
      let room: Promise<Void>? = state.withLock { state in
        guard state.error == nil, state.unsent > Limits.unsentBytesMax else { return nil }
        state.room = state.room ?? Promise()
        return state.room
      }
      guard let room else { return true }
      if await room.value() == nil { return false }
    }
  }

  /// Queued bytes that are not written yet.
  var unsentBytes: Int { state.withLock { $0.unsent } }

  /// Ends the connection. Only the first reason for the end is kept.
  func end(_ error: CausewayError) {
    let isFirst = state.withLock { state in
      defer { state.error = state.error ?? error }
      return state.error == nil
    }
    if isFirst { Platform.ring(bell.rope) }
  }

  // MARK: The thread

  private var error: CausewayError? { state.withLock { $0.error } }

  private func run() {
    var splitter = PacketSplitter(), buffer = [UInt8](repeating: 0, count: 65_536)
    /// The daemon's error for request 0, which the daemon sends before it closes the connection.
    var lastWords: CausewayError?
    while error == nil {
      let wantsWrite = state.withLock { $0.written < $0.output.count }
      let (canRead, canWrite) = Platform.wait(stream, wantsWrite: wantsWrite, bell.listener)
      if canWrite { writeSome() }
      guard canRead, let count = Platform.read(stream, into: &buffer) else { continue }
      if count == 0 {
        // Before the welcome, `lastWords` is the reason why the daemon refuses this client. After the welcome,
        // `lastWords` announces that the daemon stops.
        let refusal = welcome.now == nil ? lastWords : lastWords.map { .daemonEnded(saying: $0.text) }
        end(refusal ?? .daemonEnded)
        break
      }
      do throws(CausewayError) {
        splitter.append(buffer[..<count])
        while let packet = try splitter.next() {
          let (number, event) = try Event.read(packet)
          guard let event else { continue }
          if number == 0, case .done(let said, _) = event { lastWords = said }
          try receive(number, event)
        }
      } catch {
        end(error)
      }
    }
    // The last requests, such as a farewell, are written as far as the socket has room.
    writeSome()
    Platform.close(stream)
    let error = self.error ?? .daemonEnded
    let (answers, handlers, room) = state.withLock { state in
      defer { (state.answers, state.handlers, state.output, state.written, state.room) = ([:], [:], [], 0, nil) }
      return (state.answers.values.map(\.promise), Array(state.handlers.values), state.room)
    }
    room?.fulfil(())
    welcome.fulfil(.failure(error))
    for answer in answers { answer.fulfil(.failure(error)) }
    for receiver in handlers { receiver.end(error) }
    ended.fulfil(error)
  }

  private func writeSome() {
    let waiting = state.withLock { state in
      state.output.removeFirst(state.written)
      state.written = 0
      return state.output
    }
    // A failed write is ignored: reading detects a closed connection and also finds the daemon's last error.
    let count = waiting.isEmpty ? 0 : Platform.write(stream, waiting[...]) ?? waiting.count
    let room: Promise<Void>? = state.withLock { state in
      state.written = count
      guard state.unsent <= Limits.unsentBytesMax else { return nil }
      defer { state.room = nil }
      return state.room
    }
    room?.fulfil(())
  }

  private func receive(_ number: UInt32, _ event: Event) throws(CausewayError) {
    switch event {
    case .done(let refusal, let endpoint):
      let answer = state.withLock { $0.answers.removeValue(forKey: number) }
      if let refusal {
        answer?.promise.fulfil(.failure(refusal))
        if answer == nil { welcome.fulfil(.failure(refusal)) }
      } else if let answer {
        answer.promise.fulfil(.success(Answer(results: answer.answer.results, endpoint: endpoint)))
      }
    case .sent(let address, let delivery):
      // A misbehaving daemon must not add results without limit. A correct daemon sends at most one for each member.
      let isTooMuch = state.withLock { state in
        state.answers[number]?.answer.results[address] = delivery
        return (state.answers[number]?.answer.results.count ?? 0) > Limits.membersMax
      }
      if isTooMuch { throw .broken("more than \(Limits.membersMax) results of a message") }
    case .welcome(let welcome):
      self.welcome.fulfil(.success(welcome))
    case .services, .allTold, .invited, .invitationEnded, .identified, .ended, .member, .message, .room, .stream,
      .streamBytes, .streamRoom, .streamEnded, .decisionWanted:
      let receiver = state.withLock { $0.handlers[number] }
      try receiver?.receive(event, self)
      if case .ended = event { forget(number) }
    }
  }
}

/// Keeps the connection open. Every object that was created with the connection holds the connection's lease. The
/// connection ends when the last of these objects is released.
final class Lease: Sendable {
  let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  deinit { connection.end(.closed) }
}
