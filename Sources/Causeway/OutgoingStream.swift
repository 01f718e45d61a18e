import Synchronization
internal import Transfer

extension Session {
  /// Opens a stream that carries bytes in order to one member, alongside messages. See docs/local-api.md, “stream”.
  ///
  /// The member's application accepts or refuses the stream. Bytes that are written before this decision wait in this
  /// process and on the path.
  ///
  /// - Parameters:
  ///   - name: describes the stream to the member; 1 to 63 bytes of UTF-8 without control characters, and without the
  ///     prefix `causeway:`.
  ///   - member: a connected member.
  /// - Throws: `invalid`; `outOfReach` if the member is not connected; `full` beyond 32 streams of this application in
  ///   both directions, or beyond 16 streams to one member; `ended`; `cancelled`.
  public func openStream(_ name: String, to member: Address) async throws(CausewayError) -> OutgoingStream {
    try Syntax.name(name, "the name of a stream", Limits.nameBytesMax, mayBeEmpty: false)
    guard !ResourceStream.isReserved(name) else {
      throw CausewayError(.invalid, "names that begin with “causeway:” are reserved for resources")
    }
    return try await connection.openStream(name, to: member, in: self.number, keeping: self)
  }
}

extension Connection {
  /// Opens a stream in the session with the number `session`. The stream keeps the session `kept` open, unless `kept`
  /// is nil.
  func openStream(
    _ name: String, to member: Address, in session: UInt32, keeping kept: Session?
  ) async throws(CausewayError) -> OutgoingStream {
    let number = number(), core = StreamOutput(number)
    try await make(
      .stream(session: session, member, name: name), number, for: core, undo: .reset(stream: number))
    return OutgoingStream(self, kept, number, member, name, core)
  }
}

/// A stream to a member, created by `Session.openStream`. See docs/local-api.md, “Requests”.
///
/// The stream keeps its session open. A stream that is released before a call of `finish` is reset, so that the reader
/// does not mistake a prefix for the complete stream.
public final class OutgoingStream: Sendable {
  /// The member that reads the stream.
  public let member: Address
  public let name: String
  private let connection: Connection
  /// The session that this stream keeps open.
  private let session: Session?
  private let number: UInt32
  let core: StreamOutput
  /// Serializes writes, so that the bytes of one write stay together.
  private let turn = Gate(1)

  init(
    _ connection: Connection, _ session: Session?, _ number: UInt32, _ member: Address, _ name: String,
    _ core: StreamOutput
  ) {
    self.connection = connection
    self.session = session
    self.number = number
    self.member = member
    self.name = name
    self.core = core
  }

  deinit {
    // The daemon completes a finished stream even after this object is released.
    if core.isFinished { connection.forget(number) } else { reset() }
  }

  /// Writes bytes. The call suspends while the path and the reader have no room for more bytes, and returns when all
  /// bytes are queued. Concurrent writes are serialized.
  ///
  /// - Throws: `stream` with the `StreamEnd` if the stream was refused, reset or lost; `ended` after `finish`;
  ///   `daemonEnded`; `cancelled`. If some of the bytes were already written when the task was cancelled, the stream is
  ///   reset.
  public func write(_ bytes: [UInt8]) async throws(CausewayError) {
    guard await turn.enter() else { throw .cancelled }
    defer { turn.leave() }
    var rest = bytes[...]
    while !rest.isEmpty {
      guard !Task.isCancelled, await connection.room() else { throw cancelled(in: rest, of: bytes) }
      switch try core.reserve(min(rest.count, Limits.streamBytesMax)) {
      case .bytes(let count):
        connection.write(.write(stream: number, Array(rest.prefix(count))), 0)
        rest = rest.dropFirst(count)
      case .later(let room):
        if await room.value() == nil { throw cancelled(in: rest, of: bytes) }
      }
    }
  }

  /// Returns the error for a cancelled task. If a part of the bytes was already written, resets the stream, because
  /// other bytes must not follow this part.
  private func cancelled(in rest: ArraySlice<UInt8>, of bytes: [UInt8]) -> CausewayError {
    if rest.count < bytes.count { reset() }
    return .cancelled
  }

