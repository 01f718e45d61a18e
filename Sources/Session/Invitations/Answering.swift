import Primitives

/// The invitee's side of invitations.
extension Sessions {
  /// Accepts an invitation into an open session of the application. A session that never had another address becomes
  /// the inviter's session; any other session is merged with the inviter's session.
  public func accept(_ invitation: InvitationHandle, into handle: SessionHandle, now: Instant) throws(SessionError) {
    guard let asked = incoming.asked(invitation), let session = session(handle), session.address.endpoint == asked.to
    else { throw .unknown }
    guard !session.isJoining else { throw .busy }
    if sessions.contains(where: {
      $0 !== session && $0.isOpen && $0.address == session.address && $0.table.contains(asked.session)
    }) {
      throw .alreadyMember
    }
    var answer = InvitationAnswer.accepted
    var offers: MergeOffer?
    switch acceptance(of: asked, into: session) {
    case .joins:
      endOutgoing(.cancelled, telling: .cancelled, now) { $0.session == handle }
      session.isJoining = true
    case .crossed: answer = .crossed
    case .offers:
      offers = try offer(session, asked)
      offerAllowedAt = now + SessionLimits.offerPause
    case .isMerged: break
    }
    // An inviter that sends no welcome must not keep the session from joining another inviter.
    let waits = session.isJoining && session.autoJoin.isOn ? SessionLimits.welcomeTime : nil
    incoming.accept(invitation, into: handle, answer, offers: offers, waits: waits, now)
  }

  /// The effect of an accepted invitation on the application's session.
  private enum Acceptance {
    /// The session becomes the inviter's session.
    case joins
    /// The applications have invited each other. The invitation from the lower address decides for both, and the lower
    /// address belongs to this session.
    case crossed
    /// The session is to be merged with the inviter's session, which costs a signature.
    case offers
    /// The session contains the inviter's session already.
    case isMerged
  }

  private func acceptance(of asked: IncomingInvitation, into session: LocalSession) -> Acceptance {
    if mayJoin(session, asked) { return .joins }
    if isCrossed(asked, session) { return .crossed }
    return session.table.contains(asked.session) ? .isMerged : .offers
  }

  /// Whether auto-join accepts the invitation later, because the acceptance costs a signature and another one was made
  /// a moment ago.
  func mustWaitForOffer(_ asked: IncomingInvitation, into session: LocalSession, _ now: Instant) -> Bool {
    offerAllowedAt > now && acceptance(of: asked, into: session) == .offers
  }

  /// Declines an invitation. The explanation is plain text of at most `SessionLimits.explanationBytesMax` bytes.
  public func decline(_ invitation: InvitationHandle, explanation: [UInt8] = [], now: Instant) throws(SessionError) {
    guard explanation.count <= SessionLimits.explanationBytesMax, isPlainText(explanation.span.bytes) else {
      throw .invalid
    }
    guard let asked = incoming.asked(invitation) else { throw .unknown }
    end(invitation, .declined(explanation: explanation), answering: .declined, now, explanation: explanation)
    endOutgoing(.cancelled, telling: .cancelled, now) { $0.isCrossed && $0.to == asked.from && $0.from == asked.to }
  }

  /// Whether the application can leave its own session and join the inviter's with a ticket, without a merge. No other
  /// address was ever in that session, and the session has sent no invitation. The session's unanswered auto-join
  /// invitations are ignored if the inviter has members or a lower address.
  private func mayJoin(_ session: LocalSession, _ asked: IncomingInvitation) -> Bool {
    guard session.isAlone, !session.table.contains(asked.session) else { return false }
    let givesWay = asked.memberCount > 1 || asked.from < session.address
    return !outgoing.all.contains {
      $0.session == session.handle && !$0.isEnding && !(givesWay && $0.isGathering && $0.phase == .inviting)
    }
  }

  /// Whether the two applications have invited each other, and this session has the lower address.
  private func isCrossed(_ asked: IncomingInvitation, _ session: LocalSession) -> Bool {
    session.address < asked.from
      && outgoing.all.contains { $0.session == session.handle && $0.to == asked.from && $0.phase == .inviting }
  }

  private func offer(_ session: LocalSession, _ asked: IncomingInvitation) throws(SessionError) -> MergeOffer {
    guard let right = session.table.right(of: session.address), let own = session.table.origin(right.session) else {
      throw .notAllowed
    }
    guard own.rules.allowsMerge(with: asked.origin.rules) else { throw .incompatible }
    let text = SessionMerge.signedText(right.session, asked.session, session.address)
    return MergeOffer(handle: session.handle, session: right.session, signature: cryptography.signature(text))
  }

