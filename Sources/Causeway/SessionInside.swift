import Synchronization
internal import Transfer

/// A session as the daemon tells it.
final class SessionInside: Hearer {
  let mailbox = Mailbox(SessionContent())
  /// Until this application or the daemon ended it.
  let isOpen = Latch()
  /// With the error when the connection ended first.
  let ended = Promise<CausewayError?>()
  private let nextNews = Mutex(Promise<Void>())
  let number: UInt32
  let resources = Resources()

  init(_ number: UInt32) { self.number = number }

  /// Kept when a member may have got room, or another state, after this was asked for.
  var news: Promise<Void> { nextNews.withLock { $0 } }

  func hear(_ event: Event, _ connection: Connection) throws(CausewayError) {
    let broken = mailbox.change { $0.tell(event) }
    if let broken { throw .broken(broken) }
    switch event {
    case .ended:
      _ = isOpen.close()
      mailbox.end(.success(()))
      finish(nil)
    case .member, .room: tellNews()
    case .stream(let received, let from, let name):
      let sender = mailbox.read { $0.member(from) }
      let stream = OfferedStream(connection, received, sender, name)
      // One without a place is dropped here, and so refused.
      if ResourceStream.isReserved(name) {
        resources.hear(stream, connection, self)
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
    tellNews()
  }

  private func tellNews() {
    let news = nextNews.withLock { news in
      defer { news = Promise() }
      return news
    }
    news.fulfil(())
  }
}

/// Members as they are, and what the application was not told yet. Messages are bounded by the window, other events by
/// what can differ: of a member's states that nobody took the last one stands for all, as long as no message of it is
/// between. A stream that ends before it is taken leaves nothing.
struct SessionContent: Content {
  private(set) var id: String?
  private(set) var members: [Address: Member] = [:]
  private var waiting = Queue<SessionEvent>()
  /// Where in the queue a member's state waits that may still be replaced.
  private var states: [Address: Int] = [:]
  private var rooms: Set<Address> = []
  private var undecided: Set<Address> = []
  /// Streams that came, each with its position in the queue: what was before it is told first.
  private var streams: [(position: Int, stream: OfferedStream)] = []
  /// Offers that came, in the same way.
  private var offers: [(position: Int, offer: Offer)] = []
  /// Events that wait and are no messages.
  private var othersCount = 0
  private var hasEnded = false
  /// Bytes of messages, each with its overhead, since the session was opened.
  private var received: UInt64 = 0
  private var taken: UInt64 = 0
  private var limit: UInt64 = 0

  var isEmpty: Bool { waiting.isEmpty && streams.isEmpty && offers.isEmpty }
  var connectedCount: Int { members.values.count { $0.isConnected } }

  /// What the daemon did wrong, if anything.
  mutating func tell(_ event: Event) -> String? {
    switch event {
    case .identified(let bytes): id = bytes.map { hexadecimal(UInt64($0), digits: 2) }.joined()
    case .member(let member): tell(member)
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
      // The daemon says no word more of them.
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

  private mutating func tell(_ member: Member) {
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

  /// A member as it stands. The daemon tells of nobody whom it has not told as connected.
  func member(_ address: Address) -> Member {
    members[address]
      ?? Member(address: address, peer: Peer(name: "", hops: 0, isVerified: false), state: .connected)
  }

  /// A stream waits, unless too many do.
  mutating func add(_ stream: OfferedStream) {
    if streams.count < Limits.offeredStreamsMax { streams.append((waiting.end, stream)) }
  }

  /// A stream that has ended, if it still waits.
  mutating func remove(_ number: UInt32) {
    guard let index = streams.firstIndex(where: { $0.stream.number == number }) else { return }
    streams.remove(at: index).stream.expire()
  }

  /// An offer waits. There are as many as may be under way (`Limits.offersMax`).
  mutating func add(_ offer: Offer) { if !hasEnded { offers.append((waiting.end, offer)) } }

  /// An offer that has ended, if it still waits.
  mutating func remove(_ run: IncomingRun) { offers.removeAll { $0.offer.run === run } }

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
      // Only if it was this one: one behind a message has a later position.
      if let position = states[member.address], waiting[position] == nil { states[member.address] = nil }
    case .room(let address): rooms.remove(address)
    case .decisionWanted(let address, _, _): undecided.remove(address)
    case .stream, .offer, .ended: break
    }
    othersCount -= 1
    return event
  }

  /// The next limit, when it is time for one.
  mutating func grant() -> UInt64? {
    let window = UInt64(Limits.windowBytes)
    guard !hasEnded, taken + window / 2 >= limit else { return nil }
    limit = taken + window
    return limit
  }

  private static func cost(_ bytes: Int) -> UInt64 { UInt64(bytes + Limits.messageOverheadBytes) }
}
