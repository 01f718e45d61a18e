import Synchronization

/// A service that this application advertises, as a sequence of invitations to the service. The service is withdrawn
/// when no reference to the `Advertiser` remains.
///
/// The daemon keeps at most 32 unanswered invitations to a service. An invitation that ends before the application has
/// received it is not delivered.
public final class Advertiser: AsyncSequence, Sendable {
  public typealias Element = Invitation
  public typealias Failure = CausewayError

  /// The address at which other applications invite this application. Sessions that this application opens for the same
  /// service type have the same address.
  public let address: Address
  private let lease: Lease
  private let number: UInt32
  private let type: String
  private let core: AdvertiserCore

  init(_ lease: Lease, _ number: UInt32, _ type: String, _ core: AdvertiserCore, _ address: Address) {
    self.lease = lease
    self.address = address
    self.number = number
    self.type = type
    self.core = core
  }

  deinit { close() }

  public func makeAsyncIterator() -> Events<Invitation>.Iterator {
    // The closure holds this object, so that the service stays advertised during iteration.
    Events { await self.core.mailbox.next() }.makeAsyncIterator()
  }

  /// Replaces the discovery info. The limits are those of `Node.advertise`.
  public func update(info: [String: String]) async throws(CausewayError) {
    try await lease.connection.ask(.advertise(type: type, pairs: try Syntax.pairs(info)), number)
  }

  /// Withdraws the service. Sessions and accepted invitations are not affected.
  public func close() {
    guard core.isOpen.close() else { return }
    // The application can still answer an invitation that it has received, so the events that end invitations are still
    // needed.
    lease.connection.write(.close(number), lease.connection.number())
    core.mailbox.end(.success(()))
    core.forgetIfIdle(lease.connection)
  }
}

final class AdvertiserCore: EventHandler {
  let mailbox = Mailbox(Invitations())
  let isOpen = Latch()
  private let number: UInt32
  /// The outcome of each invitation that has not ended, by the daemon's number of the invitation. The dictionary holds
  /// no `Invitation`, because the `deinit` of a released invitation declines the invitation.
  private let ends = Mutex<[UInt32: Promise<Result<Outcome, CausewayError>>]>([:])

  init(_ number: UInt32) { self.number = number }

  /// Stops receiving events when the service is withdrawn and all invitations have ended.
  func forgetIfIdle(_ connection: Connection) {
    if !isOpen.isOpen && ends.withLock({ $0.isEmpty }) { connection.forget(number) }
  }

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    switch event {
    case .invited(let invited):
      guard isOpen.isOpen else { return }
      let end = Promise<Result<Outcome, CausewayError>>()
      let isTaken = ends.withLock { ends in
        guard ends[invited.number] == nil, ends.count < Limits.invitationsMax else { return false }
        ends[invited.number] = end
        return true
      }
      guard isTaken else { throw .broken("more than \(Limits.invitationsMax) invitations, or one twice") }
      mailbox.change { $0.add(Invitation(connection, invited, end)) }
    case .invitationEnded(let received, let outcome):
      let end = ends.withLock { $0.removeValue(forKey: received) }
      end?.fulfil(.success(outcome))
      mailbox.change { $0.remove(received) }
      forgetIfIdle(connection)
    case .done, .welcome, .services, .allTold, .identified, .ended, .member, .message, .sent, .room, .stream,
      .streamBytes, .streamRoom, .streamEnded, .decisionWanted:
      break
    }
  }

  func end(_ error: CausewayError) {
    let left = ends.withLock { ends in
      defer { ends = [:] }
      return Array(ends.values)
    }
    for end in left { end.fulfil(.failure(error)) }
    mailbox.end(.failure(error))
  }
}

struct Invitations: Content {
  private var waiting = Queue<Invitation>()

  var isEmpty: Bool { waiting.isEmpty }
  mutating func add(_ invitation: Invitation) { waiting.append(invitation) }
  mutating func take() -> Invitation? { waiting.removeFirst() }

  mutating func remove(_ number: UInt32) { waiting.removeAll { $0.number == number } }
}

/// An invitation to a service of this application. An invitation that the application releases without an answer is
/// declined. See docs/local-api.md, event 132.
public final class Invitation: Sendable {
  /// The inviter's address, which is also the inviter's address as a member of the session.
  public let from: Address
  public let peer: Peer
  /// The rules of the inviter's session.
  public let rules: Rules
  /// The number of members in the inviter's session.
  public let memberCount: Int
  /// Untrusted bytes from the inviter, at most 4,096.
  public let context: [UInt8]
  /// The time at which the invitation times out.
  public let deadline: ContinuousClock.Instant
  let number: UInt32
  private let connection: Connection
  private let end: Promise<Result<Outcome, CausewayError>>
  private let isOpen = Latch()

  init(_ connection: Connection, _ invited: Invited, _ end: Promise<Result<Outcome, CausewayError>>) {
    self.connection = connection
    self.end = end
    from = invited.from
    peer = invited.peer
    rules = invited.rules
    memberCount = invited.memberCount
    context = invited.context
    number = invited.number
    deadline = .now + .milliseconds(Int64(invited.milliseconds))
  }

  deinit {
    guard isOpen.close(), end.now == nil else { return }
    connection.write(.answer(invitation: number, session: 0, explanation: ""), connection.number())
  }

  /// Accepts the invitation into a session of the same service type. The call waits until this application and the
  /// inviter are connected members of one session.
  ///
  /// If `session` has never had another member, it becomes the inviter's session; if it has, the two sessions are
  /// merged.
  ///
  /// - Throws: `ended` if the invitation has ended or was already answered; `incompatible`; `full`; `busy`; `timedOut`;
  ///   `cancelled`.
  public func accept(into session: Session) async throws(CausewayError) {
    guard isOpen.close() else { throw CausewayError(.ended, "the invitation was already answered") }
    try await connection.ask(.answer(invitation: number, session: session.number, explanation: ""))
    if let error = try await outcome().error { throw error }
  }

  /// Declines the invitation. The call has no effect on an invitation that has ended.
  ///
  /// - Parameter explanation: a text for the inviter, at most 200 bytes of UTF-8 without control characters.
  public func decline(_ explanation: String = "") async throws(CausewayError) {
    try Syntax.name(explanation, "an explanation", Limits.explanationBytesMax)
    guard isOpen.close() else { return }
    do {
      try await connection.ask(.answer(invitation: number, session: 0, explanation: explanation))
    } catch {
      if error.reason != .ended { throw error }
    }
  }

  /// Waits until the invitation has ended, and returns its outcome.
  public func outcome() async throws(CausewayError) -> Outcome {
    guard let outcome = await end.value() else { throw .cancelled }
    return try outcome.get()
  }
}
