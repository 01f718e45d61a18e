/// A group of applications that exchange messages and streams across the mesh. See docs/local-api.md, and
/// docs/protocol.md, “Sessions”.
///
/// The application leaves the session when nothing keeps this object alive: no reference, no iteration of its events,
/// no stream, and no running call of `gather`.
public final class Session: Sendable {
  /// The service type of the session.
  public let type: String
  /// The address of this application, as other members see it. The address is the same in all sessions that this
  /// application opens for the service type.
  public let address: Address
  let node: Node
  let number: UInt32
  let core: SessionCore
  var connection: Connection { node.lease.connection }

  init(_ node: Node, _ number: UInt32, _ type: String, _ core: SessionCore, _ address: Address) {
    self.node = node
    self.address = address
    self.number = number
    self.type = type
    self.core = core
    grant()
  }

  deinit {
    if core.isOpen.close() {
      connection.write(.leave(session: number, farewell: ""), connection.number())
      connection.forget(number)
    }
  }

  // MARK: State

  /// The session id, as 32 hexadecimal digits. All members see the same id. The value is nil until the daemon reports
  /// the id. The id can change when the session joins or merges with another session.
  public var id: String? { core.mailbox.read { $0.id } }

  /// The other members, ordered by address. Members that left the session are not included.
  public var members: [Member] {
    core.mailbox.read { $0.members.values.sorted { $0.address < $1.address } }
  }

  /// The events of the session. Each event is delivered once.
  ///
  /// Messages arrive as fast as the application reads them. At most 256 KiB of unread messages are kept in this
  /// process; further messages wait at their senders. If the application does not read the changes of a member's state,
  /// only the latest state is delivered. At most 32 offered streams wait; further streams are refused.
  public var events: Events<SessionEvent> {
    Events {
      let event = await self.core.mailbox.next()
      self.grant()
      if case .success(.stream(let stream)?) = event { stream.hold(self) }
      if case .success(.offer(let offer)?) = event { offer.run.hold(self) }
      return event
    }
  }

  /// Permits the daemon to send as many further bytes of messages as the application has read.
  private func grant() {
    guard let limit = core.mailbox.change({ $0.grant() }) else { return }
    connection.write(.window(session: number, limit: limit), 0)
  }

  // MARK: Members

  /// Invites an application, and waits until it has joined.
  ///
  /// Cancelling the task withdraws the invitation. An application that has accepted by then is a member nevertheless.
  ///
  /// - Parameters:
  ///   - address: the address of the application, from a `Sighting` or stored earlier.
  ///   - context: at most 4,096 bytes that the invited application receives with the invitation. The bytes of `context`
  ///     are untrusted at the invited application.
  ///   - timeout: the time limit, at most 1 hour. Zero or less stands for 30 s.
  /// - Throws: `declined` with the explanation; `timedOut`; `outOfReach`; `alreadyMember`; `full`; `busy`; `noService`;
  ///   `incompatible`; `notAllowed`; `cancelled`; `ended`.
  public func invite(
    _ address: Address, context: [UInt8] = [], timeout: Duration = .seconds(30)
  ) async throws(CausewayError) {
    guard context.count <= Limits.contextBytesMax else {
      throw CausewayError(.invalid, "a context has at most \(Limits.contextBytesMax) bytes")
    }
    try await invite(.invite(session: number, address, milliseconds: Self.milliseconds(timeout), context: context))
  }

  /// Connects to an application whose address is known without a service: from a scanned code, a file or a server.
  ///
  /// The two applications exchange their `address`, for example as the text `Address.description`. Each application
  /// then calls `connect` with the other application's address. No application has to advertise, browse or decide on an
  /// invitation. The call also waits for an application that is out of reach. If the other application advertises but
  /// does not call `connect`, it receives an invitation. Cancelling the task ends the wait.
  ///
  /// - Parameters:
  ///   - address: the other application's `Session.address`.
  ///   - timeout: the time limit, at most 1 hour. Zero or less stands for 30 s.
  /// - Throws: `timedOut`; `declined`; `alreadyMember`; `full`; `busy` if this session already waits for the address;
  ///   `invalid` for this application's own address; `unsupported` if the daemon is too old to know this request;
  ///   `cancelled`; `ended`.
  public func connect(to address: Address, timeout: Duration = .seconds(30)) async throws(CausewayError) {
    try await invite(.connect(session: number, address, milliseconds: Self.milliseconds(timeout)))
  }

