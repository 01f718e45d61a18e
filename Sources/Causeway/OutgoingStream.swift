import Synchronization
internal import Transfer

extension Session {
  /// Opens a stream: bytes in order from here to one member, beside the messages. Its application takes or refuses it;
  /// what is written before waits here and on the way. docs/local-api.md, “stream”.
  ///
  /// - Parameters:
  ///   - name: tells the member what it is; 1 to 63 bytes of UTF-8 without control characters, and not with `causeway:`
  ///     in front.
  ///   - member: one that is connected.
  /// - Throws: `invalid`; `outOfReach` when it is not connected; `full` beyond 32 streams of this application, both
  ///   directions counted, or 16 to one member; `ended`; `cancelled`.
  public func openStream(_ name: String, to member: Address) async throws(CausewayError) -> OutgoingStream {
    try Syntax.name(name, "the name of a stream", Limits.nameBytesMax, mayBeEmpty: false)
    guard !ResourceStream.isReserved(name) else {
      throw CausewayError(.invalid, "names that begin with “causeway:” are those of resources")
    }
    return try await connection.openStream(name, to: member, in: self.number, keeping: self)
  }
}

extension Connection {
  /// Opens a stream in a session of that number. It keeps a session open, or none.
  func openStream(
    _ name: String, to member: Address, in session: UInt32, keeping kept: Session?
  ) async throws(CausewayError) -> OutgoingStream {
    let number = number(), inside = StreamOutput(number)
    try await make(
      .stream(session: session, member, name: name), number, for: inside, undo: .reset(stream: number))
    return OutgoingStream(self, kept, number, member, name, inside)
  }
}

/// A stream to a member, by `Session.openStream`. It keeps its session open. One that is dropped before `finish` was
/// called is cut, so that nobody takes a part for the whole. docs/local-api.md, “Requests”.
public final class OutgoingStream: Sendable {
  /// Who reads it.
  public let member: Address
  public let name: String
  private let connection: Connection
  /// Kept open.
  private let session: Session?
  private let number: UInt32
  let inside: StreamOutput
  /// Bytes of one write stay together.
  private let turn = Gate(1)

  init(
    _ connection: Connection, _ session: Session?, _ number: UInt32, _ member: Address, _ name: String,
    _ inside: StreamOutput
  ) {
    self.connection = connection
    self.session = session
    self.number = number
    self.member = member
    self.name = name
    self.inside = inside
  }

  deinit {
    // What was finished goes on to its end.
    if inside.isFinished { connection.forget(number) } else { reset() }
  }

  /// Writes bytes behind those that were written before, and suspends until there has been room for all of them. Of
  /// tasks that write at once one comes after the other.
  ///
  /// - Throws: `stream` with its end when it was refused, cut or lost; `ended` after `finish`; `daemonEnded`;
  ///   `cancelled`: when some of the bytes were written already, the stream is cut.
  public func write(_ bytes: [UInt8]) async throws(CausewayError) {
    guard await turn.enter() else { throw .cancelled }
    defer { turn.leave() }
    var rest = bytes[...]
    while !rest.isEmpty {
      guard !Task.isCancelled, await connection.room() else { throw cancelled(in: rest, of: bytes) }
      switch try inside.reserve(min(rest.count, Limits.streamBytesMax)) {
      case .bytes(let count):
        connection.write(.write(stream: number, Array(rest.prefix(count))), 0)
        rest = rest.dropFirst(count)
      case .later(let room):
        if await room.value() == nil { throw cancelled(in: rest, of: bytes) }
      }
    }
  }

  /// Behind a part of a write nothing may follow.
  private func cancelled(in rest: ArraySlice<UInt8>, of bytes: [UInt8]) -> CausewayError {
    if rest.count < bytes.count { reset() }
    return .cancelled
  }

  /// Says that no more bytes follow, and waits until the member's application has been told all of them.
  ///
  /// - Throws: `stream` with its end when it ended otherwise: what came is the beginning of what was written;
  ///   `daemonEnded`; `cancelled`: it may be finished all the same.
  public func finish() async throws(CausewayError) {
    guard await turn.enter() else { throw .cancelled }
    defer { turn.leave() }
    if inside.finish() {
      do {
        try await connection.ask(.finish(stream: number))
      } catch {
        // It has ended meanwhile.
        if error.reason != .ended { throw error }
      }
    }
    if let error = try await ended().error { throw error }
  }

  /// Cuts it: what is on its way is dropped. The reader gets an error behind what it was told before.
  public func reset() { reset(isPostponed: false) }

  /// `isPostponed`: there is no place for it any more, and the member may try again.
  func reset(isPostponed: Bool) {
    guard inside.close(.success(isPostponed ? .noPlace : .cut)) else { return }
    connection.forget(number)
    connection.write(.reset(stream: number, isPostponed: isPostponed), connection.number())
  }

  /// Waits until it has ended, and says how.
  public func ended() async throws(CausewayError) -> StreamEnd {
    guard let end = await inside.ended.value() else { throw .cancelled }
    return try end.get()
  }
}

/// A stream to a member as the daemon tells it: how much may be written, and how it ended.
final class StreamOutput: Hearer {
  /// How many bytes may be written, or when to ask again.
  enum Room {
    case bytes(Int)
    case later(Promise<Void>)
  }

  private struct State {
    var written: UInt64 = 0
    var limit: UInt64 = 0
    var isFinished = false
    var end: Result<StreamEnd, CausewayError>?
    /// Kept when there is more room, or none any more.
    var news = Promise<Void>()
  }
  private let state = Mutex(State())
  private let number: UInt32
  let ended = Promise<Result<StreamEnd, CausewayError>>()

  init(_ number: UInt32) { self.number = number }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Counts so many bytes as written, or as many of them as there is room for.
  func reserve(_ wanted: Int) throws(CausewayError) -> Room {
    let room: Result<Room, CausewayError> = state.withLock { state in
      switch state.end {
      case .failure(let error)?: return .failure(error)
      case .success(let end)?: if let error = end.error { return .failure(error) }
      case nil: break
      }
      if state.isFinished || state.end != nil { return .failure(CausewayError(.ended, "the stream was finished")) }
      guard state.limit > state.written else { return .success(.later(state.news)) }
      let count = min(UInt64(wanted), state.limit - state.written)
      state.written += count
      return .success(.bytes(Int(count)))
    }
    return try room.get()
  }

  /// No more is written. True the first time, unless it has ended before.
  func finish() -> Bool {
    state.withLock { state in
      defer { state.isFinished = true }
      return !state.isFinished && state.end == nil
    }
  }

  func hear(_ event: Event, _ connection: Connection) throws(CausewayError) {
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

  /// It never decreases, whatever the daemon says.
  private func grant(_ limit: UInt64) {
    let news: Promise<Void>? = state.withLock { state in
      guard limit > state.limit else { return nil }
      state.limit = limit
      defer { state.news = Promise() }
      return state.news
    }
    news?.fulfil(())
  }

  /// The first end counts: true for that one.
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
