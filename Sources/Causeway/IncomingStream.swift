import Synchronization

/// A stream that a member has opened and that waits for an answer, from `Session.events`. See docs/local-api.md, event
/// 140.
///
/// A stream that the application releases without an answer is refused. A stream is also refused if 32 streams of the
/// session already wait for the application.
public final class OfferedStream: Sendable {
  /// The member that opened the stream, with the member's state at the time of opening.
  public let sender: Member
  /// The name that the member gave to the stream; untrusted.
  public let name: String
  let number: UInt32
  private let connection: Connection
  private let isOpen = Latch()
  /// The session that the stream keeps open. The session is set when the application receives the stream, because a
  /// queued stream must not keep its session open.
  private let session = Mutex<Session?>(nil)

  init(_ connection: Connection, _ number: UInt32, _ sender: Member, _ name: String) {
    self.connection = connection
    self.number = number
    self.sender = sender
    self.name = name
  }

  deinit { if isOpen.close() { sayNo() } }

  /// Accepts the stream. The member can send bytes as fast as the application reads them.
  ///
  /// - Throws: `ended` if the stream was already answered, reset or lost; `cancelled` if the task was cancelled; the
  ///   stream is then refused.
  public func take() async throws(CausewayError) -> IncomingStream {
    guard let session = session.withLock({ $0 }) else { throw Self.over }
    return try await open(keeping: session)
  }

  private static let over = CausewayError(.ended, "the stream was already answered, or has ended")

  /// Accepts the stream, even before the application has received it. The stream keeps `session` open, unless `session`
  /// is nil.
  func open(keeping session: Session?) async throws(CausewayError) -> IncomingStream {
    guard isOpen.close() else { throw Self.over }
    let own = connection.number(), core = StreamInput(own)
    do {
      try await connection.make(
        .take(stream: number, isWanted: true, limit: UInt64(Limits.streamWindowBytes)), own, for: core,
        undo: .reset(stream: own))
    } catch {
      // A cancelled task may not have sent the request, so the stream is refused explicitly.
      sayNo()
      throw error
    }
    return IncomingStream(connection, session, own, sender, name, core)
  }

  /// Refuses the stream. The call has no effect on a stream that has ended.
  public func refuse() { refuse(isPostponed: false) }

  /// Refuses the stream. `isPostponed` reports to the member that there is no slot for the stream at present, so the
  /// member can try again.
  func refuse(isPostponed: Bool) { if isOpen.close() { sayNo(isPostponed: isPostponed) } }

  private func sayNo(isPostponed: Bool = false) {
    connection.write(
      .take(stream: number, isWanted: false, limit: 0, isPostponed: isPostponed), connection.number())
  }

  /// Keeps the session open from the time at which the application receives the stream.
  func hold(_ session: Session) { self.session.withLock { $0 = session } }

  /// Marks a stream that ended before the application received it, so that the stream is not refused later.
  func expire() { _ = isOpen.close() }
}

extension OfferedStream: Hashable {
  public static func == (a: OfferedStream, b: OfferedStream) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// An accepted stream from a member, as a sequence of arrays of bytes in order. See docs/local-api.md, “take”.
///
/// Each element has all bytes that have arrived since the last element, 1 to 131,072. At most 131,072 unread bytes are
/// kept in this process; further bytes wait at the writer. A stream that is not read delays no message and no other
/// stream.
///
/// The sequence ends when the application has read all bytes that were written. If the stream was reset or lost, the
/// sequence throws `stream` with the `StreamEnd`. The bytes read are then a prefix of the bytes written. If the reading
/// task is cancelled, the sequence throws `cancelled`, and another task can continue to read.
///
/// The stream keeps its session open. A stream that is released before its end is reset.
public final class IncomingStream: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = CausewayError

  /// The member that opened the stream, with the member's state at the time of opening.
  public let sender: Member
  /// The name that the member gave to the stream; untrusted.
  public let name: String
  private let connection: Connection
  /// The session that this stream keeps open.
  private let session: Session?
  private let number: UInt32
  private let core: StreamInput

