import Primitives

/// An invitation that this node received.
struct IncomingInvitation {
  enum Phase: Equatable {
    /// The application has not answered.
    case asked
    /// The application has accepted. The invitation waits for the inviter's welcome, then for the handshake of the two
    /// members.
    case accepted(SessionHandle)
    /// The application was notified of the outcome. The answer to the inviter may still have to be sent.
    case over
  }

  let handle: InvitationHandle
  /// The number that the inviter's node gave to the invitation.
  let number: UInt32
  let from: MemberAddress
  let to: UInt32
  let origin: SessionOrigin
  let session: SessionID
  /// The number of members that the inviter states for its session.
  let memberCount: UInt8
  let cameAt: Instant
  var deadline: Instant
  var phase = Phase.asked
  /// The earliest time at which auto-join accepts the invitation without asking the application; nil if the application
  /// is asked.
  var acceptAt: Instant?
  var isWelcomed = false
  var answer: AnswerMessage?
  /// The time when the application accepted the invitation.
  var acceptedAt = Instant.never
  /// The time until which an ended invitation is still charged to its inviter.
  var keptUntil = Instant.zero
  /// The local session that the answer offers to merge with the inviter's session. The table of the local session is
  /// read only when the answer is sent.
  var offers: SessionHandle?
  var answerAt = Instant.never
}

/// The invitee's side of invitations.
extension Sessions {
  /// Accepts an invitation into an open session of the application. A session that never had another address becomes
  /// the inviter's session; any other session is merged with the inviter's session.
  public func accept(_ invitation: InvitationHandle, into handle: SessionHandle, now: Instant) throws(SessionError) {
    guard let index = incoming.firstIndex(where: { $0.handle == invitation && $0.phase == .asked }),
      let session = session(handle), session.address.endpoint == incoming[index].to
    else { throw .unknown }
    guard !session.isJoining else { throw .busy }
    let asked = incoming[index]
    if sessions.contains(where: {
      $0 !== session && $0.isOpen && $0.address == session.address && $0.table.contains(asked.session)
    }) {
      throw .alreadyMember
    }
    if mayJoin(session, asked) {
      for other in outgoing.indices where outgoing[other].session == handle && !outgoing[other].isEnding {
        end(&outgoing[other], .cancelled, telling: .cancelled, now)
      }
      session.isJoining = true
      incoming[index].answer = AnswerMessage(number: asked.number, answer: .accepted)
    } else if isCrossed(asked, session) {
      // The applications have invited each other. The invitation from the lower address decides for both, and the lower
      // address belongs to this session.
      incoming[index].answer = AnswerMessage(number: asked.number, answer: .crossed)
    } else if session.table.contains(asked.session) {
      incoming[index].answer = AnswerMessage(number: asked.number, answer: .accepted)
    } else {
      _ = try offer(session, asked)
      incoming[index].answer = AnswerMessage(number: asked.number, answer: .accepted)
      incoming[index].offers = handle
    }
    incoming[index].phase = .accepted(handle)
    incoming[index].acceptedAt = now
    incoming[index].deadline = incoming[index].deadline + SessionLimits.settleTime
    if session.isJoining && session.autoJoin.isOn {
      // An inviter that sends no welcome must not keep the session from joining another inviter.
      incoming[index].deadline = min(incoming[index].deadline, now + SessionLimits.welcomeTime)
    }
    incoming[index].answerAt = now
  }

  /// Declines an invitation. The explanation is plain text of at most `SessionLimits.explanationBytesMax` bytes.
  public func decline(_ invitation: InvitationHandle, explanation: [UInt8] = [], now: Instant) throws(SessionError) {
    guard explanation.count <= SessionLimits.explanationBytesMax, isPlainText(explanation.span.bytes) else {
      throw .invalid
    }
    guard let index = incoming.firstIndex(where: { $0.handle == invitation && $0.phase == .asked }) else {
      throw .unknown
    }
    let from = incoming[index].from, to = incoming[index].to
    end(&incoming[index], .declined(explanation: explanation), answering: .declined, now, explanation: explanation)
    for index in outgoing.indices
    where outgoing[index].isCrossed && outgoing[index].to == from && outgoing[index].from == to {
      end(&outgoing[index], .cancelled, telling: .cancelled, now)
    }
  }

  /// Whether the application's session can become the inviter's session. No other address was ever in that session, and
  /// the session has sent no invitation. The session's unanswered auto-join invitations are ignored if the inviter has
  /// members or a lower address.
  private func mayJoin(_ session: LocalSession, _ asked: IncomingInvitation) -> Bool {
    guard session.isAlone, !session.table.contains(asked.session) else { return false }
    let givesWay = asked.memberCount > 1 || asked.from < session.address
    return !outgoing.contains {
      $0.session == session.handle && !$0.isEnding && !(givesWay && $0.isGathering && $0.phase == .inviting)
    }
  }

  /// Whether the two applications have invited each other, and this session has the lower address.
  private func isCrossed(_ asked: IncomingInvitation, _ session: LocalSession) -> Bool {
    session.address < asked.from
      && outgoing.contains { $0.session == session.handle && $0.to == asked.from && $0.phase == .inviting }
  }

