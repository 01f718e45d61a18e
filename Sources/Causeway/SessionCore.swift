import Synchronization
internal import Transfer

/// The state of a session, built from the daemon's events.
final class SessionCore: EventHandler {
  let mailbox = Mailbox(SessionContent())
  /// Open until this application or the daemon ends the session.
  let isOpen = Latch()
  /// Fulfilled when the session ends: with nil, or with the error if the connection to the daemon ended first.
  let ended = Promise<CausewayError?>()
  private let nextNews = Mutex(Promise<Void>())
  let number: UInt32
  let resources = Resources()

  init(_ number: UInt32) { self.number = number }

  /// A promise for the next change: a member has room again, a member's state changes, or the session ends. The caller
  /// reads the property before it checks the state.
  var news: Promise<Void> { nextNews.withLock { $0 } }

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    let broken = mailbox.change { $0.apply(event) }
    if let broken { throw .broken(broken) }
    switch event {
    case .ended:
      _ = isOpen.close()
      mailbox.end(.success(()))
      finish(nil)
    case .member, .room: notifyWaiters()
    case .stream(let received, let from, let name):
      let sender = mailbox.read { $0.member(from) }
      let stream = OfferedStream(connection, received, sender, name)
      // A stream for which there is no slot is released here, and its `deinit` refuses the stream.
      if ResourceStream.isReserved(name) {
        resources.receive(stream, connection, self)
      } else {
        mailbox.change { $0.add(stream) }
      }
    case .streamEnded(let received, _): mailbox.change { $0.remove(received) }
    case .done, .welcome, .services, .allTold, .invited, .invitationEnded, .identified, .message, .sent, .streamBytes,
      .streamRoom, .decisionWanted:
      break
    }
  }

  func end(_ error: CausewayError) {
    _ = isOpen.close()
    mailbox.end(.failure(error))
    finish(error)
  }

  private func finish(_ error: CausewayError?) {
    ended.fulfil(error)
    notifyWaiters()
  }

  private func notifyWaiters() {
    let news = nextNews.withLock { news in
      defer { news = Promise() }
      return news
    }
    news.fulfil(())
  }
}

/// The current members, and the events that the application has not received yet.
///
/// The window that was granted to the daemon limits the queued messages. Other events are limited because events of one
/// kind coalesce. A new state of a member replaces the queued state of the member, unless a message from the member was
/// queued between the two states. A stream that ends before the application receives it leaves no event.
struct SessionContent: Content {
  private(set) var id: String?
  private(set) var members: [Address: Member] = [:]
  private var waiting = Queue<SessionEvent>()
  /// The queue position of each member's latest state event, while a newer state may replace the event.
  private var states: [Address: Int] = [:]
  private var rooms: Set<Address> = []
  private var undecided: Set<Address> = []
  /// Streams that members opened. `position` is the queue position that the application must have reached before the
  /// stream is delivered.
  private var streams: [(position: Int, stream: OfferedStream)] = []
  /// Offers, with positions as in `streams`.
  private var offers: [(position: Int, offer: Offer)] = []
  /// The number of queued events other than messages.
  private var othersCount = 0
  private var hasEnded = false
  /// Bytes of messages received since the session was opened. Each message is counted with
  /// `Limits.messageOverheadBytes` in addition to its content.
  private var received: UInt64 = 0
  private var taken: UInt64 = 0
  private var limit: UInt64 = 0

  var isEmpty: Bool { waiting.isEmpty && streams.isEmpty && offers.isEmpty }
  var connectedCount: Int { members.values.count { $0.isConnected } }

