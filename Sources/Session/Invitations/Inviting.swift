import Channel
import Primitives

/// The inviter's side of invitations.
extension Sessions {
  /// Invites an address into a session. `context` is opaque data for the invited application. The invitation is valid
  /// for `timeout` (zero means `SessionLimits.invitationTimeDefault`). `.invitationEnded` reports the outcome once.
  public func invite(
    _ address: MemberAddress, into handle: SessionHandle, context: [UInt8] = [], timeout: TimeSpan = .seconds(0),
    now: Instant
  ) throws(SessionError) -> InvitationHandle {
    try invite(address, into: handle, context, timeout, isGathering: false, now: now)
  }

  func invite(
    _ address: MemberAddress, into handle: SessionHandle, _ context: [UInt8] = [], _ timeout: TimeSpan = .seconds(0),
    isGathering: Bool, now: Instant
  ) throws(SessionError) -> InvitationHandle {
    guard let session = session(handle) else { throw .unknown }
    guard context.count <= SessionLimits.contextBytesMax, address.endpoint != 0 else { throw .invalid }
    guard !session.isJoining else { throw .busy }
    guard address != session.address, isInReach(address.node) else { throw .unavailable }
    // The rules require sealing. The node is reachable, but its traffic is not sealed.
    guard mayMeet(session.table.rules, address.node) else { throw .notAllowed }
    if let index = session.position(of: address), session.peers[index].phase == .connected { throw .alreadyMember }
    guard let right = session.table.right(of: session.address) else { throw .notAllowed }
    guard hasPlace(session, for: address, in: right.session) else { throw .full }
    guard mayInvite(session.owner), findSlot(for: session.owner, to: address.node, now) else { throw .full }
    let number = InvitationHandle(number: nextNumber())
    let time = timeout == .seconds(0) ? SessionLimits.invitationTimeDefault : timeout
    outgoing.add(
      OutgoingInvitation(
        number, of: handle, session.owner, origin: right.session, from: session.address.endpoint, to: address,
        context: context, isGathering: isGathering, for: min(time, SessionLimits.invitationTimeMax), now: now))
    return number
  }

  func mayInvite(_ owner: SessionOwner) -> Bool {
    mayTake(
      owner, of: SessionLimits.invitations, taken: outgoing.all.count,
      held: { application in outgoing.all.count { $0.owner.application == application } })
  }

  /// Whether an application may send one more invitation to a node. Sending an invitation may evict another invitation.
  func mayInvite(_ owner: SessionOwner, to node: NodeID, _ now: Instant) -> Bool {
    outgoing.slot(for: owner, to: node, now).isThere
  }

  /// Finds a slot for one more invitation to a node, and evicts another invitation if no slot is free. The application
  /// of the evicted invitation receives a timeout. Returns false if no slot can be found.
  private func findSlot(for owner: SessionOwner, to node: NodeID, _ now: Instant) -> Bool {
    let (isThere, victim) = outgoing.slot(for: owner, to: node, now)
    if let victim { end(victim, .timedOut, telling: .timedOut, now) }
    return isThere
  }

  /// Cancels an invitation that was sent, or a wait that `connect` began. An invitee that was welcomed may be a member
  /// already.
  public func cancel(_ invitation: InvitationHandle, now: Instant) throws(SessionError) {
    if introductions.contains(where: { $0.handle == invitation }) {
      return endIntroductions(.cancelled, now) { $0.handle == invitation }
    }
    guard outgoing[invitation]?.isEnding == false else { throw .unknown }
    end(invitation, .cancelled, telling: .cancelled, now)
  }

  /// Whether an address has a place or can get one. Addresses that are being welcomed are counted as members.
  private func hasPlace(_ session: LocalSession, for address: MemberAddress, in origin: SessionID) -> Bool {
    session.table.hasPlace(
      for: address, by: session.address, in: origin, beside: welcomed(to: session).filter { $0 != address },
      isConnected: { member in
        session.position(of: member).map { session.peers[$0].phase == .connected } ?? false
      })
  }

