import Primitives
import Session

/// All clients of the local API. This type makes no system calls: the host of the type moves packets between the
/// clients' records and the sockets.
///
/// The host reports new and ended connections, their packets, and the events of the node's sessions. The host requests
/// the events for a client when the client's connection has room for a packet. Time is an argument.
///
/// A client that reads nothing costs bounded memory and delays no other client. Only the latest value of each state is
/// kept. Credit limits the messages from the members of the client's sessions. Credit is renewed only when the client
/// reads.
///
/// **Drain rule.** After any calls and before waiting, the host calls `nextPacket` for each client that has events and
/// whose connection has room, until `nextPacket` returns nil. The host then drains the node. Finally the host sets a
/// timer for `nextDeadline`. When the timer fires, the host calls `handleTimeouts`, and then `nextOverdue` until
/// `nextOverdue` returns nil.
public final class ClientRecords {
  let node: any LocalNode
  let restrictions: [LocalRestriction]
  private(set) var clients = [ClientRecord?](repeating: nil, count: LocalLimits.clientsMax)
  var references = NodeReferences()
  private var turns = SignatureTurns()
  /// The time at which clients are notified to retry messages for which a member had no room.
  private var retryAt = Instant.never
  /// The earliest deadline of a hello.
  private var helloAt = Instant.never
  /// The time at which the next departure may be signed.
  private var departAt = Instant.never

  public init(_ node: any LocalNode, restrictions: [LocalRestriction] = []) {
    self.node = node
    self.restrictions = restrictions
  }

  // MARK: Clients

  /// Adds a client with its numeric user and all its groups, as reported by the kernel. Returns the client's index.
  /// Returns nil if the user's share of the slots is used up; `connectionRefusal` then has the text for the client.
  public func attach(user: UInt32, isOperator: Bool, groups: [UInt32], now: Instant) -> Int? {
    guard mayTake(1, of: LocalLimits.clients, user, isOperator, counting: { _ in 1 }),
      let index = clients.firstIndex(where: { $0 == nil })
    else { return nil }
    let deadline = now + LocalLimits.helloTime
    clients[index] = ClientRecord(user: user, isOperator: isOperator, groups: groups, helloDeadline: deadline)
    helloAt = min(helloAt, deadline)
    return index
  }

  /// Removes a client. The other members of the client's sessions see the client as crashed when its departures are
  /// signed (`handleTimeouts`). Until then the slots of the client and of these sessions are charged to its user.
  public func detach(_ index: Int, now: Instant) {
    guard let client = clients[index] else { return }
    let rest = ClientRecord(
      user: client.user, isOperator: client.isOperator, groups: [], helloDeadline: .never)
    rest.isGone = true
    rest.departing = client.departing
    clients[index] = rest
    for session in client.sessions {
      if !session.hasEnded {
        try? node.sessions.leave(session.handle, .crashed, signsLater: true, now: now)
        rest.departing.append(session.handle)
      }
      node.sessions.discard(session.handle)
    }
    client.inHand.map { node.sessions.discard($0.session) }
    for service in client.services { withdraw(service.endpoint, now) }
    forgetSigned(index, now)
  }

  /// Leaves a session for a client, with one signature. Further signatures follow in later passes of the event loop.
  func leave(_ client: ClientRecord, _ session: ClientSession, _ text: [UInt8], _ now: Instant) throws(SessionError) {
    try node.sessions.leave(session.handle, text: text, signsLater: true, now: now)
    node.sessions.signDeparture(from: session.handle, now: now)
    guard node.sessions.owesDeparture(session.handle) else { return }
    client.departing.append(session.handle)
    departAt = now
  }