  /// Records an event from the daemon. Returns a description of the violation if the event violates the protocol,
  /// otherwise nil.
  mutating func apply(_ event: Event) -> String? {
    switch event {
    case .identified(let bytes): id = bytes.map { hexadecimal(UInt64($0), digits: 2) }.joined()
    case .member(let member): apply(member)
    case .message(let from, let isReliable, let bytes):
      received += Self.cost(bytes.count)
      guard received <= limit else { return "messages beyond the window" }
      states[from] = nil
      waiting.append(.message(Message(sender: member(from), bytes: bytes, isReliable: isReliable)))
    case .room(let address):
      if rooms.insert(address).inserted { append(.room(address)) }
    case .decisionWanted(let address, let peer, let certificates):
      if undecided.insert(address).inserted { append(.decisionWanted(address, peer, certificates: certificates)) }
    case .ended(let end):
      hasEnded = true
      // The daemon sends no further events for these streams.
      for (_, stream) in streams { stream.expire() }
      streams = []
      offers = []
      append(.ended(end))
    case .done, .welcome, .services, .allTold, .invited, .invitationEnded, .sent, .stream, .streamBytes, .streamRoom,
      .streamEnded:
      break
    }
    if members.count > Limits.membersMax { return "more than \(Limits.membersMax) members" }
    return othersCount > Limits.eventsMax ? "more than \(Limits.eventsMax) events of a session" : nil
  }

  private mutating func apply(_ member: Member) {
    members[member.address] = member.hasLeft ? nil : member
    if let position = states[member.address] {
      waiting[position] = .member(member)
    } else {
      states[member.address] = waiting.end
      append(.member(member))
    }
  }

  private mutating func append(_ event: SessionEvent) {
    waiting.append(event)
    othersCount += 1
  }

  /// The member with this address, in its current state. A correct daemon reports a member as connected before any
  /// other event of the member, so the fallback is not used.
  func member(_ address: Address) -> Member {
    members[address]
      ?? Member(address: address, peer: Peer(name: "", hops: 0, isVerified: false), state: .connected)
  }

  /// Queues a stream, unless `Limits.offeredStreamsMax` streams are queued.
  mutating func add(_ stream: OfferedStream) {
    if streams.count < Limits.offeredStreamsMax { streams.append((waiting.end, stream)) }
  }

  /// Removes a stream that has ended, if the application has not received the stream.
  mutating func remove(_ number: UInt32) {
    guard let index = streams.firstIndex(where: { $0.stream.number == number }) else { return }
    streams.remove(at: index).stream.expire()
  }

  /// Queues an offer. `Resources` allows at most `Limits.offersMax` unanswered offers.
  mutating func add(_ offer: Offer) { if !hasEnded { offers.append((waiting.end, offer)) } }

  /// Removes an offer that has ended, if the application has not received the offer.
  mutating func remove(_ run: IncomingTransferTask) { offers.removeAll { $0.offer.run === run } }

  mutating func take() -> SessionEvent? {
    if let (position, offer) = offers.first, position <= waiting.start {
      offers.removeFirst()
      return .offer(offer)
    }
    if let (position, stream) = streams.first, position <= waiting.start {
      streams.removeFirst()
      return .stream(stream)
    }
    guard let event = waiting.removeFirst() else { return nil }
    switch event {
    case .message(let message):
      taken += Self.cost(message.bytes.count)
      return event
    case .member(let member):
      // A newer state that was queued after a message has a later position and may still be replaced.
      if let position = states[member.address], waiting[position] == nil { states[member.address] = nil }
    case .room(let address): rooms.remove(address)
    case .decisionWanted(let address, _, _): undecided.remove(address)
    case .stream, .offer, .ended: break
    }
    othersCount -= 1
    return event
  }

  /// The next limit to grant to the daemon: the total number of bytes of messages since the session was opened. Nil
  /// while less than half of the window is used up.
  mutating func grant() -> UInt64? {
    let window = UInt64(Limits.windowBytes)
    guard !hasEnded, taken + window / 2 >= limit else { return nil }
    limit = taken + window
    return limit
  }

  private static func cost(_ bytes: Int) -> UInt64 { UInt64(bytes + Limits.messageOverheadBytes) }
}
