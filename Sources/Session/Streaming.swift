import Channel
import Primitives

/// Streams of bytes between connected members. No byte is sent before the other end has granted it, each stream takes its
/// turn, and whoever does not read holds up only the stream that it does not read.
extension Sessions {
  // MARK: What applications ask for

  /// Opens a stream to a connected member: to write to it, and to read from it too if it is two-way. `name` is plain text of
  /// 1 to `SessionLimits.streamNameBytesMax` bytes. Throws `.full` when the two have `SessionLimits.streamsPerPairMax` of
  /// this end's streams, or the user its share of the node's streams (`SessionLimits.streams`).
  public func openStream(
    _ name: [UInt8], in handle: SessionHandle, to address: MemberAddress, isTwoWay: Bool = false, now: Instant
  ) throws(SessionError) -> StreamHandle {
    guard let session = session(handle) else { throw .unknown }
    guard !name.isEmpty, name.count <= SessionLimits.streamNameBytesMax, isPlainText(name.span.bytes) else {
      throw .invalid
    }
    guard let index = session.position(of: address), session.pairs[index].phase == .connected else {
      throw .unavailable
    }
    let last = session.pairs[index].streams.lastOwn
    let id = last == 0 ? firstStream(session.address, address) : last &+ 2
    guard session.pairs[index].streams.count(isOwn: true) < SessionLimits.streamsPerPairMax,
      mayHaveStream(session.owner), id > last
    else { throw .full }
    var stream = Stream(
      id: id, handle: StreamHandle(number: nextNumber()), isOwn: true, isTwoWay: isTwoWay, name: name, phase: .opening)
    if isTwoWay { stream.receiving.limit = limit(of: stream.receiving, session.owner) }
    session.pairs[index].streams.lastOwn = id
    session.pairs[index].streams.all.append(stream)
    return stream.handle
  }

  /// The application wants a stream that a member opened.
  public func acceptStream(_ handle: StreamHandle, now: Instant) throws(SessionError) {
    guard let place = place(of: handle), stream(place).phase == .asked else { throw .unknown }
    change(place) {
      $0.phase = .open
      $0.receiving.isWindowDue = true
    }
  }

  /// Takes bytes to send, and returns how many: less than all when there is no room (`.room` follows). A turn is kept
  /// until the other end has room, and what `streamRoom` promised.
  public func writeStream(_ handle: StreamHandle, _ bytes: [UInt8], now: Instant) throws(SessionError) -> Int {
    guard let place = place(of: handle) else { throw .unknown }
    guard stream(place).isWritable else { throw .invalid }
    let promised = stream(place).sending.promised
    let count = min(bytes.count, max(SessionLimits.streamTurnBytes - stream(place).sending.unsent.count, promised))
    change(place) {
      $0.sending.promised -= min(count, $0.sending.promised)
      if $0.sending.unsent.isEmpty { $0.sending.unsent.reserveCapacity(SessionLimits.streamTurnBytes) }
      $0.sending.unsent.append(copying: bytes.span.bytes.extracting(0..<count))
      if count < bytes.count { $0.sending.wantsRoom = true }
    }
    return count
  }

  /// No more bytes follow. The other end learns it after the last one.
  public func finishStream(_ handle: StreamHandle, now: Instant) throws(SessionError) {
    guard let place = place(of: handle) else { throw .unknown }
    guard stream(place).isWritable else { throw .invalid }
    change(place) {
      $0.sending.isFinished = true
      $0.sending.promised = 0
    }
  }

  /// Cuts a stream, in both directions, or refuses it. Bytes that were not sent are dropped.
  public func resetStream(
    _ handle: StreamHandle, as reason: StreamReset? = nil, now: Instant
  ) throws(SessionError) {
    guard let place = place(of: handle) else { throw .unknown }
    reset(place, reason ?? (stream(place).phase == .asked ? .refused : .cancelled))
  }

  /// How many bytes `writeStream` takes from now on, at least the `promised` ones that the application was told before and has not
  /// written; `.room` follows when it takes more. More than one turn is promised where the other end reads, to few streams at
  /// once: the application fills the next ones while the first ones are sealed and sent.
  public func streamRoom(_ handle: StreamHandle, promised: Int = 0) -> Int {
    guard let place = place(of: handle), stream(place).isWritable else { return 0 }
    var most = SessionLimits.streamTurnBytes
    if stream(place).sending.limit > SessionLimits.streamWindowFirst, mayBeAhead(handle, place.session.owner) {
      most = SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes
    }
    let room = max(most - stream(place).sending.unsent.count, promised)
    change(place) {
      $0.sending.promised = room
      if room < most { $0.sending.wantsRoom = true }
    }
    return room
  }

