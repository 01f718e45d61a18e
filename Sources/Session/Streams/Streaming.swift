import Channel
import Primitives

/// Byte streams between connected members. A byte is sent only after the other end has granted credit for it, and
/// streams take turns. An application that does not read delays only the stream that remains unread.
extension Sessions {
  // MARK: Requests of applications

  /// Opens a stream to a connected member, for writing, and also for reading if `isTwoWay` is true. `name` is plain
  /// text of 1 to `SessionLimits.streamNameBytesMax` bytes. Throws `.full` if this end has
  /// `SessionLimits.streamsPerPairMax` streams to the member. Also throws `.full` if the user has its share of the
  /// node's streams (`SessionLimits.streams`).
  public func openStream(
    _ name: [UInt8], in handle: SessionHandle, to address: MemberAddress, isTwoWay: Bool = false, now: Instant
  ) throws(SessionError) -> StreamHandle {
    guard let session = session(handle) else { throw .unknown }
    guard !name.isEmpty, name.count <= SessionLimits.streamNameBytesMax, isPlainText(name.span.bytes) else {
      throw .invalid
    }
    guard let index = session.position(of: address), session.peers[index].phase == .connected else {
      throw .unavailable
    }
    let last = session.peers[index].streams.lastOwn
    let id = last == 0 ? firstStream(session.address, address) : last &+ 2
    guard session.peers[index].streams.count(isOwn: true) < SessionLimits.streamsPerPairMax,
      mayHaveStream(session.owner), id > last
    else { throw .full }
    var stream = Stream(
      id: id, handle: StreamHandle(number: nextNumber()), isOwn: true, isTwoWay: isTwoWay, name: name, phase: .opening)
    if isTwoWay { stream.receiving.limit = limit(of: stream.receiving, session.owner) }
    session.peers[index].streams.lastOwn = id
    session.peers[index].streams.all.append(stream)
    return stream.handle
  }

  /// Accepts a stream that a member opened.
  public func acceptStream(_ handle: StreamHandle, now: Instant) throws(SessionError) {
    guard let index = index(of: handle), stream(index).phase == .asked else { throw .unknown }
    change(index) {
      $0.phase = .open
      $0.receiving.isWindowDue = true
    }
  }

  /// Accepts bytes to send, and returns the number of accepted bytes. If not all fit the stream's buffer, fewer are
  /// accepted and `.room` follows. The buffer has one turn of bytes, and more if `streamRoom` promised more.
  public func writeStream(_ handle: StreamHandle, _ bytes: [UInt8], now: Instant) throws(SessionError) -> Int {
    guard let index = index(of: handle) else { throw .unknown }
    guard stream(index).isWritable else { throw .invalid }
    let promised = stream(index).sending.promised
    let count = min(bytes.count, max(SessionLimits.streamTurnBytes - stream(index).sending.unsent.count, promised))
    change(index) {
      $0.sending.promised -= min(count, $0.sending.promised)
      if $0.sending.unsent.isEmpty { $0.sending.unsent.reserveCapacity(SessionLimits.streamTurnBytes) }
      $0.sending.unsent.append(copying: bytes.span.bytes.extracting(0..<count))
      if count < bytes.count { $0.sending.wantsRoom = true }
    }
    return count
  }

  /// Finishes this end's writing direction. The other end of the stream is notified after the last byte.
  public func finishStream(_ handle: StreamHandle, now: Instant) throws(SessionError) {
    guard let index = index(of: handle) else { throw .unknown }
    guard stream(index).isWritable else { throw .invalid }
    change(index) {
      $0.sending.isFinished = true
      $0.sending.promised = 0
    }
  }

  /// Resets a stream in both directions, or refuses a stream that was not accepted yet. Unsent bytes are dropped.
  public func resetStream(
    _ handle: StreamHandle, as reason: StreamReset? = nil, now: Instant
  ) throws(SessionError) {
    guard let index = index(of: handle) else { throw .unknown }
    reset(index, reason ?? (stream(index).phase == .asked ? .refused : .cancelled))
  }