  /// The addresses that were sent their half of a ticket by this node, and whose complete ticket has not arrived.
  private func welcomed(to session: LocalSession) -> [MemberAddress] {
    var addresses: [MemberAddress] = []
    for invitation in outgoing.all where invitation.session == session.handle {
      guard case .welcoming(.some) = invitation.phase, !session.table.isJoined(invitation.to) else { continue }
      addresses.append(invitation.to)
    }
    return addresses
  }

  /// The pending members (welcomed, not in the table yet) that a welcome lists.
  private func newcomers(of session: LocalSession, for invitee: MemberAddress) -> [MemberAddress] {
    let welcomed = welcomed(to: session)
    let others = session.pendingMembers.map { $0.address }.filter { !welcomed.contains($0) }
    return [MemberAddress]((welcomed + others).filter { $0 != invitee }.prefix(SessionLimits.pendingMembersMax))
  }

  // MARK: Answers

  func receiveAnswer(
    _ answer: AnswerMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    guard let invitation = outgoing[InvitationHandle(number: answer.number)], invitation.to.node == node,
      invitation.phase == .inviting
    else { return }
    switch answer.answer {
    case .accepted:
      if let offer = answer.offer { accepted(invitation, offer, &allowance, now) } else { accepted(invitation, now) }
    case .declined:
      session(invitation.session)?.autoJoin.remove(invitation.to)
      let outcome = InvitationOutcome.declined(explanation: answer.explanation)
      end(invitation.handle, outcome, telling: nil, now)
      endIntroductions(outcome, now) { $0.session == invitation.session && $0.address == invitation.to }
    case .busy: end(invitation.handle, .busy, telling: nil, now)
    case .full: end(invitation.handle, .full, telling: nil, now)
    case .noService: end(invitation.handle, .noService, telling: nil, now)
    case .incompatible: end(invitation.handle, .incompatible, telling: nil, now)
    case .crossed: outgoing.cross(invitation.handle)
    }
    removeEnded(now)
  }

  /// Handles the acceptance by an invitee that joins alone, without members of its own.
  private func accepted(_ invitation: OutgoingInvitation, _ now: Instant) {
    guard let session = session(invitation.session) else { return }
    guard hasPlace(session, for: invitation.to, in: invitation.origin) else {
      return end(invitation.handle, .full, telling: .full, now)
    }
    guard let admission = admit(session, invitation) else {
      return end(invitation.handle, .incompatible, telling: .incompatible, now)
    }
    welcome(invitation, session, admission, now)
  }

  /// Handles the acceptance by an invitee whose session has members. The two sessions are merged when the entries of
  /// the invitee's table are verified.
  private func accepted(
    _ invitation: OutgoingInvitation, _ offer: AnswerMessage.Offer, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    guard let session = session(invitation.session) else { return }
    guard let own = session.table.origins.first(where: { $0.id == invitation.origin }) else {
      return end(invitation.handle, .incompatible, telling: .incompatible, now)
    }
    var head = offer
    head.entries = TableEntries(origins: [], merges: [], records: [])
    var entries = head.entries
    if !session.table.contains(offer.session) {
      let text = SessionMerge.signedText(own.id, offer.session, session.address)
      let mine = SessionMerge.Side(signer: session.address, signature: cryptography.signature(text))
      let theirs = SessionMerge.Side(signer: invitation.to, signature: offer.signature)
      let isLower = own.id < offer.session
      entries = offer.entries
      entries.merges.append(
        SessionMerge(
          lower: min(own.id, offer.session), higher: max(own.id, offer.session), lowerSide: isLower ? mine : theirs,
          higherSide: isLower ? theirs : mine))
    }
    let purpose = TableInCheck.Purpose.offer(invitation.handle, head)
    begin(purpose, entries, of: invitation.session, from: invitation.to.node, &allowance, now)
  }