  /// Signs the next departure, if the turn of a client with a departure has come. Among the clients, that of the user
  /// with the smallest used part of its rate is first.
  private func signDeparture(_ now: Instant) {
    departAt = .never
    func order(_ index: Int) -> Instant {
      clients[index].map { $0.isOperator ? .zero : turns.order(of: $0.user) } ?? .never
    }
    let departing = clients.indices.filter { clients[$0]?.departing.isEmpty == false }
    guard let index = departing.min(by: { order($0) < order($1) }), let client = clients[index],
      let handle = client.departing.first
    else { return }
    let user = client.isOperator ? nil : client.user
    switch turns.turn(of: user, now: now) {
    case .at(let time): departAt = time
    case .nextWakeUp: departAt = now
    case .now:
      let signaturesBefore = node.sessions.signaturesMade
      node.sessions.signDeparture(from: handle, now: now)
      turns.spend(node.sessions.signaturesMade - signaturesBefore, of: user, now: now)
      if departing.count > 1 { departAt = now }
      forgetSigned(index, now)
    }
  }

  /// Frees the slots of signed departures, and that of a client that is gone and has no other departures.
  private func forgetSigned(_ index: Int, _ now: Instant) {
    guard let client = clients[index] else { return }
    client.departing.removeAll { !node.sessions.owesDeparture($0) }
    if !client.departing.isEmpty { departAt = now } else if client.isGone { clients[index] = nil }
  }

  /// Whether requests of a client may be read now. No request is read while the client has left more than
  /// `LocalLimits.repliesBytesMax` bytes of answers unread.
  public func isReading(_ index: Int) -> Bool {
    clients[index].map { $0.repliesBytes <= LocalLimits.repliesBytesMax } ?? false
  }

  /// Handles a packet from a client. The packet has no length field. Returns the cost of the request, in the unit of
  /// `LocalLimits.workPerCall`.
  @discardableResult
  public func receive(_ packet: RawSpan, from index: Int, now: Instant) -> Int {
    guard let client = clients[index] else { return 0 }
    do throws(LocalSyntaxError) {
      let request = try LocalRequest(packet)
      let signaturesBefore = node.sessions.signaturesMade
      carryOut(request, client, now)
      if !client.isOperator {
        turns.spend(node.sessions.signaturesMade - signaturesBefore, of: client.user, now: now)
      }
      return work(request.body, client)
    } catch {
      let number = LocalRequest.head(packet)?.number ?? 0
      switch error {
      case .unsupported: answer(client, number, .unsupported)
      case .truncated: answer(client, number, .invalid, "the packet ends before its last field")
      case .outOfRange: answer(client, number, .invalid, "a field has a value that no version allows")
      }
      return 1
    }
  }

  private func work(_ request: LocalRequest.Body, _ client: ClientRecord) -> Int {
    switch request {
    case .send(let session, _, let to, _): to.isEmpty ? client.session(session)?.memberCount ?? 1 : to.count
    case .window, .write, .streamWindow: 1
    case .hello, .advertise, .browse, .open, .close, .invite, .cancel, .answer, .leave, .gather, .stream, .take,
      .finish, .reset, .eject, .decide, .connect:
      LocalLimits.workOfRequest
    }
  }

  /// The time at which a packet from a client may be handled: now, in the next pass of the event loop, or later. Only a
  /// packet that may cost signatures can be delayed. Until its time, the caller keeps the packet and reads no more from
  /// the client. `now` is the time at which the pass of the event loop began.
  public func turn(of packet: RawSpan, from index: Int, now: Instant) -> SignatureTurns.Turn {
    guard let client = clients[index], !client.isOperator, LocalRequest.maySign(packet) else { return .now }
    return turns.turn(of: client.user, now: now)
  }

  /// The order in which waiting clients get their turns. The client with the lowest value is first. Clients of the same
  /// user have the same value.
  public func turnOrder(_ index: Int) -> Instant { clients[index].map { turns.order(of: $0.user) } ?? .never }

  // MARK: Events for clients

  public func hasNews(_ index: Int) -> Bool { clients[index]?.hasNews ?? false }

