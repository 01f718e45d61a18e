import Primitives
import Session

/// All clients of the local API: sans-IO. The host reports clients that come and go, their packets, and what the node's
/// sessions say; each client is told what is new for it when its connection has room. Time is an argument.
///
/// A client that reads nothing costs bounded memory and holds up no other: of states only the last one is kept, and what
/// the members of its sessions may send is bounded by their credit, which only reading renews.
///
/// **Drain rule.** After any calls, before waiting: call `nextPacket` for each client with news whose connection takes
/// packets, until it returns nil; drain the node; at the end set a timer for `nextDeadline`, and call `handleTimeouts` and
/// `nextOverdue`, until it returns nil, no later than that.
public final class LocalClients {
  let node: any LocalNode
  let restrictions: [LocalRestriction]
  private(set) var clients = [LocalClient?](repeating: nil, count: LocalLimits.clientsMax)
  var places = LocalPlaces()
  private var turns = SignatureTurns()
  /// When those are told to try again whose messages found no room.
  private var retryAt = Instant.never
  /// When a client may have taken too long to say hello.
  private var helloAt = Instant.never

  public init(_ node: any LocalNode, restrictions: [LocalRestriction] = []) {
    self.node = node
    self.restrictions = restrictions
  }

  // MARK: Clients

  /// A client has connected: its numeric user and all its groups, as the kernel says. Nil when the user has its share of
  /// the places: `connectionRefusal` says so in words.
  public func attach(user: UInt32, isOperator: Bool, groups: [UInt32], now: Instant) -> Int? {
    guard mayTake(1, of: LocalLimits.clients, user, isOperator, counting: { _ in 1 }),
      let place = clients.firstIndex(where: { $0 == nil })
    else { return nil }
    let deadline = now + LocalLimits.helloTime
    clients[place] = LocalClient(user: user, isOperator: isOperator, groups: groups, helloDeadline: deadline)
    helloAt = min(helloAt, deadline)
    return place
  }

  /// A client is gone. The others in its sessions are told that it crashed.
  public func detach(_ place: Int, now: Instant) {
    guard let client = clients[place] else { return }
    clients[place] = nil
    let signaturesBefore = node.sessions.signaturesMade
    for session in client.sessions {
      if !session.hasEnded { try? node.sessions.leave(session.handle, .crashed, now: now) }
      node.sessions.discard(session.handle)
    }
    client.inHand.map { node.sessions.discard($0.session) }
    for service in client.services { withdraw(service.endpoint, now) }
    if !client.isOperator {
      turns.spend(node.sessions.signaturesMade - signaturesBefore, of: client.user, now: now)
    }
  }

  /// Whether requests of a client are taken now: not when it leaves answers unread.
  public func isReading(_ place: Int) -> Bool {
    clients[place].map { $0.repliesBytes <= LocalLimits.repliesBytesMax } ?? false
  }

  /// Takes a packet of a client, without its length. Returns what that takes of `LocalLimits.workPerCall`.
  @discardableResult
  public func receive(_ packet: RawSpan, from place: Int, now: Instant) -> Int {
    guard let client = clients[place] else { return 0 }
    do throws(LocalRefusal) {
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

  private func work(_ request: LocalRequest.Body, _ client: LocalClient) -> Int {
    switch request {
    case .send(let session, _, let to, _): to.isEmpty ? client.session(session)?.memberCount ?? 1 : to.count
    case .window, .write, .streamWindow: 1
    case .hello, .advertise, .browse, .open, .close, .invite, .cancel, .answer, .leave, .gather, .stream, .take,
      .finish, .reset, .eject, .decide, .connect:
      LocalLimits.workOfRequest
    }
  }

  /// When a packet of a client may be taken: at once, in the next wake-up, or later, because it may cost signatures. The caller
  /// keeps it and what is behind it, and reads no more of the client. `now` is the time of the wake-up.
  public func turn(of packet: RawSpan, from place: Int, now: Instant) -> SignatureTurns.Turn {
    guard let client = clients[place], !client.isOperator, LocalRequest.maySign(packet) else { return .now }
    return turns.turn(of: client.user, now: now)
  }

  /// The order of clients that wait for their turns: those of a user with a lower value are first.
  public func turnOrder(_ place: Int) -> Instant { clients[place].map { turns.order(of: $0.user) } ?? .never }

  // MARK: What clients are told

  public func hasNews(_ place: Int) -> Bool { clients[place]?.hasNews ?? false }

  /// The next packet for a client, with its length; nil when there is none. The packet before it has been written.
  public func nextPacket(for place: Int, now: Instant) -> [UInt8]? {
    guard let client = clients[place] else { return nil }
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
        client.inHand = LocalClient.InHand(
          session: next.session.handle, from: message.from, isReliable: message.isReliable,
          byteCount: message.data.count)
        client.isTurnOfStreams = true
      }
      return next.event.packet
    }
    let event =
      client.nextStreamEvent(node, now) ?? client.nextInvitationEvent(node, now)
      ?? client.nextBrowseEvent(node, places, restrictions)
    if event == nil { client.hasNews = false }
    return event?.packet
  }

