import Synchronization

/// A stream that a member opened, told by `Session.events`. One that is dropped without an answer is refused, and so is
/// one that comes while 16 others of its session wait to be looked at. docs/local-api.md, event 140.
public final class OfferedStream: Sendable {
  /// Who opened it, as it stands at that time.
  public let sender: Member
  /// What it is, by the member's word: untrusted.
  public let name: String
  let number: UInt32
  private let connection: Connection
  private let isOpen = Latch()
  /// From when the application has it: what waits in a session must not keep it.
  private let session = Mutex<Session?>(nil)

  init(_ connection: Connection, _ number: UInt32, _ sender: Member, _ name: String) {
    self.connection = connection
    self.number = number
    self.sender = sender
    self.name = name
  }

  deinit { if isOpen.close() { sayNo() } }

  /// Takes it. Its bytes come as fast as they are read.
  ///
  /// - Throws: `ended` when it was cut or lost before, or answered already; `cancelled`, and then it is refused.
  public func take() async throws(CausewayError) -> IncomingStream {
    guard let session = session.withLock({ $0 }) else { throw Self.over }
    return try await open(keeping: session)
  }

  private static let over = CausewayError(.ended, "the stream was answered already, or has ended")

  /// Takes it, also before the application has it. The stream keeps a session open, or none.
  func open(keeping session: Session?) async throws(CausewayError) -> IncomingStream {
    guard isOpen.close() else { throw Self.over }
    let own = connection.number(), inside = StreamInput(own)
    do {
      try await connection.make(
        .take(stream: number, isWanted: true, limit: UInt64(Limits.streamWindowBytes)), own, for: inside,
        undo: .reset(stream: own))
    } catch {
      // It may never have been asked for.
      sayNo()
      throw error
    }
    return IncomingStream(connection, session, own, sender, name, inside)
  }

  /// Refuses it. One that has ended meanwhile is no error.
  public func refuse() { refuse(isPostponed: false) }

  /// `isPostponed`: there is no place for it at present.
  func refuse(isPostponed: Bool) { if isOpen.close() { sayNo(isPostponed: isPostponed) } }

  private func sayNo(isPostponed: Bool = false) {
    connection.write(
      .take(stream: number, isWanted: false, limit: 0, isPostponed: isPostponed), connection.number())
  }

  /// The application has it from now on: it keeps its session open.
  func hold(_ session: Session) { self.session.withLock { $0 = session } }

  /// It has ended before the application was told of it: there is nothing to refuse.
  func expire() { _ = isOpen.close() }
}

extension OfferedStream: Hashable {
  public static func == (a: OfferedStream, b: OfferedStream) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A stream from a member that was taken: a sequence of bytes in order, in pieces of what has come, 1 to 131,072 bytes
/// each. So much waits here at most, and everything else at its writer; one that is not read delays nothing else.
///
/// The sequence ends when everything has come and been taken. It throws `stream` with its end when the stream was cut
/// or lost before: then what came is the beginning of what was written. It throws `cancelled` when its task was
/// cancelled, and may be read on. It keeps its session open; dropped before its end it is cut. docs/local-api.md,
/// “take”.
public final class IncomingStream: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = CausewayError

  /// Who opened it, as it stood at that time.
  public let sender: Member
  /// What it is, by the member's word: untrusted.
  public let name: String
  private let connection: Connection
  /// Kept open.
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
    // The stream lives while it is iterated.
    Events<[UInt8]> {
      // A task that was cancelled must not take a part for the whole.
      let bytes = await self.inside.mailbox.next(ifCancelled: .failure(.cancelled))
      self.grant()
      return bytes
    }.makeAsyncIterator()
  }

  /// Cuts it: no more bytes come, and the writer gets an error. What has come can still be taken.
  public func reset() { reset(isPostponed: false) }

  /// `isPostponed`: there is no place for it any more, and the writer may try again.
  func reset(isPostponed: Bool) {
    guard inside.isOpen.close() else { return }
    inside.mailbox.end(StreamInput.result(isPostponed ? .noPlace : .cut))
    connection.forget(number)
    connection.write(.reset(stream: number, isPostponed: isPostponed), connection.number())
  }

  /// Grants the writer as much as was taken.
  private func grant() {
    guard inside.isOpen.isOpen, let limit = inside.mailbox.change({ $0.grant() }) else { return }
    connection.write(.streamWindow(stream: number, limit: limit), 0)
  }
}

/// A stream from a member as the daemon tells it.
final class StreamInput: Hearer {
  let mailbox = Mailbox(StreamBytes())
  /// Until it ended, or this application cut it.
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

  /// What comes behind the last byte.
  static func result(_ end: StreamEnd) -> Result<Void, CausewayError> { end.error.map { .failure($0) } ?? .success(()) }
}

/// Bytes of a stream that wait for the application, never more than it granted.
struct StreamBytes: Content {
  private var waiting: [UInt8] = []
  private var received: UInt64 = 0
  private var taken: UInt64 = 0
  private var limit = UInt64(Limits.streamWindowBytes)

  var isEmpty: Bool { waiting.isEmpty }

  /// False when there are more than may come.
  mutating func add(_ bytes: [UInt8]) -> Bool {
    received += UInt64(bytes.count)
    guard received <= limit else { return false }
    waiting += bytes
    return true
  }

  /// All that waits.
  mutating func take() -> [UInt8]? {
    guard !waiting.isEmpty else { return nil }
    defer { waiting = [] }
    taken += UInt64(waiting.count)
    return waiting
  }

  /// The next limit, when it is time for one.
  mutating func grant() -> UInt64? {
    let window = UInt64(Limits.streamWindowBytes)
    guard taken + window / 2 >= limit else { return nil }
    limit = taken + window
    return limit
  }
}