  func offer(_ session: LocalSession, _ asked: IncomingInvitation) throws(SessionError) -> AnswerMessage.Offer {
    guard let right = session.table.right(of: session.address), let own = session.table.origin(right.session) else {
      throw .notAllowed
    }
    guard own.rules.allowsMerge(with: asked.origin.rules) else { throw .incompatible }
    let text = SessionMerge.signedText(right.session, asked.session, session.address)
    return AnswerMessage.Offer(
      session: right.session, signature: cryptography.signature(text), entries: session.table.entries)
  }

  // MARK: Received messages

  func receiveInvite(_ invite: InviteMessage, from node: NodeID, _ now: Instant) {
    if let index = incoming.firstIndex(where: { $0.number == invite.number && $0.from.node == node }) {
      // An inviter that repeats an invitation may not have received the answer, so the answer is sent again.
      if incoming[index].answer != nil { incoming[index].answerAt = now }
      return
    }
    guard hasRoomForAnswer(to: node, now) else { return }
    var new = IncomingInvitation(
      handle: InvitationHandle(number: nextNumber()), number: invite.number,
      from: MemberAddress(node: node, endpoint: invite.from), to: invite.to, origin: invite.origin,
      session: invite.origin.id(cryptography), memberCount: invite.memberCount, cameAt: now,
      deadline: now + .seconds(UInt64(invite.seconds)))
    if !services.isOffered(invite.to) && !awaits(new.from, at: invite.to) {
      refuse(&new, .noService, now)
    } else if !mayMeet(invite.origin.rules, node) {
      refuse(&new, .incompatible, now)
    } else if isUnwelcoming(new, now) || !makePlace(for: new, now) {
      refuse(&new, .busy, now)
    } else if isGathered(new) {
      new.acceptAt = .zero
    }
    incoming.append(new)
    if new.phase == .over || new.acceptAt != nil { return }
    emit(
      .invited(
        Invitation(
          handle: new.handle, from: new.from, to: new.to, rules: invite.origin.rules,
          memberCount: Int(invite.memberCount), context: invite.context, deadline: new.deadline)))
  }

  /// Makes room for storing and answering one more invitation of a node. Returns false if there is no room. Another
  /// invitation can be evicted, even an ended invitation whose answer was not sent.
  private func hasRoomForAnswer(to node: NodeID, _ now: Instant) -> Bool {
    if incoming.count(where: { $0.from.node == node }) >= 2 * SessionLimits.invitationsPerNodeMax { return false }
    let places = FairPlaces(capacity: SessionLimits.invitationsMax, standTime: SessionLimits.invitationStandTime)
    switch places.place(for: holder(node), among: incoming.map { entry(of: $0, now) }, now: now) {
    case .free: return true
    case .instead(let index):
      end(&incoming[index], .busy, answering: nil, now)
      incoming.remove(at: index)
      return true
    case .none: return false
    }
  }

  /// Finds a slot for an invitation within the limit of its inviter's node and within that of the invited service. To
  /// free a slot, another invitation can be evicted and answered `.busy`. Returns false if there is no slot.
  private func makePlace(for new: IncomingInvitation, _ now: Instant) -> Bool {
    func isCounted(_ invitation: IncomingInvitation) -> Bool { invitation.phase != .over || invitation.keptUntil > now }
    func makePlace(_ capacity: Int, isRival: (IncomingInvitation) -> Bool) -> Bool {
      let rivals = incoming.indices.filter { isCounted(incoming[$0]) && isRival(incoming[$0]) }
      let places = FairPlaces(capacity: capacity, standTime: SessionLimits.invitationStandTime)
      switch places.place(for: holder(new.from.node), among: rivals.map { entry(of: incoming[$0], now) }, now: now) {
      case .free: return true
      case .instead(let index):
        end(&incoming[rivals[index]], .busy, answering: .busy, now)
        // The new invitation uses this slot, so the evicted one is no longer charged to its inviter.
        incoming[rivals[index]].keptUntil = now
        return true
      case .none: return false
      }
    }
    let ofNode = incoming.count { isCounted($0) && $0.from.node == new.from.node }
    if ofNode >= SessionLimits.invitationsPerNodeMax && !makePlace(ofNode, isRival: { $0.from.node == new.from.node }) {
      return false
    }
    return makePlace(SessionLimits.invitationsPerServiceMax) { $0.to == new.to }
  }

  /// The entry that represents an invitation in `FairPlaces`. An accepted invitation can be evicted only when
  /// `SessionLimits.welcomeTime` has passed since its acceptance.
  private func entry(of invitation: IncomingInvitation, _ now: Instant) -> FairPlaces.Entry {
    let isJoining: Bool
    if case .accepted = invitation.phase { isJoining = true } else { isJoining = false }
    return FairPlaces.Entry(
      holder: holder(invitation.from.node), since: invitation.cameAt,
      mayYield: !isJoining || now - invitation.acceptedAt >= SessionLimits.welcomeTime)
  }