  /// The message that the connection had in hand takes no memory any more: its sender may send as much again.
  private func written(_ client: LocalClient, _ now: Instant) {
    guard let message = client.inHand else { return }
    client.inHand = nil
    if message.isReliable { node.sessions.taken(message.byteCount, of: message.from, in: message.session, now: now) }
  }

  /// When `handleTimeouts` and `nextOverdue` are due.
  public var nextDeadline: Instant { min(retryAt, helloAt) }

  public func handleTimeouts(now: Instant) {
    guard retryAt <= now else { return }
    retryAt = .never
    for client in clients.compactMap({ $0 }) {
      for session in client.sessions where session.roomAppeared() { client.hasNews = true }
    }
  }

  /// A client that has not said hello in time, for the host to close and detach; nil when there is none. The host reads
  /// first what it has not read.
  public func nextOverdue(now: Instant) -> Int? {
    guard helloAt <= now else { return nil }
    helloAt = .never
    for place in clients.indices {
      guard let client = clients[place] else { continue }
      helloAt = min(helloAt, client.helloDeadline)
      if client.helloDeadline <= now { return place }
    }
    return nil
  }

  /// A client has not said hello in time.
  public func isOverdue(_ place: Int, now: Instant) -> Bool { clients[place].map { $0.helloDeadline <= now } ?? false }

  // MARK: Helpers

  func answer(_ client: LocalClient, _ number: UInt32, _ outcome: LocalOutcome, _ text: StaticString = "") {
    client.reply(.done(request: number, outcome, text: text.withUTF8Buffer { [UInt8]($0) }))
  }

  /// Whether an unreliable message may wait for a client: it gets no more than twice what is still free for all. So one
  /// holds two thirds at most, n hold 2/(2n + 1) each, and a newcomer finds half as much. The clients of one user get no
  /// more than four times what is free.
  func mayWait(_ message: ClientSession.Message, in session: ClientSession, for client: LocalClient) -> Bool {
    let (all, ofUser) = sum(of: client.user) { $0.unreliableBytes }
    let userMay = LocalLimits.unreliable.bytesMax(held: ofUser, taken: all, isFavoured: client.isOperator)
    return message.heldBytes <= userMay && session.unreliableBytes <= LocalLimits.unreliableBytesMax
      && client.unreliableBytes + message.heldBytes <= 2 * (LocalLimits.unreliableBytesOfAll - all - message.heldBytes)
  }

  func withdraw(_ endpoint: UInt32, _ now: Instant) {
    node.withdraw(endpoint, now: now)
    offersChanged(node.sessions.local)
  }

  /// What a node offers has changed, or how it is seen.
  func offersChanged(_ id: NodeID) {
    let offers = !node.sessions.services(of: id).isEmpty
    guard let place = places.place(of: id, offers: offers) else { return }
    for client in clients.compactMap({ $0 }) where !client.browses.isEmpty {
      for index in client.browses.indices { client.browses[index].dirty[place] = true }
      client.hasNews = true
    }
  }

  func retryLater(_ now: Instant) { retryAt = min(retryAt, now + LocalLimits.retryTime) }
}
