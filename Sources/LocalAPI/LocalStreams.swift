import Primitives
import Session

/// A byte queue in blocks. The memory of the queue is close to the number of queued bytes, whatever the size of the
/// pieces that were appended.
struct ByteBlocks {
  static let blockBytes = 1_024

  private(set) var count = 0
  private var blocks: [[UInt8]] = []
  /// The number of bytes already taken from the first block.
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

  /// Removes and returns the next bytes, at most `most`.
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

/// One stream of a client, to or from a member.
final class ClientStream {
  let handle: StreamHandle
  let session: SessionHandle
  /// The member at the other end of the stream.
  let member: MemberAddress
  /// The name of a stream that a member opened.
  let name: [UInt8]
  let isOwn: Bool
  /// The client's number of the stream; 0 for a member's stream that the client has not taken.
  var number: UInt32
  /// Whether the client was notified of a member's stream.
  var isTold = false
  /// How the stream ended; nil while it is open.
  var end: StreamEnd?

  // State of a stream from a member.
  private(set) var queue = ByteBlocks()
  /// Whether all bytes of the stream have arrived at this node.
  private(set) var isFinished = false
  /// The number of bytes sent to the client, and the limit that the client has granted.
  private var sent: UInt64 = 0
  private var limit: UInt64 = 0

  // State of a stream to a member.
  /// The number of bytes that the client has written, and the limit that the client was granted.
  private var written: UInt64 = 0
  private var granted: UInt64 = 0
  /// Whether the client has finished the stream.
  var isClosed = false
  /// Whether the client has exceeded the write limit.
  var isBroken = false

  /// Creates a stream that the client opens.
  init(_ number: UInt32, _ handle: StreamHandle, _ session: SessionHandle, to member: MemberAddress) {
    self.number = number
    self.handle = handle
    self.session = session
    self.member = member
    name = []
    isOwn = true
  }

  /// Creates a stream that a member opened.
  init(_ handle: StreamHandle, _ session: SessionHandle, from member: MemberAddress, _ name: [UInt8]) {
    number = 0
    self.handle = handle
    self.session = session
    self.member = member
    self.name = name
    isOwn = false
  }

  // MARK: Input

  func receive(_ event: StreamEvent) {
    switch event {
    case .opened, .room: break
    case .bytes(let bytes): queue.append(bytes)
    case .finished: isFinished = true
    case .ended(let end):
      self.end = end
      // Bytes that were not read before a reset are dropped.
      if end != .finished { queue.clear() }
    }
  }

  func grant(_ limit: UInt64) { self.limit = max(self.limit, limit) }

  /// Counts bytes as written. Returns false if the bytes exceed the write limit, or if the stream was finished.
  func mayWrite(_ byteCount: Int) -> Bool {
    guard !isClosed, written + UInt64(byteCount) <= granted else { return false }
    written += UInt64(byteCount)
    return true
  }

  // MARK: Events for the client

  /// The next write limit to report for a stream that the client opened.
  func nextRoom(_ sessions: Sessions) -> LocalEvent? {
    guard isOwn, end == nil, !isClosed else { return nil }
    let limit = written + UInt64(sessions.streamRoom(handle, promised: Int(granted - written)))
    guard limit > granted, limit - granted >= LocalLimits.streamRoomBytes else { return nil }
    granted = limit
    return .streamRoom(stream: number, limit: limit)
  }

  /// The next bytes of a stream that the client has taken, within the limit that the client has granted.
  func nextBytes(_ sessions: Sessions, now: Instant) -> LocalEvent? {
    let count = min(UInt64(queue.count), limit - min(limit, sent), UInt64(LocalLimits.streamBytesMax))
    guard number != 0, count > 0 else { return nil }
    let bytes = queue.take(Int(count))
    sent += count
    sessions.takenFromStream(handle, Int(count), now: now)
    return .streamBytes(stream: number, bytes)
  }

  /// The end of the stream, if it can be reported now. A finished stream ends after the client has received all bytes.
  var endToTell: StreamEnd? {
    if !isOwn && isFinished && queue.count == 0 && end == nil { return .finished }
    return end
  }
}

extension ClientRecord {
  func stream(_ number: UInt32) -> ClientStream? {
    number == 0 ? nil : streams.first { $0.number == number && $0.end == nil }
  }

