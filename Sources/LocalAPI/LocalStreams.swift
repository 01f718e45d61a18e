import Primitives
import Session

/// Bytes that wait for a client, in blocks, so that they take little more memory than they are however they came.
struct ByteBlocks {
  static let blockBytes = 1_024

  private(set) var count = 0
  private var blocks: [[UInt8]] = []
  /// Bytes of the first block that were taken.
  private var head = 0

  mutating func append(_ bytes: [UInt8]) {
    var next = 0
    while next < bytes.count {
      if blocks.isEmpty || blocks[blocks.count - 1].count == Self.blockBytes {
        blocks.append([])
        blocks[blocks.count - 1].reserveCapacity(Self.blockBytes)
      }
      let end = min(next + Self.blockBytes - blocks[blocks.count - 1].count, bytes.count)
      blocks[blocks.count - 1].append(copying: bytes.span.bytes.extracting(next..<end))
      next = end
    }
    count += bytes.count
  }

  /// The next bytes, as many as there are at most.
  mutating func take(_ most: Int) -> [UInt8] {
    var taken: [UInt8] = []
    taken.reserveCapacity(min(most, count))
    while taken.count < most, !blocks.isEmpty {
      let first = blocks[0], end = min(head + most - taken.count, first.count)
      taken.append(copying: first.span.bytes.extracting(head..<end))
      head = end
      guard head == first.count else { break }
      blocks.removeFirst()
      head = 0
    }
    count -= taken.count
    return taken
  }

  mutating func clear() { self = ByteBlocks() }
}

/// One stream of a client: to a member, or from one.
final class ClientStream {
  let handle: StreamHandle
  let session: SessionHandle
  /// The member at the other end.
  let member: MemberAddress
  /// Of one that a member opened.
  let name: [UInt8]
  let isOwn: Bool
  /// The client's number: 0 as long as it has not taken one that a member opened.
  var number: UInt32
  /// The client was told that a member opened it.
  var isTold = false
  /// How it ended.
  var end: StreamEnd?

  // Of one from a member.
  private(set) var queue = ByteBlocks()
  /// No more bytes will come.
  private(set) var isFinished = false
  /// What the client was sent, and what it takes.
  private var sent: UInt64 = 0
  private var limit: UInt64 = 0

  // Of one to a member.
  /// What the client has written, and what it was told that it may write.
  private var written: UInt64 = 0
  private var granted: UInt64 = 0
  /// It writes no more.
  var isClosed = false
  /// It wrote more than it may.
  var isBroken = false

  /// One that the client opens.
  init(_ number: UInt32, _ handle: StreamHandle, _ session: SessionHandle, to member: MemberAddress) {
    self.number = number
    self.handle = handle
    self.session = session
    self.member = member
    name = []
    isOwn = true
  }

  /// One that a member opened.
  init(_ handle: StreamHandle, _ session: SessionHandle, from member: MemberAddress, _ name: [UInt8]) {
    number = 0
    self.handle = handle
    self.session = session
    self.member = member
    self.name = name
    isOwn = false
  }

  // MARK: What happens

  func hear(_ event: StreamEvent) {
    switch event {
    case .opened, .room: break
    case .bytes(let bytes): queue.append(bytes)
    case .finished: isFinished = true
    case .ended(let end):
      self.end = end
      // What came before a cut is of no use to somebody who has not read it.
      if end != .finished { queue.clear() }
    }
  }

  func grant(_ limit: UInt64) { self.limit = max(self.limit, limit) }

  /// Whether the client may write so many bytes. Counts them.
  func mayWrite(_ byteCount: Int) -> Bool {
    guard !isClosed, written + UInt64(byteCount) <= granted else { return false }
    written += UInt64(byteCount)
    return true
  }

  // MARK: What the client is told

  /// The next event of one that the client opened.
  func nextRoom(_ sessions: Sessions) -> LocalEvent? {
    guard isOwn, end == nil, !isClosed else { return nil }
    let limit = written + UInt64(sessions.streamRoom(handle, promised: Int(granted - written)))
    guard limit > granted, limit - granted >= LocalLimits.streamRoomBytes else { return nil }
    granted = limit
    return .streamRoom(stream: number, limit: limit)
  }

  /// The next bytes that the client takes of one that it has taken.
  func nextBytes(_ sessions: Sessions, now: Instant) -> LocalEvent? {
    let count = min(UInt64(queue.count), limit - min(limit, sent), UInt64(LocalLimits.streamBytesMax))
    guard number != 0, count > 0 else { return nil }
    let bytes = queue.take(Int(count))
    sent += count
    sessions.takenFromStream(handle, Int(count), now: now)
    return .streamBytes(stream: number, bytes)
  }

  /// How it ended, when the client has all that came before.
  var endToTell: StreamEnd? {
    if !isOwn && isFinished && queue.count == 0 && end == nil { return .finished }
    return end
  }
}

extension LocalClient {
  func stream(_ number: UInt32) -> ClientStream? {
    number == 0 ? nil : streams.first { $0.number == number && $0.end == nil }
  }

