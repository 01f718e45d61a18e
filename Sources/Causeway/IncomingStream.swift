import Synchronization

/// A stream that a member opened, from `Session.events`. See docs/local-api.md, event 140.
///
/// A stream is refused if the application releases it without an answer, or if `Limits.offeredStreamsMax` (32) streams
/// of the session already wait.
public final class OfferedStream: Sendable {
  /// The member that opened the stream, in its state at that time.
  public let sender: Member
  /// The name that the member gave the stream: untrusted.
  public let name: String
  let number: UInt32
  private let connection: Connection
  private let isOpen = Latch()
  /// Set when the application receives the stream: a queued stream must not keep its session open.
  private let session = Mutex<Session?>(nil)

  init(_ connection: Connection, _ number: UInt32, _ sender: Member, _ name: String) {
    self.connection = connection
    self.number = number
    self.sender = sender
    self.name = name
  }

  deinit { if isOpen.close() { sayNo() } }

  /// Accepts the stream. Its bytes arrive as fast as they are read.
  ///
  /// - Throws: `ended` if the stream was already answered, reset or lost; `cancelled`, which also refuses the stream.
  public func take() async throws(CausewayError) -> IncomingStream {
    guard let session = session.withLock({ $0 }) else { throw Self.over }
    return try await open(keeping: session)
  }

  private static let over = CausewayError(.ended, "the stream was already answered, or has ended")

  /// Accepts the stream, even before the application has received it. The stream keeps `session` open, if there is one.
  func open(keeping session: Session?) async throws(CausewayError) -> IncomingStream {
    guard isOpen.close() else { throw Self.over }
    let own = connection.number(), inside = StreamInput(own)
    do {
      try await connection.make(
        .take(stream: number, isWanted: true, limit: UInt64(Limits.streamWindowBytes)), own, for: inside,
        undo: .reset(stream: own))
    } catch {
      // The request may never have been sent.
      sayNo()
      throw error
    }
    return IncomingStream(connection, session, own, sender, name, inside)
  }

  /// Refuses the stream. It has no effect on a stream that has ended.
  public func refuse() { refuse(isPostponed: false) }

  /// Refuses the stream. With `isPostponed` there is no place for it at present, and the member may try again.
  func refuse(isPostponed: Bool) { if isOpen.close() { sayNo(isPostponed: isPostponed) } }

  private func sayNo(isPostponed: Bool = false) {
    connection.write(
      .take(stream: number, isWanted: false, limit: 0, isPostponed: isPostponed), connection.number())
  }

  /// Keeps the session open from the time at which the application receives the stream.
  func hold(_ session: Session) { self.session.withLock { $0 = session } }

  /// Marks a stream that ended before the application received it: there is nothing to refuse.
  func expire() { _ = isOpen.close() }
}

extension OfferedStream: Hashable {
  public static func == (a: OfferedStream, b: OfferedStream) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// An accepted stream from a member: a sequence of bytes in order. See docs/local-api.md, “take”.
///
/// Each element has the bytes that have arrived, 1 to 131,072. At most 131,072 bytes wait here; the rest waits at the
/// writer. A stream that is not read delays nothing else.
///
/// The sequence ends when all bytes have arrived and were taken. If the stream was reset or lost, it throws `stream`
/// with the end: the received bytes are a prefix of the bytes written. If its task is cancelled, it throws `cancelled`
/// and can be read on.
///
/// The stream keeps its session open. A stream that is released before its end is reset.
public final class IncomingStream: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = CausewayError

  /// The member that opened the stream, in its state at that time.
  public let sender: Member
  /// The name that the member gave the stream: untrusted.
  public let name: String
  private let connection: Connection
  /// The session that this stream keeps open.
  private let session: Session?
  private let number: UInt32
  private let inside: StreamInput

  init(
    _ connection: Connection, _ session: Session?, _ number: UInt32, _ sender: Member, _ name: String,
    _ inside: StreamInput
  ) {
    self.connection = connection
    self.session = session
    self.number = number
    self.sender = sender
    self.name = name
    self.inside = inside
  }

  deinit { reset() }

  public func makeAsyncIterator() -> Events<[UInt8]>.Iterator {
    // The closure keeps the stream alive during iteration.
    Events<[UInt8]> {
      // A cancelled task must not mistake a prefix for the whole stream.
      let bytes = await self.inside.mailbox.next(ifCancelled: .failure(.cancelled))
      self.grant()
      return bytes
    }.makeAsyncIterator()
  }

  /// Resets the stream: no more bytes arrive, and the writer gets an error. Bytes that have arrived can still be taken.
  public func reset() { reset(isPostponed: false) }

  /// Resets the stream. With `isPostponed` its place was given to another stream, and the writer may try again.
  func reset(isPostponed: Bool) {
    guard inside.isOpen.close() else { return }
    inside.mailbox.end(StreamInput.result(isPostponed ? .noPlace : .cut))
    connection.forget(number)
    connection.write(.reset(stream: number, isPostponed: isPostponed), connection.number())
  }

  /// Grants the writer as many bytes as were taken.
  private func grant() {
    guard inside.isOpen.isOpen, let limit = inside.mailbox.change({ $0.grant() }) else { return }
    connection.write(.streamWindow(stream: number, limit: limit), 0)
  }
}

/// The state of a stream from a member, built from the daemon's events.
final class StreamInput: Hearer {
  let mailbox = Mailbox(StreamBytes())
  /// Open until the stream ends or this application resets it.
  let isOpen = Latch()
  private let number: UInt32

  init(_ number: UInt32) { self.number = number }

  func hear(_ event: Event, _ connection: Connection) throws(CausewayError) {
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

/// Bytes of a stream that the application has not taken. The granted window bounds them.
struct StreamBytes: Content {
  private var waiting: [UInt8] = []
  private var received: UInt64 = 0
  private var taken: UInt64 = 0
  private var limit = UInt64(Limits.streamWindowBytes)

  var isEmpty: Bool { waiting.isEmpty }

  /// Queues bytes. Returns false if they exceed the window.
  mutating func add(_ bytes: [UInt8]) -> Bool {
    received += UInt64(bytes.count)
    guard received <= limit else { return false }
    waiting += bytes
    return true
  }

  /// Takes all queued bytes.
  mutating func take() -> [UInt8]? {
    guard !waiting.isEmpty else { return nil }
    defer { waiting = [] }
    taken += UInt64(waiting.count)
    return waiting
  }

  /// The next window limit, or nil while less than half of the window is used up.
  mutating func grant() -> UInt64? {
    let window = UInt64(Limits.streamWindowBytes)
    guard taken + window / 2 >= limit else { return nil }
    limit = taken + window
    return limit
  }
}