  /// Schedules the welcome of an invitee. `admission` is this node's half of the invitee's ticket; nil if the sessions
  /// were merged.
  private func welcome(
    _ invitation: OutgoingInvitation, _ session: LocalSession, _ admission: WelcomeMessage.Admission?, _ now: Instant
  ) {
    // The merge may have ended the session, and the invitation with it.
    guard outgoing[invitation.handle]?.phase == .inviting else { return }
    outgoing.welcome(invitation.handle, admission, now)
    if invitation.isGathering { session.autoJoin.accepted(isMerge: admission == nil) }
  }

  /// Signs this node's half of the invitee's ticket; nil if this node is not allowed to admit.
  private func admit(_ session: LocalSession, _ invitation: OutgoingInvitation) -> WelcomeMessage.Admission? {
    let table = session.table
    let isFounder = table.origin(invitation.origin)?.founder == session.address
    guard table.isJoined(session.address),
      let depth = isFounder ? 0 : table.record(invitation.origin, session.address)?.depth,
      depth < SessionLimits.depthMax
    else { return nil }
    let version = table.record(invitation.origin, invitation.to)?.ticket.version ?? 0
    if version == .max { return nil }
    return table.admission(
      invitation.origin, of: invitation.to, by: session.address, depth: depth + 1, version: version + 1)
  }

  /// Merges the invitee's session, whose entries are verified, with the inviter's session.
  func merge(
    _ handle: InvitationHandle, _ offer: AnswerMessage.Offer, _ verification: TableVerification, _ now: Instant
  ) {
    guard let invitation = outgoing[handle], invitation.phase == .inviting, let session = session(invitation.session)
    else { return }
    var wider = session.table
    // The two sessions together may have more members, sessions or addresses than one table holds.
    if wider.take(verification).isTooLarge { return end(invitation.handle, .full, telling: .full, now) }
    guard wider.contains(offer.session) else {
      return end(invitation.handle, .incompatible, telling: .incompatible, now)
    }
    guard wider.joined.count <= wider.membersMax else { return end(invitation.handle, .full, telling: .full, now) }
    let former = session.table.id
    session.table = wider
    scheduleDeltas(session, now)
    if wider.id != former { emit(.identified(session.handle, wider.id)) }
    tableChanged(session, now)
    welcome(invitation, session, nil, now)
  }

  // MARK: Ends

  /// Ends an invitation that this node sent, and notifies the application.
  func end(
    _ handle: InvitationHandle, _ outcome: InvitationOutcome, telling reason: EndMessage.Reason?, _ now: Instant
  ) {
    guard let ended = outgoing.end(handle, outcome, telling: reason, now) else { return }
    emit(.invitationEnded(handle, outcome))
    if ended.isGathering { session(ended.session)?.autoJoin.ended(ended.to, outcome, now) }
  }

  /// Ends the invitations that this node sent for which `match` returns true.
  func endOutgoing(
    _ outcome: InvitationOutcome, telling reason: EndMessage.Reason?, _ now: Instant,
    where match: (OutgoingInvitation) -> Bool
  ) {
    for invitation in outgoing.all where match(invitation) { end(invitation.handle, outcome, telling: reason, now) }
  }

  /// Removes invitations that are over, if their other end was notified or need not be.
  func removeEnded(_ now: Instant) {
    outgoing.removeEnded()
    incoming.removeEnded(now)
  }

  /// Ends all invitations between a session and a member that is now connected.
  func memberConnected(_ session: LocalSession, _ address: MemberAddress, _ now: Instant) {
    endIntroductions(.connected, now) { $0.session == session.handle && $0.address == address }
    // An invitee that has not answered learns the outcome from the handshake with this end.
    endOutgoing(.connected, telling: nil, now) { $0.session == session.handle && $0.to == address }
    endIncoming(.connected, answering: nil, now) {
      $0.from == address && $0.to == session.address.endpoint && session.table.contains($0.session)
    }
    removeEnded(now)
  }