  /// The offer of an answer. If the application's session has become another session since the offer was signed, the
  /// offer is signed again, for the other session. Nil if that session offers no merge.
  func renewed(_ offer: MergeOffer, of session: LocalSession, to asked: IncomingInvitation) -> MergeOffer? {
    if session.table.contains(offer.session) { return offer }
    let other = try? self.offer(session, asked)
    incoming.renewOffer(asked.handle, other)
    return other
  }

  // MARK: Received messages

  func receiveInvite(_ invite: InviteMessage, from node: NodeID, _ now: Instant) {
    if let known = incoming.invitation(invite.number, of: node) {
      // An inviter that repeats an invitation may not have received the answer, so the answer is sent again.
      return incoming.repeatAnswer(known.handle, now)
    }
    guard hasRoomForAnswer(to: node, now) else { return }
    var new = IncomingInvitation(
      InvitationHandle(number: nextNumber()), invite, from: node, session: invite.origin.id(cryptography), now: now)
    if !services.isOffered(invite.to) && !awaits(new.from, at: invite.to) {
      new.refuse(.noService, now)
    } else if !mayMeet(invite.origin.rules, node) {
      new.refuse(.incompatible, now)
    } else if isUnwelcoming(new, now) || !findSlot(for: new, now) {
      new.refuse(.busy, now)
    } else if isGathered(new) {
      new.gather()
    }
    incoming.add(new)
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
    let (isThere, victim) = incoming.roomForAnswer(to: node, holder: { nodes.holder($0) }, now)
    if let victim {
      end(victim, .busy, answering: nil, now)
      incoming.remove(victim)
    }
    return isThere
  }

  /// Finds a slot for an invitation within the limit of its inviter's node and within that of the invited service. To
  /// free a slot, another invitation can be evicted and answered `.busy`. Returns false if there is no slot.
  private func findSlot(for new: IncomingInvitation, _ now: Instant) -> Bool {
    func findSlot(_ capacity: Int, isRival: (IncomingInvitation) -> Bool) -> Bool {
      let (isThere, victim) = incoming.slot(
        for: new, capacity, holder: { nodes.holder($0) }, now, isRival: isRival)
      if let victim {
        end(victim, .busy, answering: .busy, now)
        incoming.endCharge(victim, now)
      }
      return isThere
    }
    let ofNode = incoming.chargedCount(of: new.from.node, now)
    if ofNode >= SessionLimits.invitationsPerNodeMax && !findSlot(ofNode, isRival: { $0.from.node == new.from.node }) {
      return false
    }
    return findSlot(SessionLimits.invitationsPerServiceMax) { $0.to == new.to }
  }

  func receiveEnd(_ message: EndMessage, from node: NodeID, _ now: Instant) {
    guard let invitation = incoming.invitation(message.number, of: node), invitation.phase != .over else { return }
    let outcome: InvitationOutcome =
      switch message.reason {
      case .cancelled: .cancelled
      case .timedOut: .timedOut
      case .full: .full
      case .incompatible: .incompatible
      }
    // A welcomed invitee is a member already, even without a connection before the inviter's deadline.
    if invitation.isWelcomed && message.reason == .timedOut { return }
    end(invitation.handle, outcome, answering: nil, now)
    removeEnded(now)
  }

  func receiveWelcome(
    _ welcome: WelcomeMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    guard let invitation = incoming.invitation(welcome.number, of: node), case .accepted(let handle) = invitation.phase,
      !invitation.isWelcomed, let session = session(handle)
    else { return }
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
    guard let invitation = incoming[handle], case .accepted(let into) = invitation.phase, !invitation.isWelcomed,
      let session = session(into), session.isJoining == (base != nil)
    else { return }
    if let base {
      guard let admission = welcome.admission, join(session, invitation, admission, base, verification, now) else {
        return end(handle, .incompatible, answering: nil, now)
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
    incoming.welcomed(handle)
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

  /// Ends an invitation that this node received, and notifies the application. If there is an `answer`, the inviter is
  /// sent it.
  func end(
    _ handle: InvitationHandle, _ outcome: InvitationOutcome, answering answer: InvitationAnswer?, _ now: Instant,
    explanation: [UInt8] = []
  ) {
    guard let ended = incoming.end(handle, outcome, answering: answer, explanation: explanation, now) else { return }
    if case .accepted(let handle) = ended.phase, !ended.isWelcomed, let session = session(handle) {
      session.isJoining = false
      session.autoJoin.check()
    }
    emit(.invitationEnded(handle, outcome))
  }

  /// Ends the invitations that this node received for which `match` returns true.
  func endIncoming(
    _ outcome: InvitationOutcome, answering answer: InvitationAnswer?, _ now: Instant,
    where match: (IncomingInvitation) -> Bool
  ) {
    for invitation in incoming.all where match(invitation) { end(invitation.handle, outcome, answering: answer, now) }
  }
}