  /// Refuses an invitation without asking the application.
  private func refuse(_ invitation: inout IncomingInvitation, _ answer: InvitationAnswer, _ now: Instant) {
    invitation.phase = .over
    invitation.answer = AnswerMessage(number: invitation.number, answer: answer)
    invitation.answerAt = now
    invitation.deadline = min(invitation.deadline, now + SessionLimits.settleTime)
  }

  func receiveEnd(_ message: EndMessage, from node: NodeID, _ now: Instant) {
    guard let index = incoming.firstIndex(where: { $0.number == message.number && $0.from.node == node }),
      incoming[index].phase != .over
    else { return }
    let outcome: InvitationOutcome =
      switch message.reason {
      case .cancelled: .cancelled
      case .timedOut: .timedOut
      case .full: .full
      case .incompatible: .incompatible
      }
    // A welcomed invitee is a member already, even without a connection before the inviter's deadline.
    if incoming[index].isWelcomed && message.reason == .timedOut { return }
    end(&incoming[index], outcome, answering: nil, now)
    removeEnded(now)
  }

  func receiveWelcome(
    _ welcome: WelcomeMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    guard let index = incoming.firstIndex(where: { $0.number == welcome.number && $0.from.node == node }),
      case .accepted(let handle) = incoming[index].phase, !incoming[index].isWelcomed,
      let session = session(handle)
    else { return }
    let invitation = incoming[index]
    var head = welcome
    head.entries = TableEntries(origins: [], merges: [], records: [])
    let base = session.isJoining ? SessionTable(invitation.origin, cryptography) : nil
    let purpose = TableInCheck.Purpose.welcome(invitation.handle, head, base: base)
    begin(purpose, welcome.entries, of: handle, from: node, &allowance, now)
  }

  /// Applies a welcome after its entries were verified.
  func welcomed(
    _ handle: InvitationHandle, _ welcome: WelcomeMessage, _ base: SessionTable?, _ verification: TableVerification,
    from node: NodeID, _ now: Instant
  ) {
    guard let index = incoming.firstIndex(where: { $0.handle == handle }),
      case .accepted(let into) = incoming[index].phase, !incoming[index].isWelcomed, let session = session(into),
      session.isJoining == (base != nil)
    else { return }
    let invitation = incoming[index]
    if let base {
      guard let admission = welcome.admission, join(session, invitation, admission, base, verification, now) else {
        return end(&incoming[index], .incompatible, answering: nil, now)
      }
    } else {
      scheduleDeltas(session, now)
      take(verification, into: session, now)
    }
    // The inviter is a pending member (not in the table yet) too, unless the welcome's table shows the inviter as
    // joined.
    let known = session.table
    let newcomers = ([invitation.from] + welcome.newcomers).filter { $0 != session.address && !known.isJoined($0) }
    session.pendingMembers = newcomers.prefix(SessionLimits.pendingMembersMax).map {
      LocalSession.PendingMember(address: $0, at: now + SessionLimits.askPause)
    }
    guard let index = incoming.firstIndex(where: { $0.handle == invitation.handle }) else { return }
    incoming[index].isWelcomed = true
  }

  /// Turns the application's session into the inviter's session. Returns false if the admission is not valid.
  private func join(
    _ session: LocalSession, _ invitation: IncomingInvitation, _ admission: WelcomeMessage.Admission,
    _ base: SessionTable, _ verification: TableVerification, _ now: Instant
  ) -> Bool {
    var table = base
    _ = table.take(verification)
    let told = table.sequence
    guard table.accept(admission, invitation.session, of: session.address, by: invitation.from, key: point) else {
      return false
    }
    session.isJoining = false
    session.table = table
    // The application may have left this session a moment ago. The departure of that time is obsolete.
    for former in sessions
    where !former.isOpen && former.address == session.address && former.table.contains(invitation.session) {
      former.phase = .over
    }
    emit(.identified(session.handle, table.id))
    tableChanged(session, now)
    for index in session.peers.indices {
      // Only records newer than the welcome are sent. The members get the other records from the inviter, or request
      // them.
      session.peers[index].tableSync.knows(upTo: told, now)
    }
    return true
  }

  func end(
    _ invitation: inout IncomingInvitation, _ outcome: InvitationOutcome, answering answer: InvitationAnswer?,
    _ now: Instant, explanation: [UInt8] = []
  ) {
    guard invitation.phase != .over else { return }
    if case .accepted(let handle) = invitation.phase, !invitation.isWelcomed, let session = session(handle) {
      session.isJoining = false
      session.autoJoin.check()
    }
    emit(.invitationEnded(invitation.handle, outcome))
    if outcome != .connected && invitation.acceptAt == nil {
      invitation.keptUntil = invitation.cameAt + SessionLimits.invitationStandTime
    }
    invitation.phase = .over
    invitation.answerAt = .never
    invitation.offers = nil
    invitation.deadline = min(invitation.deadline, now + SessionLimits.settleTime)
    if let answer {
      invitation.answer = AnswerMessage(number: invitation.number, answer: answer, explanation: explanation)
      invitation.answerAt = now
    }
  }
}