  /// Whether a stream may hold more than a turn, beside those that do.
  private func mayBeAhead(_ handle: StreamHandle, _ owner: SessionOwner) -> Bool {
    var all = 0, ofUser = 0
    for session in sessions {
      for pair in session.pairs.indices {
        for stream in session.pairs[pair].streams.all.indices
        where session.pairs[pair].streams.all[stream].sending.held > SessionLimits.streamTurnBytes
          && session.pairs[pair].streams.all[stream].handle != handle
        {
          all += 1
          if session.owner.user == owner.user { ofUser += 1 }
        }
      }
    }
    return SessionLimits.streamsAhead.mayTake(1, held: ofUser, taken: all, isFavoured: owner.isFavoured)
  }

  /// The application took so many bytes of a stream: the other end may send as many again.
  public func takenFromStream(_ handle: StreamHandle, _ byteCount: Int, now: Instant) {
    guard let place = place(of: handle) else { return }
    var receiving = stream(place).receiving
    receiving.taken = min(receiving.taken + UInt64(byteCount), receiving.received)
    if !receiving.isFinished && receiving.limit > 0 {
      let limit = limit(of: receiving, place.session.owner, except: place)
      receiving.isWindowDue = receiving.isWindowDue || limit >= receiving.limit + (limit - receiving.taken) / 4
    }
    change(place) { $0.receiving = receiving }
    endIfOver(place)
  }

  // MARK: What came

  func receiveOpen(_ open: OpenMessage, from node: NodeID, _ now: Instant) {
    guard let (session, index) = pair(open.number, node) else { return }
    connectAsTold(session, index, now)
    let address = session.pairs[index].address
    let count = session.pairs[index].streams.count(isOwn: false)
    // An end never has more than its streams waiting for an answer.
    guard open.stream > session.pairs[index].streams.lastTheirs,
      open.stream % 2 == firstStream(address, session.address) % 2, count < 2 * SessionLimits.streamsPerPairMax
    else { return beginAnew(session, index, now) }
    session.pairs[index].streams.lastTheirs = open.stream
    let isTwoWay = open.window > 0
    var stream = Stream(
      id: open.stream, handle: StreamHandle(number: nextNumber()), isOwn: false, isTwoWay: isTwoWay, name: open.name,
      phase: .asked)
    stream.sending.limit = open.window
    if count >= SessionLimits.streamsPerPairMax || streamCount(of: node) >= SessionLimits.streamsMax - streamCount
      || !mayHaveStream(session.owner)
    {
      stream.phase = .reset(.tooMany)
    } else {
      tell(.stream(stream.handle, .opened(session.handle, from: address, name: open.name, isTwoWay: isTwoWay)))
    }
    session.pairs[index].streams.all.append(stream)
  }

  func receiveStreamBytes(_ bytes: RawSpan, from node: NodeID) throws(SessionRefusal) {
    let address = try StreamBytes.address(bytes)
    guard let place = place(address.number, address.stream, node) else { return }
    let data = bytes.extracting(StreamBytes.headerBytes..<bytes.byteCount)
    let stream = stream(place)
    guard !stream.receiving.isFinished,
      UInt64(data.byteCount) <= stream.receiving.limit - stream.receiving.received
    else { return reset(place, .broken) }
    change(place) { $0.receiving.received += UInt64(data.byteCount) }
    tell(.stream(stream.handle, .bytes(data.copied)))
  }

  func receiveStreamEnd(_ message: StreamEndMessage, from node: NodeID) {
    guard let place = place(message.number, message.stream, node) else { return }
    switch message.what {
    case .finished(let byteCount):
      // An end is no byte; still an opener sends none before credit, because it could come before the stream itself.
      let isOwn = stream(place).isOwn, receiving = stream(place).receiving
      guard !receiving.isFinished, isOwn || receiving.limit > 0, receiving.received == byteCount else {
        return reset(place, .broken)
      }
      change(place) {
        $0.receiving.isFinished = true
        $0.receiving.isWindowDue = false
        // The reader confirms an end that has come. The acknowledgement may be behind what it sends when it leaves.
        if isOwn && !$0.isTwoWay && $0.sending.isEndSent { $0.sending.isEndDelivered = true }
      }
      if isOwn && !stream(place).isTwoWay { return endIfOver(place) }
      tell(.stream(stream(place).handle, .finished))
      endIfOver(place)
    case .reset(let reason):
      let stream = place.session.pairs[place.pair].streams.all.remove(at: place.stream)
      tell(.stream(stream.handle, .ended(.reset(reason))))
    }
  }