  func endInvitations(of session: LocalSession, _ now: Instant) {
    endIntroductions(.sessionEnded, now) { $0.session == session.handle }
    endOutgoing(.sessionEnded, telling: .cancelled, now) { $0.session == session.handle }
    endIncoming(.sessionEnded, answering: .declined, now) { $0.phase == .accepted(session.handle) }
    removeEnded(now)
  }

  /// Ends the invitations whose deadline has passed.
  func endInvitations(_ now: Instant) {
    endIntroductions(.timedOut, now) { $0.deadline <= now }
    for handle in outgoing.expire(now) { end(handle, .timedOut, telling: .timedOut, now) }
    for invitation in incoming.expire(now) {
      if case .accepted(let handle) = invitation.phase, !invitation.isWelcomed, let session = session(handle),
        session.isJoining
      {
        session.autoJoin.welcomeMissed(invitation.from, now)
      }
      end(invitation.handle, .timedOut, answering: nil, now)
    }
    removeEnded(now)
  }

  // MARK: Outputs

  func nextInvitationOutput(_ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    for invitation in outgoing.all where invitation.dueAt <= now && isInReach(invitation.to.node) {
      guard let message = message(of: invitation, now), canSend(invitation.to.node, .interactive, message.byteCount)
      else { continue }
      outgoing.sent(invitation.handle)
      removeEnded(now)
      return output(message.kind, message.bytes, to: invitation.to.node, .invitation(invitation.handle))
    }
    for invitation in incoming.all where invitation.answerAt <= now && isInReach(invitation.from.node) {
      guard var answer = invitation.answer else { continue }
      if let offer = invitation.offers, let session = session(offer.handle) {
        let offer = renewed(offer, of: session, to: invitation)
        answer.offer = offer.map {
          AnswerMessage.Offer(session: $0.session, signature: $0.signature, entries: session.table.entries)
        }
      }
      guard canSend(invitation.from.node, .interactive, answer.byteCount) else { continue }
      incoming.answered(invitation.handle, now)
      removeEnded(now)
      return output(.answer, answer.bytes, to: invitation.from.node, .answer(invitation.handle))
    }
    return nil
  }

  /// A message of the inviter, which is encoded only when it can be sent. A welcome contains a table of up to 64 KiB,
  /// and `nextInvitationOutput` examines a message again at each output while the invitee's channel is full.
  private enum InviterMessage {
    case invite(InviteMessage)
    case welcome(WelcomeMessage)
    case end(EndMessage)

    var kind: SessionKind {
      switch self {
      case .invite: .invite
      case .welcome: .welcome
      case .end: .end
      }
    }

    var byteCount: Int {
      switch self {
      case .invite(let message): message.byteCount
      case .welcome(let message): message.byteCount
      case .end: EndMessage.byteCount
      }
    }

    var bytes: [UInt8] {
      switch self {
      case .invite(let message): message.bytes
      case .welcome(let message): message.bytes
      case .end(let message): message.bytes
      }
    }
  }

  private func message(of invitation: OutgoingInvitation, _ now: Instant) -> InviterMessage? {
    switch invitation.phase {
    case .inviting:
      guard let session = session(invitation.session), let origin = session.table.origin(invitation.origin) else {
        return nil
      }
      let seconds = (invitation.deadline - now).milliseconds / 1000
      let message = InviteMessage(
        number: invitation.handle.number, seconds: UInt16(max(1, seconds)), from: invitation.from,
        to: invitation.to.endpoint, memberCount: UInt8(max(1, session.table.members.count)), origin: origin,
        context: invitation.context)
      return .invite(message)
    case .welcoming(let admission):
      guard let session = session(invitation.session) else { return nil }
      let message = WelcomeMessage(
        number: invitation.handle.number, admission: admission, newcomers: newcomers(of: session, for: invitation.to),
        entries: session.table.entries)
      return .welcome(message)
    case .ending(let reason): return .end(EndMessage(number: invitation.handle.number, reason: reason))
    }
  }
}