  init(
    _ connection: Connection, _ session: Session?, _ number: UInt32, _ sender: Member, _ name: String,
    _ core: StreamInput
  ) {
    self.connection = connection
    self.session = session
    self.number = number
    self.sender = sender
    self.name = name
    self.core = core
  }

  deinit { reset() }

  public func makeAsyncIterator() -> Events<[UInt8]>.Iterator {
    // The closure keeps the stream alive during iteration.
    Events<[UInt8]> {
      // A cancelled task must not mistake a prefix for the complete stream.
      let bytes = await self.core.mailbox.next(ifCancelled: .failure(.cancelled))
      self.grant()
      return bytes
    }.makeAsyncIterator()
  }

  /// Resets the stream: no more bytes arrive, and the writer gets an error. The application can still read bytes that
  /// have arrived.
  public func reset() { reset(isPostponed: false) }

  /// Resets the stream. `isPostponed` reports to the writer that another stream took the slot, so the writer can try
  /// again.
  func reset(isPostponed: Bool) {
    guard core.isOpen.close() else { return }
    core.mailbox.end(StreamInput.result(isPostponed ? .noPlace : .cut))
    connection.forget(number)
    connection.write(.reset(stream: number, isPostponed: isPostponed), connection.number())
  }

  /// Permits the writer to send as many further bytes as the application has read.
  private func grant() {
    guard core.isOpen.isOpen, let limit = core.mailbox.change({ $0.grant() }) else { return }
    connection.write(.streamWindow(stream: number, limit: limit), 0)
  }
}

/// The state of a stream from a member, built from the daemon's events.
final class StreamInput: EventHandler {
  let mailbox = Mailbox(StreamBytes())
  /// Open until the stream ends or this application resets the stream.
  let isOpen = Latch()
  private let number: UInt32

  init(_ number: UInt32) { self.number = number }

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    switch event {
    case .streamBytes(let bytes):
      let isLegal = mailbox.change { $0.add(bytes) }
      if !isLegal { throw .broken("bytes of a stream beyond its limit") }
    case .streamEnded(0, let end):
      _ = isOpen.close()
      mailbox.end(Self.result(end))
      connection.forget(number)
    case .done, .welcome, .services, .allTold, .invited, .invitationEnded, .identified, .ended, .member, .message,
      .sent, .room, .stream, .streamRoom, .streamEnded, .decisionWanted:
      break
    }
  }

  func end(_ error: CausewayError) {
    _ = isOpen.close()
    mailbox.end(.failure(error))
  }

  /// The result of the sequence after the last byte.
  static func result(_ end: StreamEnd) -> Result<Void, CausewayError> { end.error.map { .failure($0) } ?? .success(()) }
}

/// The bytes of a stream that the application has not read yet. The number of unread bytes is limited by the window
/// that was granted to the writer.
struct StreamBytes: Content {
  private var waiting: [UInt8] = []
  private var received: UInt64 = 0
  private var taken: UInt64 = 0
  private var limit = UInt64(Limits.streamWindowBytes)

  var isEmpty: Bool { waiting.isEmpty }

  /// Queues bytes. Returns false if the bytes exceed the window.
  mutating func add(_ bytes: [UInt8]) -> Bool {
    received += UInt64(bytes.count)
    guard received <= limit else { return false }
    waiting += bytes
    return true
  }

  /// Removes and returns all queued bytes. Returns nil if there are none.
  mutating func take() -> [UInt8]? {
    guard !waiting.isEmpty else { return nil }
    defer { waiting = [] }
    taken += UInt64(waiting.count)
    return waiting
  }

  /// The next limit to grant to the writer: the total number of bytes since the stream began. Nil while less than half
  /// of the window is used up.
  mutating func grant() -> UInt64? {
    let window = UInt64(Limits.streamWindowBytes)
    guard taken + window / 2 >= limit else { return nil }
    limit = taken + window
    return limit
  }
}