  /// Finishes the stream, and waits until the member's application has received all bytes.
  ///
  /// - Throws: `stream` with the `StreamEnd` if the stream was refused, reset or lost; the received bytes are then a
  ///   prefix of the bytes written. `daemonEnded`. `cancelled` if the task was cancelled; the stream may still end as
  ///   finished.
  public func finish() async throws(CausewayError) {
    guard await turn.enter() else { throw .cancelled }
    defer { turn.leave() }
    if core.finish() {
      do {
        try await connection.ask(.finish(stream: number))
      } catch {
        // The stream ended before the request; `ended()` returns how.
        if error.reason != .ended { throw error }
      }
    }
    if let error = try await ended().error { throw error }
  }

  /// Resets the stream: bytes in flight are dropped, and the reader gets an error after the bytes that have arrived.
  public func reset() { reset(isPostponed: false) }

  /// Resets the stream. `isPostponed` reports to the member that another stream took the slot, so the member can try
  /// again.
  func reset(isPostponed: Bool) {
    guard core.close(.success(isPostponed ? .noPlace : .cut)) else { return }
    connection.forget(number)
    connection.write(.reset(stream: number, isPostponed: isPostponed), connection.number())
  }

  /// Waits until the stream has ended, and returns how the stream ended.
  public func ended() async throws(CausewayError) -> StreamEnd {
    guard let end = await core.ended.value() else { throw .cancelled }
    return try end.get()
  }
}

/// The state of a stream to a member, built from the daemon's events: the write limit and the end.
final class StreamOutput: EventHandler {
  /// The result of `reserve`: the number of bytes that may be written now, or a promise to await before the next
  /// attempt.
  enum Room {
    case bytes(Int)
    case later(Promise<Void>)
  }

  private struct State {
    var written: UInt64 = 0
    var limit: UInt64 = 0
    var isFinished = false
    var end: Result<StreamEnd, CausewayError>?
    /// Fulfilled when the limit rises or the stream ends.
    var news = Promise<Void>()
  }
  private let state = Mutex(State())
  private let number: UInt32
  let ended = Promise<Result<StreamEnd, CausewayError>>()

  init(_ number: UInt32) { self.number = number }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Counts up to `wanted` bytes as written, within the write limit. Returns the number of bytes that were counted.
  func reserve(_ wanted: Int) throws(CausewayError) -> Room {
    let room: Result<Room, CausewayError> = state.withLock { state in
      switch state.end {
      case .failure(let error)?: return .failure(error)
      case .success(let end)?: if let error = end.error { return .failure(error) }
      case nil: break
      }
      if state.isFinished || state.end != nil {
        return .failure(CausewayError(.ended, "the stream was already finished"))
      }
      guard state.limit > state.written else { return .success(.later(state.news)) }
      let count = min(UInt64(wanted), state.limit - state.written)
      state.written += count
      return .success(.bytes(Int(count)))
    }
    return try room.get()
  }

  /// Marks the stream as finished. Returns true for the first call of `finish`, unless the stream has ended.
  func finish() -> Bool {
    state.withLock { state in
      defer { state.isFinished = true }
      return !state.isFinished && state.end == nil
    }
  }

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    switch event {
    case .streamRoom(let limit): grant(limit)
    case .streamEnded(0, let end):
      _ = close(.success(end))
      connection.forget(number)
    case .done, .welcome, .services, .allTold, .invited, .invitationEnded, .identified, .ended, .member, .message,
      .sent, .room, .stream, .streamBytes, .streamEnded, .decisionWanted:
      break
    }
  }

  func end(_ error: CausewayError) { _ = close(.failure(error)) }

  /// Raises the write limit. A lower limit from the daemon is ignored.
  private func grant(_ limit: UInt64) {
    let news: Promise<Void>? = state.withLock { state in
      guard limit > state.limit else { return nil }
      state.limit = limit
      defer { state.news = Promise() }
      return state.news
    }
    news?.fulfil(())
  }

  /// Records how the stream ended. Returns true for the first call of `close`; later calls have no effect.
  func close(_ end: Result<StreamEnd, CausewayError>) -> Bool {
    let news: Promise<Void>? = state.withLock { state in
      guard state.end == nil else { return nil }
      state.end = end
      return state.news
    }
    guard let news else { return false }
    ended.fulfil(end)
    news.fulfil(())
    return true
  }
}
