import Primitives

/// An invitation that this node received.
struct IncomingInvitation {
  enum Phase: Equatable {
    /// The application has not answered.
    case asked
    /// It has, and waits for the inviter's welcome or, if it has come, for the meeting.
    case accepted(SessionHandle)
    /// The application knows how it ended; at most the answer is still to be sent.
    case over
  }

  let handle: InvitationHandle
  /// The inviter's number.
  let number: UInt32
  let from: MemberAddress
  let to: UInt32
  let origin: SessionOrigin
  let session: SessionID
  /// Members of the inviter's session, as it says.
  let memberCount: UInt8
  let cameAt: Instant
  var deadline: Instant
  var phase = Phase.asked
  /// It is accepted without a question: not before this time.
  var acceptAt: Instant?
  var isWelcomed = false
  var answer: AnswerMessage?
  /// When the application accepted it.
  var acceptedAt = Instant.never
  /// It is over, and counts for its inviter until then.
  var keptUntil = Instant.zero
  /// The answer says that this session becomes one with the inviter's. Its table is read when the answer goes.
  var offers: SessionHandle?
  var answerAt = Instant.never
}

/// The invitee's side.
extension Sessions {
  /// Accepts an invitation into a session that the application has open. If nobody else was ever in that session it
  /// becomes the inviter's; otherwise the two are merged.
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
      // The invitation of the lower address, this one's own, decides about both.
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
    if session.isJoining && session.gathers {
      // Whoever does not welcome it must not keep it from the others.
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

  /// The session of the application becomes the inviter's: it is alone, and has invited nobody. What it invited because it
  /// gathers, and nobody has accepted, it takes back for a session with members, or for a lower address.
  private func mayJoin(_ session: LocalSession, _ asked: IncomingInvitation) -> Bool {
    guard session.isAlone, !session.table.contains(asked.session) else { return false }
    let givesWay = asked.memberCount > 1 || asked.from < session.address
    return !outgoing.contains {
      $0.session == session.handle && !$0.isEnding && !(givesWay && $0.isGathering && $0.phase == .inviting)
    }
  }

  /// This node, with the lower address, has invited the inviter into the same session of its own.
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

  // MARK: What came

  func receiveInvite(_ invite: InviteMessage, from node: NodeID, _ now: Instant) {
    if let index = incoming.firstIndex(where: { $0.number == invite.number && $0.from.node == node }) {
      // The inviter did not hear the answer.
      if incoming[index].answer != nil { incoming[index].answerAt = now }
      return
    }
    guard hasRoomForAnswer(to: node, now) else { return }
    var new = IncomingInvitation(
      handle: InvitationHandle(number: nextNumber()), number: invite.number,
      from: MemberAddress(node: node, endpoint: invite.from), to: invite.to, origin: invite.origin,
      session: invite.origin.id(cryptography), memberCount: invite.memberCount, cameAt: now,
      deadline: now + .seconds(UInt64(invite.seconds)))
    if !services.contains(where: { $0.endpoint == invite.to }) && !awaits(new.from, at: invite.to) {
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
    tell(
      .invited(
        Invitation(
          handle: new.handle, from: new.from, to: new.to, rules: invite.origin.rules,
          memberCount: Int(invite.memberCount), context: invite.context, deadline: new.deadline)))
  }

  /// Whether one more invitation of a node can be answered. One that is over gives way to it: its answer may never go.
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

  /// Makes a place for an invitation to a service: of its inviter, and of all that are to the service. False when there is none.
  private func makePlace(for new: IncomingInvitation, _ now: Instant) -> Bool {
    func isCounted(_ invitation: IncomingInvitation) -> Bool { invitation.phase != .over || invitation.keptUntil > now }
    func makePlace(_ capacity: Int, isRival: (IncomingInvitation) -> Bool) -> Bool {
      let rivals = incoming.indices.filter { isCounted(incoming[$0]) && isRival(incoming[$0]) }
      let places = FairPlaces(capacity: capacity, standTime: SessionLimits.invitationStandTime)
      switch places.place(for: holder(new.from.node), among: rivals.map { entry(of: incoming[$0], now) }, now: now) {
      case .free: return true
      case .instead(let index):
        end(&incoming[rivals[index]], .busy, answering: .busy, now)
        // Its place is taken already.
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

  /// An invitation that was accepted and is not welcomed in time makes no progress.
  private func entry(of invitation: IncomingInvitation, _ now: Instant) -> FairPlaces.Entry {
    let isJoining: Bool
    if case .accepted = invitation.phase { isJoining = true } else { isJoining = false }
    return FairPlaces.Entry(
      holder: holder(invitation.from.node), since: invitation.cameAt,
      mayYield: !isJoining || now - invitation.acceptedAt >= SessionLimits.welcomeTime)
  }

  /// The application is not asked at all.
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
    // Who is welcomed is a member, and connects or not.
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

  /// A welcome's entries are verified.
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
      tellNews(session, now)
      take(verification, into: session, now)
    }
    // The inviter is among them where its table did not show it.
    let known = session.table
    let newcomers = ([invitation.from] + welcome.newcomers).filter { $0 != session.address && !known.isJoined($0) }
    session.newcomers = newcomers.prefix(SessionLimits.newcomersMax).map {
      LocalSession.Newcomer(address: $0, at: now + SessionLimits.askPause)
    }
    guard let index = incoming.firstIndex(where: { $0.handle == invitation.handle }) else { return }
    incoming[index].isWelcomed = true
  }

  /// The session of the application becomes the inviter's.
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
    // If it left this session a moment ago, that is over.
    for former in sessions
    where !former.isOpen && former.address == session.address && former.table.contains(invitation.session) {
      former.phase = .over
    }
    tell(.identified(session.handle, table.id))
    tableChanged(session, now)
    for index in session.pairs.indices {
      // They have the rest from the inviter, or ask for it.
      session.pairs[index].toldUpTo = told
      session.pairs[index].newsAt = now
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
      session.gatherAt = .zero
    }
    tell(.invitationEnded(invitation.handle, outcome))
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