  /// The next event of a stream. The streams of the client take turns.
  func nextStreamEvent(_ node: any LocalNode, _ now: Instant) -> LocalEvent? {
    for _ in streams.indices {
      streamTurn = streamTurn + 1 < streams.count ? streamTurn + 1 : 0
      let stream = streams[streamTurn]
      if !stream.isOwn && !stream.isTold {
        guard stream.end == nil, let session = sessions.first(where: { $0.handle == stream.session }) else {
          // The client was never notified of the stream, so no end is reported.
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

/// Requests of clients about streams, and events of streams for clients.
extension ClientRecords {
  func openStream(
    _ client: ClientRecord, _ number: UInt32, _ session: UInt32, _ member: MemberAddress, _ name: [UInt8],
    _ now: Instant
  ) throws(LocalError) {
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    guard let session = client.session(session) else { throw LocalError(.unknown) }
    guard client.streams.count < LocalLimits.streamsMax else { throw LocalError(.full, "the limit is 32 streams") }
    let handle = try LocalError.wrapping(
      full: "a member has at most 16 streams of this application, and a user its share of all; end one first"
    ) { () throws(SessionError) in
      try node.sessions.openStream(name, in: session.handle, to: member, now: now)
    }
    client.streams.append(ClientStream(number, handle, session.handle, to: member))
  }

  /// Accepts or refuses a stream that a member opened.
  func decideStream(
    _ client: ClientRecord, _ number: UInt32, _ received: UInt32, isWanted: Bool, _ limit: UInt64, isPostponed: Bool,
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
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    try LocalError.wrapping { () throws(SessionError) in
      try node.sessions.acceptStream(handle, now: now)
    }
    stream.number = number
    stream.grant(limit)
  }

  /// Sends bytes of a stream to a member. A client that exceeds the write limit violates the protocol, and the stream
  /// is reset.
  func write(_ client: ClientRecord, _ number: UInt32, _ data: [UInt8], _ now: Instant) {
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

  func finishStream(_ client: ClientRecord, _ number: UInt32, _ now: Instant) throws(LocalError) {
    guard let stream = client.stream(number), stream.isOwn else { throw LocalError(.unknown) }
    stream.isClosed = true
    try LocalError.wrapping { () throws(SessionError) in try node.sessions.finishStream(stream.handle, now: now) }
  }

  func resetStream(_ client: ClientRecord, _ number: UInt32, isPostponed: Bool, _ now: Instant) throws(LocalError) {
    guard let stream = client.stream(number) else { throw LocalError(.unknown) }
    try LocalError.wrapping { () throws(SessionError) in
      try node.sessions.resetStream(stream.handle, as: isPostponed ? .tooMany : nil, now: now)
    }
  }

  func receive(_ handle: StreamHandle, _ event: StreamEvent, _ now: Instant) {
    if case .opened(let session, let from, let name, let isTwoWay) = event {
      return opened(handle, session, from, name, isTwoWay: isTwoWay, now)
    }
    for client in clients.compactMap({ $0 }) {
      guard let stream = client.streams.first(where: { $0.handle == handle }) else { continue }
      stream.receive(event)
      client.hasNews = true
      return
    }
  }

  private func opened(
    _ handle: StreamHandle, _ session: SessionHandle, _ from: MemberAddress, _ name: [UInt8], isTwoWay: Bool,
    _ now: Instant
  ) {
    for client in clients.compactMap({ $0 }) where client.sessions.contains(where: { $0.handle == session }) {
      // The members on one node together may open no more streams than then remain free for this client.
      let ofNode = client.streams.count { !$0.isOwn && $0.member.node == from.node }
      guard ofNode < LocalLimits.streamsMax - client.streams.count else { break }
      client.streams.append(ClientStream(handle, session, from: from, name))
      client.hasNews = true
      // A stream of the local API has only one direction, so the direction to the opener is finished at once.
      if isTwoWay { try? node.sessions.finishStream(handle, now: now) }
      return
    }
    try? node.sessions.resetStream(handle, as: .tooMany, now: now)
  }
}