  /// The number of bytes that `writeStream` accepts from now on. The number is at least `promised`: the bytes that an
  /// earlier call permitted and the application has not written. `.room` follows when `writeStream` accepts more. If
  /// the other end reads, a few streams get more than one turn. The applications of these streams write the next turns
  /// while the first turns are sealed and sent.
  public func streamRoom(_ handle: StreamHandle, promised: Int = 0) -> Int {
    guard let index = index(of: handle), stream(index).isWritable else { return 0 }
    var most = SessionLimits.streamTurnBytes
    if stream(index).sending.limit > SessionLimits.streamWindowFirst, mayBeAhead(handle, index.session.owner) {
      most = SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes
    }
    let room = max(most - stream(index).sending.unsent.count, promised)
    change(index) {
      $0.sending.promised = room
      if room < most { $0.sending.wantsRoom = true }
    }
    return room
  }

  /// Whether a stream may buffer more than one turn, given the other streams with more than one turn.
  private func mayBeAhead(_ handle: StreamHandle, _ owner: SessionOwner) -> Bool {
    var all = 0, ofUser = 0
    for session in sessions {
      for peer in session.peers.indices {
        for stream in session.peers[peer].streams.all.indices
        where session.peers[peer].streams.all[stream].sending.held > SessionLimits.streamTurnBytes
          && session.peers[peer].streams.all[stream].handle != handle
        {
          all += 1
          if session.owner.user == owner.user { ofUser += 1 }
        }
      }
    }
    return SessionLimits.streamsAhead.mayTake(1, held: ofUser, taken: all, isFavoured: owner.isFavoured)
  }

  /// Notes that the application took bytes of a stream. A wider window may be due, so that the other end can send more.
  public func takenFromStream(_ handle: StreamHandle, _ byteCount: Int, now: Instant) {
    guard let index = index(of: handle) else { return }
    var receiving = stream(index).receiving
    receiving.taken = min(receiving.taken + UInt64(byteCount), receiving.received)
    if !receiving.isFinished && receiving.limit > 0 {
      let limit = limit(of: receiving, index.session.owner, except: index)
      receiving.isWindowDue = receiving.isWindowDue || limit >= receiving.limit + (limit - receiving.taken) / 4
    }
    change(index) { $0.receiving = receiving }
    endIfOver(index)
  }

  // MARK: Received messages