  /// A window of a stream. One that is not wider is late, or of somebody who wants to take back what it granted.
  func receiveStreamWindow(_ window: WindowMessage, from node: NodeID) {
    guard let place = place(window.number, window.stream, node) else { return }
    change(place) { $0.sending.limit = max($0.sending.limit, window.limit) }
  }

  /// The end of a stream's own direction has arrived.
  func streamEndDelivered(_ session: LocalSession, _ pair: Int, _ id: UInt32) {
    guard let position = session.pairs[pair].streams.position(of: id) else { return }
    let place = StreamPlace(session: session, pair: pair, stream: position)
    change(place) { $0.sending.isEndDelivered = true }
    endIfOver(place)
  }

  /// The two do not meet any more, or meet anew.
  func endStreams(_ session: LocalSession, _ index: Int) {
    tellStreamsEnded(session, index)
    session.pairs[index].streams.all = []
  }

  /// The application has left. The ends that it knows are sent to the member before the farewell.
  func keepOwedStreams(_ session: LocalSession, _ index: Int) {
    tellStreamsEnded(session, index)
    session.pairs[index].streams.all.removeAll { !$0.isOwed }
  }

  private func tellStreamsEnded(_ session: LocalSession, _ index: Int) {
    for stream in session.pairs[index].streams.all where !stream.isReset {
      tell(.stream(stream.handle, .ended(stream.isConfirming ? .finished : .lost)))
    }
  }

  /// A member does not get the ends that the application knew when it left: the farewell waits no longer.
  func forgetOwedStreams(_ session: LocalSession, _ index: Int) {
    if !session.isOpen { session.pairs[index].streams.all = [] }
  }

  // MARK: What is due

  func nextStreamOutput(of session: LocalSession, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    for step in session.pairs.indices {
      let index = (session.streamTurn + 1 + step) % session.pairs.count
      if session.pairs[index].streams.all.isEmpty { continue }
      if let output = nextStreamOutput(of: session, index, canSend) {
        session.streamTurn = index
        return output
      }
    }
    return nil
  }

  private func nextStreamOutput(
    of session: LocalSession, _ index: Int, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    let address = session.pairs[index].address, number = session.pairs[index].theirNumber
    let purpose = Flight.Purpose.member(session.handle, address, number: session.pairs[index].number)
    if let position = session.pairs[index].streams.all.firstIndex(where: { $0.hasNotice }) {
      guard canSend(address.node, .interactive, 96) else { return nil }
      let (kind, bytes) = notice(StreamPlace(session: session, pair: index, stream: position), number)
      return output(kind, bytes, to: address.node, purpose)
    }
    guard let (position, byteCount) = session.pairs[index].streams.next(),
      canSend(address.node, .bulk, StreamBytes.headerBytes + max(byteCount, 16))
    else { return nil }
    let place = StreamPlace(session: session, pair: index, stream: position)
    let bytes = session.pairs[index].streams.takeTurn(position, byteCount)
    let stream = stream(place)
    guard byteCount > 0 else {
      change(place) { $0.sending.isEndSent = true }
      let end = StreamEndMessage(number: number, stream: stream.id, .finished(byteCount: stream.sending.sent))
      return output(
        .streamEnd, end.bytes, to: address.node, lane: .bulk,
        .streamEnd(session.handle, address, number: session.pairs[index].number, stream.id))
    }
    if stream.sending.wantsRoom {
      change(place) { $0.sending.wantsRoom = false }
      tell(.stream(stream.handle, .room))
    }
    return output(
      .streamBytes, StreamBytes.bytes(number, stream.id, bytes), to: address.node, lane: .bulk, purpose)
  }

  /// The message in the interactive lane that a stream has due.
  private func notice(_ place: StreamPlace, _ number: UInt32) -> (SessionKind, [UInt8]) {
    let stream = stream(place)
    switch stream.phase {
    case .opening:
      change(place) { $0.phase = .open }
      let open = OpenMessage(
        number: number, stream: stream.id, window: stream.receiving.limit, name: stream.name)
      return (.streamOpen, open.bytes)
    case .reset(let reason):
      place.session.pairs[place.pair].streams.all.remove(at: place.stream)
      return (.streamEnd, StreamEndMessage(number: number, stream: stream.id, .reset(reason)).bytes)
    case .asked, .open:
      var receiving = stream.receiving
      receiving.limit = limit(of: receiving, place.session.owner, except: place)
      receiving.isWindowDue = false
      change(place) { $0.receiving = receiving }
      let window = WindowMessage(number: number, stream: stream.id, isPaused: false, limit: receiving.limit)
      return (.window, window.bytes)
    }
  }

