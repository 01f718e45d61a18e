import Channel
import Primitives

/// Messages of applications to connected members. A message is sent only with credit from its receiver. Without credit
/// the message stays with its application, because the node queues no messages.
extension Sessions {
  /// Sends a message to all connected members, or to the members in `to`: either to all of these members or to no
  /// member. Throws `.full` if the credit for one of these members is insufficient; more credit is then requested, and
  /// `.room` follows. Also throws `.full` if the channel of one of these members is full. `.sent` reports the delivery
  /// result for each member. The host must send the outputs in the order of `nextOutput`.
  public func send(
    _ data: [UInt8], in handle: SessionHandle, to: [MemberAddress]? = nil, lane: Lane = .interactive, now: Instant,
    canSend: (NodeID, Lane, Int) -> Bool
  ) throws(SessionError) -> (id: SessionMessageID, outputs: [SessionOutput]) {
    guard let session = session(handle) else { throw .unknown }
    let indices = try receivers(session, data, to)
    let size = data.count + ApplicationMessage.headerBytes
    for index in indices {
      let peer = session.peers[index]
      guard peer.credit.maySend(data.count) else {
        session.peers[index].credit.wants(data.count)
        throw .full
      }
      guard peer.address.node == local || canSend(peer.address.node, lane, size) else { throw .full }
    }
    guard mayHaveUnsent(indices.count, session.owner) else { throw .full }
    session.unsentMessages += indices.count
    unsentMessages += indices.count
    let id = nextMessageID()
    var outputs: [SessionOutput] = []
    for index in indices {
      let peer = session.peers[index]
      session.peers[index].credit.sends(data.count)
      let output = output(
        .message, ApplicationMessage.bytes(peer.theirNumber, data), to: peer.address.node, lane: lane,
        .message(handle, peer.address, number: peer.number, id))
      if peer.address.node == local { loop.append(output) } else { outputs.append(output) }
    }
    drainLoop(now)
    return (id, outputs)
  }

  /// Sends a message once and unreliably, to all connected members or to those in `to`. The message uses no credit and
  /// has no delivery result. The outputs have no lane. Throws `.invalid` above `SessionLimits.unreliableBytesMax`
  /// bytes.
  public func sendUnreliably(
    _ data: [UInt8], in handle: SessionHandle, to: [MemberAddress]? = nil, now: Instant
  ) throws(SessionError) -> [SessionOutput] {
    guard let session = session(handle) else { throw .unknown }
    guard data.count <= SessionLimits.unreliableBytesMax else { throw .invalid }
    var outputs: [SessionOutput] = []
    for index in try receivers(session, data, to) {
      let peer = session.peers[index]
      let output = datagram(ApplicationMessage.bytes(peer.theirNumber, data), to: peer.address.node)
      if peer.address.node == local { loop.append(output) } else { outputs.append(output) }
    }
    drainLoop(now)
    return outputs
  }

  /// Notes that the application took a message of `byteCount` bytes from a member. The buffer space of the message can
  /// then be granted again.
  public func taken(_ byteCount: Int, of address: MemberAddress, in handle: SessionHandle, now: Instant) {
    guard let session = session(handle), let index = session.position(of: address) else {
      return takenOfGone(byteCount, address, handle)
    }
    creditRequests.roomAppeared()
    if session.peers[index].credit.takes(byteCount, share: share(session, index), now) {
      session.peers[index].windowAt = now
    }
  }

  private func receivers(
    _ session: LocalSession, _ data: [UInt8], _ to: [MemberAddress]?
  ) throws(SessionError) -> [Int] {
    guard data.count <= SessionLimits.messageBytesMax else { throw .invalid }
    guard let to else { return session.peers.indices.filter { session.peers[$0].phase == .connected } }
    var indices: [Int] = []
    for address in to {
      guard let index = session.position(of: address), session.peers[index].phase == .connected else {
        throw .unavailable
      }
      indices.append(index)
    }
    return indices
  }

  /// Whether an application may have `count` more messages without a delivery result.
  private func mayHaveUnsent(_ count: Int, _ owner: SessionOwner) -> Bool {
    mayTake(owner, of: SessionLimits.unsentMessages, taken: unsentMessages + count - 1) { other in
      sessions.reduce(other == owner.application ? count - 1 : 0) {
        $1.owner.application == other ? $0 + $1.unsentMessages : $0
      }
    }
  }

  /// Notes that a message to one member has a delivery result.
  func noteResult(_ handle: SessionHandle) {
    unsentMessages -= 1
    sessions.first { $0.handle == handle }?.unsentMessages -= 1
  }

  /// Delivers messages between two applications of this node.
  private func drainLoop(_ now: Instant) {
    while !loop.isEmpty {
      let output = loop.removeFirst()
      receiveOwn(output, over: output.lane, now)
      if output.lane != nil { completed(output.tag, isDelivered: true, now: now) }
    }
  }

  // MARK: Received messages

  func receiveMessage(
    _ bytes: RawSpan, from node: NodeID, over lane: Lane?, _ now: Instant
  ) throws(SessionMessageError) {
    let number = try ApplicationMessage.number(bytes)
    guard let (session, index) = peer(number, node) else { return }
    let data = bytes.extracting(ApplicationMessage.headerBytes..<bytes.byteCount)
    // A message that exceeds the credit shows that the other end violates the protocol, or counts credit differently.
    guard lane == nil || session.peers[index].credit.receives(data.byteCount, now) else {
      return beginAnew(session, index, now)
    }
    if lane == .interactive { connectByMessage(session, index, now) }
    let from = session.peers[index].address
    emit(
      lane == nil
        ? .datagram(session.handle, from: from, data.copied)
        : .message(session.handle, from: from, data.copied))
  }

  func receiveWindow(_ window: WindowMessage, from node: NodeID, _ now: Instant) {
    if window.stream != 0 { return receiveStreamWindow(window, from: node) }
    guard let (session, index) = peer(window.number, node) else { return }
    if session.peers[index].credit.isPausedThere != window.isPaused {
      session.peers[index].credit.isPausedThere = window.isPaused
      if session.peers[index].phase == .connected {
        emit(.member(session.handle, session.peers[index].address, state(of: session.peers[index])))
      }
    }
    guard session.peers[index].credit.isGranted(window.limit, now) else { return }
    emit(.room(session.handle, session.peers[index].address))
  }

  /// The peer whose handshake number a received message carries; nil if there is none. Only a node that has done the
  /// handshake since this member started knows the number.
  func peer(_ number: UInt32, _ node: NodeID) -> (session: LocalSession, index: Int)? {
    for session in sessions where session.isOpen {
      for index in session.peers.indices
      where session.peers[index].number == number && session.peers[index].address.node == node
        && session.peers[index].handshake.isNumberConfirmed
      {
        return (session, index)
      }
    }
    return nil
  }

  /// Marks and notifies the members whose messages the application has not read for `SessionLimits.pauseTime`.
  func notePauses(_ session: LocalSession, _ now: Instant) {
    for index in session.peers.indices where session.peers[index].credit.pauseAt <= now {
      session.peers[index].credit.isPausedHere = true
      if session.peers[index].phase == .connected { session.peers[index].windowAt = now }
    }
  }

  /// Reports all messages to a member that have no delivery result as failed. The caller then restarts the
  /// handshake with the member, or removes the member.
  func failMessages(_ session: LocalSession, to address: MemberAddress) {
    for id in undelivered.removeMessages(of: session.handle, to: address) {
      noteResult(session.handle)
      emit(.sent(id, to: address, isDelivered: false))
    }
  }
}