  func receiveOpen(_ open: OpenMessage, from node: NodeID, _ now: Instant) {
    guard let (session, index) = peer(open.number, node) else { return }
    connectByMessage(session, index, now)
    let address = session.peers[index].address
    let count = session.peers[index].streams.count(isOwn: false)
    // A correct peer has at most `streamsPerPairMax` accepted streams, and as many streams whose refusal has not
    // reached it yet.
    guard open.stream > session.peers[index].streams.lastTheirs,
      open.stream % 2 == firstStream(address, session.address) % 2, count < 2 * SessionLimits.streamsPerPairMax
    else { return beginAnew(session, index, now) }
    session.peers[index].streams.lastTheirs = open.stream
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
      emit(.stream(stream.handle, .opened(session.handle, from: address, name: open.name, isTwoWay: isTwoWay)))
    }
    session.peers[index].streams.all.append(stream)
  }

  func receiveStreamBytes(_ bytes: RawSpan, from node: NodeID) throws(SessionMessageError) {
    let address = try StreamBytes.address(bytes)
    guard let index = index(address.number, address.stream, node) else { return }
    let data = bytes.extracting(StreamBytes.headerBytes..<bytes.byteCount)
    let stream = stream(index)
    guard !stream.receiving.isFinished,
      UInt64(data.byteCount) <= stream.receiving.limit - stream.receiving.received
    else { return reset(index, .broken) }
    change(index) { $0.receiving.received += UInt64(data.byteCount) }
    emit(.stream(stream.handle, .bytes(data.copied)))
  }

  func receiveStreamEnd(_ message: StreamEndMessage, from node: NodeID) {
    guard let index = index(message.number, message.stream, node) else { return }
    switch message.what {
    case .finished(let byteCount):
      // A stream end needs no credit. But an opener must not send an end before it has credit, because the end could
      // arrive before the open message.
      let isOwn = stream(index).isOwn, receiving = stream(index).receiving
      guard !receiving.isFinished, isOwn || receiving.limit > 0, receiving.received == byteCount else {
        return reset(index, .broken)
      }
      change(index) {
        $0.receiving.isFinished = true
        $0.receiving.isWindowDue = false
        // The reader's end confirms that the writer's end has arrived. When the reader leaves, the lane's own
        // acknowledgement of the writer's end may arrive after the reader's last messages.
        if isOwn && !$0.isTwoWay && $0.sending.isEndSent { $0.sending.isEndDelivered = true }
      }
      if isOwn && !stream(index).isTwoWay { return endIfOver(index) }
      emit(.stream(stream(index).handle, .finished))
      endIfOver(index)
    case .reset(let reason):
      let stream = index.session.peers[index.peer].streams.all.remove(at: index.stream)
      emit(.stream(stream.handle, .ended(.reset(reason))))
    }
  }

  /// Handles a window of a stream. A window that is not wider than the last is ignored: it is late, or tries to
  /// withdraw credit.
  func receiveStreamWindow(_ window: WindowMessage, from node: NodeID) {
    guard let index = index(window.number, window.stream, node) else { return }
    change(index) { $0.sending.limit = max($0.sending.limit, window.limit) }
  }

  /// Notes that the end of this end's direction was delivered.
  func streamEndDelivered(_ session: LocalSession, _ peer: Int, _ id: UInt32) {
    guard let position = session.peers[peer].streams.position(of: id) else { return }
    let index = StreamIndex(session: session, peer: peer, stream: position)
    change(index) { $0.sending.isEndDelivered = true }
    endIfOver(index)
  }

  /// Ends all streams with a member that is disconnected or restarts the handshake.
  func endStreams(_ session: LocalSession, _ index: Int) {
    reportStreamsEnded(session, index)
    session.peers[index].streams.all = []
  }

  /// Ends the streams of an application that has left. Stream ends that the application knows are still sent to the
  /// member, before the departure notice.
  func keepOwedStreams(_ session: LocalSession, _ index: Int) {
    reportStreamsEnded(session, index)
    session.peers[index].streams.all.removeAll { !$0.isOwed }
  }

  private func reportStreamsEnded(_ session: LocalSession, _ index: Int) {
    for stream in session.peers[index].streams.all where !stream.isReset {
      emit(.stream(stream.handle, .ended(stream.isConfirming ? .finished : .lost)))
    }
  }

  /// After the application has left: drops the stream ends that the member can no longer receive. The departure notice
  /// then no longer waits for these stream ends.
  func forgetOwedStreams(_ session: LocalSession, _ index: Int) {
    if !session.isOpen { session.peers[index].streams.all = [] }
  }

  // MARK: Outputs

  func nextStreamOutput(of session: LocalSession, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    for step in session.peers.indices {
      let index = (session.streamTurn + 1 + step) % session.peers.count
      if session.peers[index].streams.all.isEmpty { continue }
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
    let address = session.peers[index].address, number = session.peers[index].theirNumber
    let purpose = UndeliveredMessages.Purpose.member(session.handle, address, number: session.peers[index].number)
    if let position = session.peers[index].streams.all.firstIndex(where: { $0.hasNotice }) {
      guard canSend(address.node, .interactive, 96) else { return nil }
      let (kind, bytes) = notice(StreamIndex(session: session, peer: index, stream: position), number)
      return output(kind, bytes, to: address.node, purpose)
    }
    guard let (position, byteCount) = session.peers[index].streams.next(),
      canSend(address.node, .bulk, StreamBytes.headerBytes + max(byteCount, 16))
    else { return nil }
    let streamIndex = StreamIndex(session: session, peer: index, stream: position)
    let bytes = session.peers[index].streams.takeTurn(position, byteCount)
    let stream = stream(streamIndex)
    guard byteCount > 0 else {
      change(streamIndex) { $0.sending.isEndSent = true }
      let end = StreamEndMessage(number: number, stream: stream.id, .finished(byteCount: stream.sending.sent))
      return output(
        .streamEnd, end.bytes, to: address.node, lane: .bulk,
        .streamEnd(session.handle, address, number: session.peers[index].number, stream.id))
    }
    if stream.sending.wantsRoom {
      change(streamIndex) { $0.sending.wantsRoom = false }
      emit(.stream(stream.handle, .room))
    }
    return output(
      .streamBytes, StreamBytes.bytes(number, stream.id, bytes), to: address.node, lane: .bulk, purpose)
  }

  /// The message of a stream that is due in the interactive lane.
  private func notice(_ index: StreamIndex, _ number: UInt32) -> (SessionKind, [UInt8]) {
    let stream = stream(index)
    switch stream.phase {
    case .opening:
      change(index) { $0.phase = .open }
      let open = OpenMessage(
        number: number, stream: stream.id, window: stream.receiving.limit, name: stream.name)
      return (.streamOpen, open.bytes)
    case .reset(let reason):
      index.session.peers[index.peer].streams.all.remove(at: index.stream)
      return (.streamEnd, StreamEndMessage(number: number, stream: stream.id, .reset(reason)).bytes)
    case .asked, .open:
      var receiving = stream.receiving
      receiving.limit = limit(of: receiving, index.session.owner, except: index)
      receiving.isWindowDue = false
      change(index) { $0.receiving = receiving }
      let window = WindowMessage(number: number, stream: stream.id, isPaused: false, limit: receiving.limit)
      return (.window, window.bytes)
    }
  }

  // MARK: Helpers

  /// The current position of a stream.
  struct StreamIndex {
    let session: LocalSession
    let peer: Int
    let stream: Int
  }

  private func stream(_ index: StreamIndex) -> Stream { index.session.peers[index.peer].streams.all[index.stream] }

  private func change(_ index: StreamIndex, _ body: (inout Stream) -> Void) {
    body(&index.session.peers[index.peer].streams.all[index.stream])
  }

  /// The position of a stream that the application knows; nil if there is none.
  private func index(of handle: StreamHandle) -> StreamIndex? {
    for session in sessions where session.isOpen {
      for peer in session.peers.indices {
        for stream in session.peers[peer].streams.all.indices {
          guard session.peers[peer].streams.all[stream].handle == handle,
            !session.peers[peer].streams.all[stream].isReset
          else { continue }
          return StreamIndex(session: session, peer: peer, stream: stream)
        }
      }
    }
    return nil
  }

  /// The position of the stream that a received message names. Nil if the stream is unknown or was reset here: in these
  /// cases the message is late and is ignored.
  private func index(_ number: UInt32, _ id: UInt32, _ node: NodeID) -> StreamIndex? {
    guard let (session, peer) = peer(number, node), let stream = session.peers[peer].streams.position(of: id),
      !session.peers[peer].streams.all[stream].isReset
    else { return nil }
    return StreamIndex(session: session, peer: peer, stream: stream)
  }

  private func endIfOver(_ index: StreamIndex) {
    guard stream(index).isOver else { return }
    let stream = index.session.peers[index.peer].streams.all.remove(at: index.stream)
    // An application that has left was notified of the end at the time of leaving.
    if index.session.isOpen { emit(.stream(stream.handle, .ended(.finished))) }
  }

  private func reset(_ index: StreamIndex, _ reason: StreamReset) {
    let stream = stream(index)
    emit(.stream(stream.handle, .ended(.reset(reason))))
    if stream.phase == .opening {
      index.session.peers[index.peer].streams.all.remove(at: index.stream)
    } else {
      change(index) {
        $0.phase = .reset(reason)
        $0.sending.unsent = []
        $0.sending.promised = 0
      }
    }
  }

  /// The first stream number of an opener. The end with the lower address uses odd numbers, the other end even ones.
  private func firstStream(_ opener: MemberAddress, _ other: MemberAddress) -> UInt32 { opener < other ? 1 : 2 }

  private var streamCount: Int {
    sessions.reduce(0) { $0 + $1.peers.reduce(0) { $0 + $1.streams.all.count } }
  }

  private func streamCount(of node: NodeID) -> Int {
    sessions.reduce(0) { $0 + $1.peers.reduce(0) { $0 + ($1.address.node == node ? $1.streams.all.count : 0) } }
  }

  /// Whether a user may have another stream.
  private func mayHaveStream(_ owner: SessionOwner) -> Bool {
    let ofUser = sessions.reduce(0) {
      $0 + ($1.owner.user == owner.user ? $1.peers.reduce(0) { $0 + $1.streams.all.count } : 0)
    }
    return SessionLimits.streams.mayTake(1, held: ofUser, taken: streamCount, isFavoured: owner.isFavoured)
  }

  /// The limit to grant on a stream, as a total of bytes. Each stream has a guaranteed window, and a sixteenth of the
  /// free part of the common pool, so that unread streams leave room for others. The sixteenth becomes a quarter after
  /// the application has read `streamWindowFirst` bytes of the stream. A user's streams get at most twice what is left
  /// of the pool.
  private func limit(
    of receiving: Stream.Receiving, _ owner: SessionOwner, except index: StreamIndex? = nil
  ) -> UInt64 {
    var all: UInt64 = 0, ofUser: UInt64 = 0
    for session in sessions {
      for peer in session.peers.indices {
        for stream in session.peers[peer].streams.all.indices {
          if let index, session === index.session, peer == index.peer, stream == index.stream { continue }
          let pooled = session.peers[peer].streams.all[stream].pooled
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