  // MARK: Helpers

  /// Where a stream is at present.
  struct StreamPlace {
    let session: LocalSession
    let pair: Int
    let stream: Int
  }

  private func stream(_ place: StreamPlace) -> Stream { place.session.pairs[place.pair].streams.all[place.stream] }

  private func change(_ place: StreamPlace, _ body: (inout Stream) -> Void) {
    body(&place.session.pairs[place.pair].streams.all[place.stream])
  }

  /// A stream that the application knows.
  private func place(of handle: StreamHandle) -> StreamPlace? {
    for session in sessions where session.isOpen {
      for pair in session.pairs.indices {
        for stream in session.pairs[pair].streams.all.indices {
          guard session.pairs[pair].streams.all[stream].handle == handle,
            !session.pairs[pair].streams.all[stream].isReset
          else { continue }
          return StreamPlace(session: session, pair: pair, stream: stream)
        }
      }
    }
    return nil
  }

  /// The stream that a message is about. What is about none, or about one that was cut here, is late.
  private func place(_ number: UInt32, _ id: UInt32, _ node: NodeID) -> StreamPlace? {
    guard let (session, pair) = pair(number, node), let stream = session.pairs[pair].streams.position(of: id),
      !session.pairs[pair].streams.all[stream].isReset
    else { return nil }
    return StreamPlace(session: session, pair: pair, stream: stream)
  }

  private func endIfOver(_ place: StreamPlace) {
    guard stream(place).isOver else { return }
    let stream = place.session.pairs[place.pair].streams.all.remove(at: place.stream)
    // An application that has left was told before.
    if place.session.isOpen { tell(.stream(stream.handle, .ended(.finished))) }
  }

  private func reset(_ place: StreamPlace, _ reason: StreamReset) {
    let stream = stream(place)
    tell(.stream(stream.handle, .ended(.reset(reason))))
    if stream.phase == .opening {
      place.session.pairs[place.pair].streams.all.remove(at: place.stream)
    } else {
      change(place) {
        $0.phase = .reset(reason)
        $0.sending.unsent = []
        $0.sending.promised = 0
      }
    }
  }

  /// The lower address has the odd numbers.
  private func firstStream(_ opener: MemberAddress, _ other: MemberAddress) -> UInt32 { opener < other ? 1 : 2 }

  private var streamCount: Int {
    sessions.reduce(0) { $0 + $1.pairs.reduce(0) { $0 + $1.streams.all.count } }
  }

  private func streamCount(of node: NodeID) -> Int {
    sessions.reduce(0) { $0 + $1.pairs.reduce(0) { $0 + ($1.address.node == node ? $1.streams.all.count : 0) } }
  }

  /// Whether a user may have one more stream.
  private func mayHaveStream(_ owner: SessionOwner) -> Bool {
    let ofUser = sessions.reduce(0) {
      $0 + ($1.owner.user == owner.user ? $1.pairs.reduce(0) { $0 + $1.streams.all.count } : 0)
    }
    return SessionLimits.streams.mayTake(1, held: ofUser, taken: streamCount, isFavoured: owner.isFavoured)
  }

  /// How far a stream may be granted: each has a little for sure, and of the common pool a sixteenth of what is free, so
  /// that those who do not read leave room for all others. One whose application has read a first window has a quarter. A
  /// user's streams get no more than twice what is left.
  private func limit(
    of receiving: Stream.Receiving, _ owner: SessionOwner, except place: StreamPlace? = nil
  ) -> UInt64 {
    var all: UInt64 = 0, ofUser: UInt64 = 0
    for session in sessions {
      for pair in session.pairs.indices {
        for stream in session.pairs[pair].streams.all.indices {
          if let place, session === place.session, pair == place.pair, stream == place.stream { continue }
          let pooled = session.pairs[pair].streams.all[stream].pooled
          all += pooled
          if session.owner.user == owner.user { ofUser += pooled }
        }
      }
    }
    let isRead = receiving.taken >= SessionLimits.streamWindowFirst
    let mayHave = streamRule.bytesMax(held: Int(ofUser), taken: Int(all), isFavoured: owner.isFavoured)
    let share = min(
      (streamPool - min(streamPool, all)) / (isRead ? 4 : 16), UInt64(mayHave),
      (isRead ? SessionLimits.streamWindow : SessionLimits.streamWindowFirst) - SessionLimits.streamWindowSure)
    return max(receiving.limit, receiving.taken + SessionLimits.streamWindowSure + share)
  }
}
