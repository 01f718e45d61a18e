import Channel
import Primitives

/// Received messages, and the delivery results of sent messages.
extension Sessions {
  /// Handles a message of another node's sessions, for which `mayReceive` returned true. Throws if the message is
  /// malformed. A valid message that refers to nothing known here is ignored. Checks at most as many signatures as
  /// `allowance` permits; `check` continues with the remaining signatures.
  public func receive(
    _ kind: UInt8, _ bytes: RawSpan, from node: NodeID, over lane: Lane? = .interactive,
    allowance: inout CheckAllowance, now: Instant
  ) throws(SessionMessageError) {
    // Decoding and sorting many records takes as long as checking signatures, so that work is charged too.
    if Self.mayHaveRecords(kind, byteCount: bytes.byteCount) {
      allowance.spend(1 + bytes.byteCount / SessionLimits.tableBytesPerCheck)
    }
    guard let kind = SessionKind(rawValue: kind), lane != nil || kind == .message else { throw .unknownCode }
    switch kind {
    case .invite: receiveInvite(try InviteMessage(bytes), from: node, now)
    case .answer: receiveAnswer(try AnswerMessage(bytes, cryptography), from: node, &allowance, now)
    case .welcome: receiveWelcome(try WelcomeMessage(bytes, cryptography), from: node, &allowance, now)
    case .end: receiveEnd(try EndMessage(bytes), from: node, now)
    case .meet: receiveMeet(try MeetMessage(bytes), from: node, now)
    case .table: receiveTable(try TableMessage(bytes, cryptography), from: node, &allowance, now)
    case .message: try receiveMessage(bytes, from: node, over: lane, now)
    case .window: receiveWindow(try WindowMessage(bytes), from: node, now)
    case .streamOpen: receiveOpen(try OpenMessage(bytes), from: node, now)
    case .streamBytes: try receiveStreamBytes(bytes, from: node)
    case .streamEnd: receiveStreamEnd(try StreamEndMessage(bytes), from: node)
    case .need: receiveNeed(try NeedMessage(bytes), from: node, now)
    }
  }

  /// Handles a message of this node to itself. The records in a message of this node to itself were verified before, so
  /// their check is complete at once.
  func receiveOwn(_ output: SessionOutput, over lane: Lane?, _ now: Instant) {
    var allowance = CheckAllowance(holder: FairShare.ownHolder, checks: .max)
    try? receive(
      output.kind.rawValue, output.bytes.span.bytes, from: local, over: lane, allowance: &allowance, now: now)
  }

  /// Reports the delivery result of an output that has a lane. The result can be reported at once or later.
  public func completed(_ tag: UInt64, isDelivered: Bool, now: Instant) {
    guard let purpose = undelivered.remove(tag) else { return }
    switch purpose {
    case .meet(let handle, let address, let number, let echo):
      guard let (session, index) = peer(handle, address, number) else { return }
      guard isDelivered else { return beginAnew(session, index, now) }
      if echo != 0 && echo == session.peers[index].theirNumber {
        session.peers[index].handshake.confirmTheirNumber()
        connectIfMet(session, index, now)
        if session.peers[index].phase == .connected { session.peers[index].handshake.cancelMessage() }
      }
    case .member(let handle, let address, let number):
      guard !isDelivered, let (session, index) = peer(handle, address, number) else { return }
      // The restarted handshake synchronises the tables and windows of the two members again.
      beginAnew(session, index, now)
    case .farewell(let handle, let address):
      guard let session = sessions.first(where: { $0.handle == handle }),
        let index = session.position(of: address)
      else { return }
      if isDelivered {
        session.peers.remove(at: index)
        if session.peers.isEmpty { session.phase = .over }
      } else {
        session.peers[index].tableSync.postponeDelta(to: now + .seconds(1))
      }
    case .message(let handle, let address, let number, let message):
      noteResult(handle)
      emit(.sent(message, to: address, isDelivered: isDelivered))
      guard !isDelivered, let (session, index) = peer(handle, address, number) else { return }
      beginAnew(session, index, now)
    case .streamEnd(let handle, let address, let number, let stream):
      // The stream end may belong to an application that has left.
      guard let session = sessions.first(where: { $0.handle == handle && $0.phase != .over }),
        let index = session.position(of: address), session.peers[index].number == number
      else { return }
      if isDelivered {
        streamEndDelivered(session, index, stream)
      } else if session.isOpen {
        beginAnew(session, index, now)
      } else {
        forgetOwedStreams(session, index)
      }
    case .invitation(let handle):
      if !isDelivered { outgoing.repeatMessage(handle, at: now + .seconds(1)) }
    case .answer(let handle):
      if !isDelivered { incoming.repeatAnswer(handle, now) }
    case .notice: break
    }
  }

  /// The peer of `address`, if its handshake still has this number; nil if the handshake has been restarted since.
  private func peer(
    _ handle: SessionHandle, _ address: MemberAddress, _ number: UInt32
  ) -> (session: LocalSession, index: Int)? {
    guard let session = session(handle), let index = session.position(of: address),
      session.peers[index].number == number
    else { return nil }
    return (session, index)
  }
}