  private static func milliseconds(_ timeout: Duration) -> UInt32 {
    let parts = timeout.components
    // The 32-bit field holds at most 49 days.
    let whole = min(parts.seconds, 4_000_000) * 1000 + parts.attoseconds / 1_000_000_000_000_000
    return UInt32(timeout <= .zero ? 0 : max(1, whole))
  }

  private func invite(_ request: Request) async throws(CausewayError) {
    let sent = SentInvitation(), invitation = connection.number()
    try await connection.make(request, invitation, for: sent, undo: .cancel(invitation: invitation))
    defer { connection.forget(invitation) }
    guard let outcome = await sent.end.value() else {
      connection.write(.cancel(invitation: invitation), connection.number())
      throw .cancelled
    }
    if let error = try outcome.get().error { throw error }
  }

  /// Leaves the session. `events` ends after the events that are already queued.
  ///
  /// - Parameter farewell: sent to the members; at most 63 bytes.
  public func leave(_ farewell: String = "") async throws(CausewayError) {
    try Syntax.name(farewell, "a farewell", Limits.nameBytesMax)
    guard core.isOpen.close() else { return }
    do {
      try await connection.ask(.leave(session: number, farewell: farewell))
    } catch {
      if error.reason != .ended { throw error }
    }
  }

  // MARK: Messages

  /// Sends a message, and waits for the result for each member.
  ///
  /// A member that has no room for the message does not delay the other members. Messages that one task sends one after
  /// another arrive in the order in which they were sent.
  ///
  /// - Parameters:
  ///   - bytes: at most 65,000; at most 1,900 for an unreliable message.
  ///   - members: at most 63 addresses; nil for all connected members.
  ///   - mode: the delivery mode.
  /// - Returns: the result for each member; empty for an unreliable message.
  /// - Throws: `ended` if the session has ended; `cancelled` if the task was cancelled; the message may still arrive.
  @discardableResult
  public func send(
    _ bytes: [UInt8], to members: [Address]? = nil, _ mode: Mode = .reliable
  ) async throws(CausewayError) -> [Address: Delivery] {
    guard bytes.count <= Limits.messageBytesMax else {
      throw CausewayError(.invalid, "a message has at most \(Limits.messageBytesMax) bytes")
    }
    guard mode != .unreliable || bytes.count <= Limits.unreliableBytesMax else {
      throw CausewayError(.invalid, "an unreliable message has at most \(Limits.unreliableBytesMax) bytes")
    }
    guard (members?.count ?? 0) <= Limits.addressesMax else {
      throw CausewayError(.invalid, "a message is addressed to at most \(Limits.addressesMax) members")
    }
    if members?.isEmpty == true { return [:] }
    let request = Request.send(session: number, mode, to: members ?? [], bytes)
    let wanted = mode == .unreliable ? 1 : members?.count ?? core.mailbox.read { $0.connectedCount }
    do {
      return try await send(request, wanted)
    } catch {
      // Members have joined since the count, so the message needs more results than were reserved. With all results
      // reserved, the message can be sent.
      guard error.reason == .full else { throw error }
    }
    return try await send(request, node.results.slots)
  }

  private func send(_ request: Request, _ slots: Int) async throws(CausewayError) -> [Address: Delivery] {
    guard await node.results.enter(slots) else { throw .cancelled }
    defer { node.results.leave(slots) }
    return try await connection.ask(request).results
  }

  /// Sends a reliable message to one member, and returns when the member's node has the message. While the member has
  /// no room for the message, the call waits and tries again.
  ///
  /// - Throws: `outOfReach` if the member is not connected or goes out of reach; the message may have arrived, but not
  ///   twice. Also the errors of `send`.
  public func deliver(_ bytes: [UInt8], to member: Address, _ mode: Mode = .reliable) async throws(CausewayError) {
    while true {
      let news = core.news
      switch try await send(bytes, to: [member], mode)[member] {
      case .delivered, nil: return
      case .failed: throw CausewayError(.outOfReach, "the member went out of reach; it may have the message")
      case .notConnected: throw CausewayError(.outOfReach, "the member is not connected")
      case .noRoom: if await news.value() == nil { throw .cancelled }
      }
    }
  }
}

/// An invitation that this application sent.
final class SentInvitation: EventHandler {
  let end = Promise<Result<Outcome, CausewayError>>()

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    if case .invitationEnded(0, let outcome) = event { end.fulfil(.success(outcome)) }
  }

  func end(_ error: CausewayError) { end.fulfil(.failure(error)) }
}
