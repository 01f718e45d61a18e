/// A group of applications that exchange messages and streams, wherever in the mesh they are. It is left when it is no
/// longer held, nobody iterates its events, it has no stream, and nothing is gathered. docs/local-api.md;
/// docs/protocol.md, “Sessions”.
public final class Session: Sendable {
  /// The service type.
  public let type: String
  /// This application, as the others see it: the same in all its sessions of this type.
  public let address: Address
  let node: Node
  let number: UInt32
  let inside: SessionInside
  var connection: Connection { node.lease.connection }

  init(_ node: Node, _ number: UInt32, _ type: String, _ inside: SessionInside, _ address: Address) {
    self.node = node
    self.address = address
    self.number = number
    self.type = type
    self.inside = inside
    grant()
  }

  deinit {
    if inside.isOpen.close() {
      connection.write(.leave(session: number, farewell: ""), connection.number())
      connection.forget(number)
    }
  }

  // MARK: What there is

  /// 32 hexadecimal digits, the same at all members. Nil before the daemon told it; another one when sessions have
  /// merged.
  public var id: String? { inside.mailbox.read { $0.id } }

  /// All but this application, by address; those who left are not among them.
  public var members: [Member] {
    inside.mailbox.read { $0.members.values.sorted { $0.address < $1.address } }
  }

  /// What happens in the session. Messages come as fast as they are taken: 256 KiB wait here, everything else at its
  /// senders. Of a member's changes that are not taken the last one is told. Of streams that come 32 wait to be taken.
  public var events: Events<SessionEvent> {
    Events {
      let event = await self.inside.mailbox.next()
      self.grant()
      if case .success(.stream(let stream)?) = event { stream.hold(self) }
      if case .success(.offer(let offer)?) = event { offer.run.hold(self) }
      return event
    }
  }

  /// Grants the daemon as much as was taken.
  private func grant() {
    guard let limit = inside.mailbox.change({ $0.grant() }) else { return }
    connection.write(.window(session: number, limit: limit), 0)
  }

  // MARK: Members

  /// Invites a service, and waits until its application has joined. Cancelling the task takes the invitation
  /// back; who had accepted by then is a member all the same.
  ///
  /// - Parameters:
  ///   - address: of a sighting, or kept from an earlier one.
  ///   - context: at most 4,096 bytes that the invitee gets before it decides; it must not trust them.
  ///   - timeout: 0 or less: 30 s.
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

  /// Connects with an application that this one knows by another way than a service: a code that was scanned, a file, a
  /// server. The two tell each other their `address`, as `description` if it is to be text, and each connects to the other:
  /// nobody advertises, browses or is asked. It waits as well while the other one is out of reach. One that does not connect in
  /// its turn is asked, if it advertises. Cancelling the task ends the wait.
  ///
  /// - Parameters:
  ///   - address: the other application's `Session.address`.
  ///   - timeout: 0 or less: 30 s.
  /// - Throws: `timedOut`; `declined`; `alreadyMember`; `full`; `busy` when this session waits for it already; `invalid` for
  ///   its own address; `unsupported` by a daemon of an earlier version; `cancelled`; `ended`.
  public func connect(to address: Address, timeout: Duration = .seconds(30)) async throws(CausewayError) {
    try await invite(.connect(session: number, address, milliseconds: Self.milliseconds(timeout)))
  }

  private static func milliseconds(_ timeout: Duration) -> UInt32 {
    let parts = timeout.components
    // At most what the field holds, 49 days.
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

  /// Leaves. The members are told the farewell, at most 63 bytes. `events` ends behind what was not taken yet.
  public func leave(_ farewell: String = "") async throws(CausewayError) {
    try Syntax.name(farewell, "a farewell", Limits.nameBytesMax)
    guard inside.isOpen.close() else { return }
    do {
      try await connection.ask(.leave(session: number, farewell: farewell))
    } catch {
      if error.reason != .ended { throw error }
    }
  }

  // MARK: Messages

  /// Sends a message, and waits until the result of each member is known. One member without room holds up no other.
  /// Messages that one task sends one after the other arrive in this order.
  ///
  /// - Parameters:
  ///   - bytes: at most 65,000; unreliable ones at most 1,900.
  ///   - members: at most 63; nil: all that are connected.
  ///   - mode: how it travels.
  /// - Returns: the result of each member, empty for an unreliable message.
  /// - Throws: `ended` when the session has ended; `cancelled`: the message may arrive all the same.
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
    let wanted = mode == .unreliable ? 1 : members?.count ?? inside.mailbox.read { $0.connectedCount }
    do {
      return try await send(request, wanted)
    } catch {
      // Members came meanwhile, and with them more results than were reckoned with: alone it has room.
      guard error.reason == .full else { throw error }
    }
    return try await send(request, node.results.places)
  }

  private func send(_ request: Request, _ places: Int) async throws(CausewayError) -> [Address: Delivery] {
    guard await node.results.enter(places) else { throw .cancelled }
    defer { node.results.leave(places) }
    return try await connection.ask(request).results
  }

  /// Sends a reliable message to one member, and waits for room as long as it has none: until its box has the message.
  ///
  /// - Throws: `outOfReach` when it is not connected, or no longer; the message may have arrived, but not twice. As
  ///   `send`.
  public func deliver(_ bytes: [UInt8], to member: Address, _ mode: Mode = .reliable) async throws(CausewayError) {
    while true {
      let news = inside.news
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
final class SentInvitation: Hearer {
  let end = Promise<Result<Outcome, CausewayError>>()

  func hear(_ event: Event, _ connection: Connection) throws(CausewayError) {
    if case .invitationEnded(0, let outcome) = event { end.fulfil(.success(outcome)) }
  }

  func end(_ error: CausewayError) { end.fulfil(.failure(error)) }
}