  /// What a stream has to say; each in its turn.
  func nextStreamEvent(_ node: any LocalNode, _ now: Instant) -> LocalEvent? {
    for _ in streams.indices {
      streamTurn = streamTurn + 1 < streams.count ? streamTurn + 1 : 0
      let stream = streams[streamTurn]
      if !stream.isOwn && !stream.isTold {
        guard stream.end == nil, let session = sessions.first(where: { $0.handle == stream.session }) else {
          // Nobody heard of it.
          streams.remove(at: streamTurn)
          return nextStreamEvent(node, now)
        }
        if let event = session.connecting(stream.member, node) { return event }
        stream.isTold = true
        return .stream(session: session.number, stream: stream.handle.number, from: stream.member, stream.name)
      }
      if let event = stream.nextRoom(node.sessions) ?? stream.nextBytes(node.sessions, now: now) { return event }
      guard let end = stream.endToTell, stream.number != 0 || end != .finished else { continue }
      streams.remove(at: streamTurn)
      let session = sessions.first { $0.handle == stream.session }
      if stream.number == 0 && session == nil { return nextStreamEvent(node, now) }
      return .streamEnded(
        object: stream.number == 0 ? session?.number ?? 0 : stream.number,
        received: stream.number == 0 ? stream.handle.number : 0,
        stream.isBroken ? .reset(.broken) : end)
    }
    return nil
  }
}

/// What clients ask for of streams, and what comes on them.
extension LocalClients {
  func openStream(
    _ client: LocalClient, _ number: UInt32, _ session: UInt32, _ member: MemberAddress, _ name: [UInt8],
    _ now: Instant
  ) throws(LocalError) {
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number stands for something else") }
    guard let session = client.session(session) else { throw LocalError(.unknown) }
    guard client.streams.count < LocalLimits.streamsMax else { throw LocalError(.full, "a client has 32 streams") }
    let handle = try LocalError.wrapping(
      full: "a member has 16 streams of this application, or the user has its share of all; end one first"
    ) { () throws(SessionError) in
      try node.sessions.openStream(name, in: session.handle, to: member, now: now)
    }
    client.streams.append(ClientStream(number, handle, session.handle, to: member))
  }

  /// The client takes a stream that a member opened, or refuses it.
  func decideStream(
    _ client: LocalClient, _ number: UInt32, _ received: UInt32, isWanted: Bool, _ limit: UInt64, isPostponed: Bool,
    _ now: Instant
  ) throws(LocalError) {
    let handle = StreamHandle(number: received)
    let known = client.streams.first { $0.handle == handle && $0.isTold && !$0.isOwn && $0.number == 0 }
    guard let stream = known, stream.end == nil else { throw LocalError(.unknown) }
    guard isWanted else {
      client.streams.removeAll { $0 === stream }
      return try LocalError.wrapping { () throws(SessionError) in
        try node.sessions.resetStream(handle, as: isPostponed ? .tooMany : nil, now: now)
      }
    }
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number stands for something else") }
    try LocalError.wrapping { () throws(SessionError) in
      try node.sessions.acceptStream(handle, now: now)
    }
    stream.number = number
    stream.grant(limit)
  }

  /// Bytes for a member. Who writes more than there is room for does not keep to the protocol.
  func write(_ client: LocalClient, _ number: UInt32, _ data: [UInt8], _ now: Instant) {
    guard let stream = client.stream(number), stream.isOwn, !stream.isBroken else { return }
    let isTaken =
      stream.mayWrite(data.count)
      && (try? node.sessions.writeStream(stream.handle, data, now: now)) == data.count
    if !isTaken {
      stream.isBroken = true
      try? node.sessions.resetStream(stream.handle, now: now)
    }
    client.hasNews = true
  }

  func finishStream(_ client: LocalClient, _ number: UInt32, _ now: Instant) throws(LocalError) {
    guard let stream = client.stream(number), stream.isOwn else { throw LocalError(.unknown) }
    stream.isClosed = true
    try LocalError.wrapping { () throws(SessionError) in try node.sessions.finishStream(stream.handle, now: now) }
  }

  func resetStream(_ client: LocalClient, _ number: UInt32, isPostponed: Bool, _ now: Instant) throws(LocalError) {
    guard let stream = client.stream(number) else { throw LocalError(.unknown) }
    try LocalError.wrapping { () throws(SessionError) in
      try node.sessions.resetStream(stream.handle, as: isPostponed ? .tooMany : nil, now: now)
    }
  }

  func hear(_ handle: StreamHandle, _ event: StreamEvent, _ now: Instant) {
    if case .opened(let session, let from, let name, let isTwoWay) = event {
      return opened(handle, session, from, name, isTwoWay: isTwoWay, now)
    }
    for client in clients.compactMap({ $0 }) {
      guard let stream = client.streams.first(where: { $0.handle == handle }) else { continue }
      stream.hear(event)
      client.hasNews = true
      return
    }
  }

  private func opened(
    _ handle: StreamHandle, _ session: SessionHandle, _ from: MemberAddress, _ name: [UInt8], isTwoWay: Bool,
    _ now: Instant
  ) {
    for client in clients.compactMap({ $0 }) where client.sessions.contains(where: { $0.handle == session }) {
      // A node that opens streams gets no more places than it leaves free.
      let ofNode = client.streams.count { !$0.isOwn && $0.member.node == from.node }
      guard ofNode < LocalLimits.streamsMax - client.streams.count else { break }
      client.streams.append(ClientStream(handle, session, from: from, name))
      client.hasNews = true
      // A client reads what others open, and writes what it opens itself.
      if isTwoWay { try? node.sessions.finishStream(handle, now: now) }
      return
    }
    try? node.sessions.resetStream(handle, as: .tooMany, now: now)
  }
}