  /// The next packet for a client, with its length field, or nil if there is no packet. A call implies that the
  /// connection has written the previous packet, or has copied it for writing.
  public func nextPacket(for index: Int, now: Instant) -> [UInt8]? {
    guard let client = clients[index] else { return nil }
    written(client, now)
    if let reply = client.nextReply() { return reply }
    if let result = client.nextResult() {
      if case .sent(let request, to: _, _) = result { finishSend(client, request) }
      return result.packet
    }
    if client.isTurnOfStreams {
      client.isTurnOfStreams = false
      if let event = client.nextStreamEvent(node, now) { return event.packet }
    }
    if let next = client.nextSessionEvent(node) {
      if let message = next.message {
        client.inHand = ClientRecord.InHand(
          session: next.session.handle, from: message.from, isReliable: message.isReliable,
          byteCount: message.data.count)
        client.isTurnOfStreams = true
      }
      return next.event.packet
    }
    let event =
      client.nextStreamEvent(node, now) ?? client.nextInvitationEvent(node, now)
      ?? client.nextBrowseEvent(node, references, restrictions)
    if event == nil { client.hasNews = false }
    return event?.packet
  }

  /// Releases the message that was written to the client, and renews the credit of the message's sender.
  private func written(_ client: ClientRecord, _ now: Instant) {
    guard let message = client.inHand else { return }
    client.inHand = nil
    if message.isReliable { node.sessions.taken(message.byteCount, of: message.from, in: message.session, now: now) }
  }

  /// The time at which `handleTimeouts` and `nextOverdue` are due.
  public var nextDeadline: Instant { min(retryAt, helloAt, departAt) }

  /// Makes at most one signature, because a signature takes as long as other events are allowed to wait.
  public func handleTimeouts(now: Instant) {
    if departAt <= now { signDeparture(now) }
    guard retryAt <= now else { return }
    retryAt = .never
    for client in clients.compactMap({ $0 }) {
      for session in client.sessions where session.roomAppeared() { client.hasNews = true }
    }
  }

  /// The next client that has not sent its hello in time, or nil. The host first handles input that has already
  /// arrived. If the client is still overdue, the host closes the connection and calls `detach`.
  public func nextOverdue(now: Instant) -> Int? {
    guard helloAt <= now else { return nil }
    helloAt = .never
    for index in clients.indices {
      guard let client = clients[index] else { continue }
      helloAt = min(helloAt, client.helloDeadline)
      if client.helloDeadline <= now { return index }
    }
    return nil
  }

  /// Whether the time for a client's hello has expired.
  public func isOverdue(_ index: Int, now: Instant) -> Bool { clients[index].map { $0.helloDeadline <= now } ?? false }

  // MARK: Helpers

  func answer(_ client: ClientRecord, _ number: UInt32, _ outcome: LocalOutcome, _ text: StaticString = "") {
    client.reply(.done(request: number, outcome, text: text.withUTF8Buffer { [UInt8]($0) }))
  }

  /// Whether an unreliable message may wait for a client. With the message, the waiting bytes of the client must be at
  /// most twice the bytes that are free for all clients. So a single client gets at most two thirds of the buffer, and
  /// n clients get 2/(2n + 1) each. The part that stays free for a new client is half of one client's part. The clients
  /// of one user together may have at most four times the free bytes.
  func mayWait(_ message: ClientSession.Message, in session: ClientSession, for client: ClientRecord) -> Bool {
    let (all, ofUser) = sum(of: client.user) { $0.unreliableBytes }
    let userMay = LocalLimits.unreliable.bytesMax(held: ofUser, taken: all, isFavoured: client.isOperator)
    return message.heldBytes <= userMay && session.unreliableBytes <= LocalLimits.unreliableBytesMax
      && client.unreliableBytes + message.heldBytes <= 2 * (LocalLimits.unreliableBytesOfAll - all - message.heldBytes)
  }

  func withdraw(_ endpoint: UInt32, _ now: Instant) {
    node.withdraw(endpoint, now: now)
    offersChanged(node.sessions.local)
  }

  /// Marks a node in all browses as changed, because the node's services or the node's description have changed.
  func offersChanged(_ id: NodeID) {
    let offers = !node.sessions.services(of: id).isEmpty
    guard let reference = references.reference(of: id, offers: offers) else { return }
    for client in clients.compactMap({ $0 }) where !client.browses.isEmpty {
      for index in client.browses.indices { client.browses[index].dirty[reference] = true }
      client.hasNews = true
    }
  }

  func retryLater(_ now: Instant) { retryAt = min(retryAt, now + LocalLimits.retryTime) }
}
