import Channel
import Primitives

/// An invitation that this node sent.
struct OutgoingInvitation {
  enum Phase: Equatable {
    case inviting
    /// The invitee has accepted and is sent a welcome. The value is this node's half of the invitee's ticket (signed
    /// membership); nil if the sessions were merged.
    case welcoming(WelcomeMessage.Admission?)
    /// The application was notified of the outcome, and the invitee is still to be notified.
    case ending(EndMessage.Reason)
  }

  let handle: InvitationHandle
  let session: SessionHandle
  /// The application that owns the session.
  let owner: SessionOwner
  /// The session id for which this node admits. A merged session has several ids.
  let origin: SessionID
  let from: UInt32
  let to: MemberAddress
  let context: [UInt8]
  /// Whether the invitation was created by auto-join, not by the application.
  let isGathering: Bool
  /// The time of the invitation or, after the invitee has accepted, of the welcome.
  var askedAt: Instant
  /// Whether the invitee has invited this end too and has the lower address, so that the invitee's invitation decides
  /// about both.
  var isCrossed = false
  var deadline: Instant
  var phase = Phase.inviting
  var dueAt: Instant
}

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
    guard mayInvite(session.owner), makePlace(for: session.owner, to: address.node, now) else { throw .full }
    let number = InvitationHandle(number: nextNumber())
    let time = timeout == .seconds(0) ? SessionLimits.invitationTimeDefault : timeout
    outgoing.append(
      OutgoingInvitation(
        handle: number, session: handle, owner: session.owner, origin: right.session, from: session.address.endpoint,
        to: address,
        context: context, isGathering: isGathering, askedAt: now,
        deadline: now + min(time, SessionLimits.invitationTimeMax), dueAt: now))
    return number
  }

  func mayInvite(_ owner: SessionOwner) -> Bool {
    mayTake(
      owner, of: SessionLimits.invitations, taken: outgoing.count,
      held: { application in outgoing.count { $0.owner.application == application } })
  }

  /// Whether an application may send one more invitation to a node. Sending an invitation may evict another invitation.
  func mayInvite(_ owner: SessionOwner, to node: NodeID, _ now: Instant) -> Bool {
    placeForInvitation(of: owner, to: node, now).isThere
  }

  /// Finds a slot for one more invitation to a node, and evicts another invitation if no slot is free. The application
  /// of the evicted invitation receives a timeout. Returns false if no slot can be found.
  private func makePlace(for owner: SessionOwner, to node: NodeID, _ now: Instant) -> Bool {
    let (isThere, victim) = placeForInvitation(of: owner, to: node, now)
    if let victim { end(&outgoing[victim], .timedOut, telling: .timedOut, now) }
    return isThere
  }

  /// Whether there is a slot for one more invitation to a node, and the index in `outgoing` of the invitation to evict.
  /// An application's own invitation is not evicted, because the application can cancel it. An accepted invitation can
  /// be evicted after `SessionLimits.giveWayTime`: the inviting application may be what keeps the invitee from becoming
  /// a member.
  private func placeForInvitation(
    of owner: SessionOwner, to node: NodeID, _ now: Instant
  ) -> (isThere: Bool, victim: Int?) {
    if !owner.isFavoured && briefInvitations.next(briefSource(owner, node)) > now { return (false, nil) }
    let standing = outgoing.indices.filter { outgoing[$0].to.node == node && !outgoing[$0].isEnding }
    let entries = standing.map { index in
      FairPlaces.Entry(
        holder: outgoing[index].owner.holder, since: outgoing[index].askedAt,
        mayYield: outgoing[index].phase == .inviting
          || now - outgoing[index].askedAt >= SessionLimits.giveWayTime)
    }
    switch SessionLimits.invitationsPerNode.place(for: owner.holder, among: entries, now: now) {
    case .free: return (true, nil)
    case .none: return (false, nil)
    case .instead(of: let place):
      let victim = standing[place]
      return outgoing[victim].owner.holder == owner.holder ? (false, nil) : (true, victim)
    }
  }

  /// The key of a user and a node in `briefInvitations`.
  private func briefSource(_ owner: SessionOwner, _ node: NodeID) -> UInt64 {
    UInt64(owner.user) &* 0x9E37_79B9_7F4A_7C15 ^ node.high ^ node.low
  }

  /// Notes that an invitation ended. If the invitee's node still charges the invitation to this node, the inviting user
  /// is charged here.
  private func noteBrief(_ invitation: OutgoingInvitation, _ outcome: InvitationOutcome, _ now: Instant) {
    switch outcome {
    case .connected, .busy, .full, .noService, .incompatible: return
    case .declined, .timedOut, .cancelled, .sessionEnded: break
    }
    if invitation.owner.isFavoured || now - invitation.askedAt >= SessionLimits.invitationStandTime { return }
    _ = briefInvitations.take(briefSource(invitation.owner, invitation.to.node), now: now)
  }

  /// Cancels an invitation that was sent, or a wait that `connect` began. An invitee that was welcomed may be a member
  /// already.
  public func cancel(_ invitation: InvitationHandle, now: Instant) throws(SessionError) {
    if introductions.contains(where: { $0.handle == invitation }) {
      return endIntroductions(.cancelled, now) { $0.handle == invitation }
    }
    guard let index = outgoing.firstIndex(where: { $0.handle == invitation && !$0.isEnding }) else { throw .unknown }
    end(&outgoing[index], .cancelled, telling: .cancelled, now)
  }

  /// Whether an address has a member slot or can get one. Addresses that are being welcomed are counted as members.
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
    for invitation in outgoing where invitation.session == session.handle {
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
    guard
      let index = outgoing.firstIndex(where: {
        $0.handle.number == answer.number && $0.to.node == node && $0.phase == .inviting
      })
    else { return }
    switch answer.answer {
    case .accepted:
      if let offer = answer.offer { accepted(index, offer, &allowance, now) } else { accepted(index, now) }
    case .declined:
      let invitation = outgoing[index]
      session(invitation.session)?.autoJoin.remove(invitation.to)
      let outcome = InvitationOutcome.declined(explanation: answer.explanation)
      end(&outgoing[index], outcome, telling: nil, now)
      endIntroductions(outcome, now) { $0.session == invitation.session && $0.address == invitation.to }
    case .busy: end(&outgoing[index], .busy, telling: nil, now)
    case .full: end(&outgoing[index], .full, telling: nil, now)
    case .noService: end(&outgoing[index], .noService, telling: nil, now)
    case .incompatible: end(&outgoing[index], .incompatible, telling: nil, now)
    case .crossed: outgoing[index].isCrossed = true
    }
    removeEnded(now)
  }

  /// Handles the acceptance by an invitee that joins alone, without members of its own.
  private func accepted(_ index: Int, _ now: Instant) {
    let invitation = outgoing[index]
    guard let session = session(invitation.session) else { return }
    guard hasPlace(session, for: invitation.to, in: invitation.origin) else {
      return end(&outgoing[index], .full, telling: .full, now)
    }
    guard let admission = admit(session, invitation) else {
      return end(&outgoing[index], .incompatible, telling: .incompatible, now)
    }
    welcome(invitation, session, admission, now)
  }

  /// Handles the acceptance by an invitee whose session has members. The two sessions are merged when the entries of
  /// the invitee's table are verified.
  private func accepted(
    _ index: Int, _ offer: AnswerMessage.Offer, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    let invitation = outgoing[index]
    guard let session = session(invitation.session) else { return }
    guard let own = session.table.origins.first(where: { $0.id == invitation.origin }) else {
      return end(&outgoing[index], .incompatible, telling: .incompatible, now)
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
    guard let index = outgoing.firstIndex(where: { $0.handle == invitation.handle && $0.phase == .inviting }) else {
      return
    }
    outgoing[index].phase = .welcoming(admission)
    outgoing[index].askedAt = now
    outgoing[index].dueAt = now
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
    guard let index = outgoing.firstIndex(where: { $0.handle == handle && $0.phase == .inviting }),
      let session = session(outgoing[index].session)
    else { return }
    let invitation = outgoing[index]
    var wider = session.table
    // The two sessions together may have more members, sessions or addresses than one table holds.
    if wider.take(verification).isTooLarge { return end(&outgoing[index], .full, telling: .full, now) }
    guard wider.contains(offer.session) else {
      return end(&outgoing[index], .incompatible, telling: .incompatible, now)
    }
    guard wider.joined.count <= wider.membersMax else { return end(&outgoing[index], .full, telling: .full, now) }
    let former = session.table.id
    session.table = wider
    scheduleDeltas(session, now)
    if wider.id != former { emit(.identified(session.handle, wider.id)) }
    tableChanged(session, now)
    welcome(invitation, session, nil, now)
  }

  // MARK: Ends

  func end(
    _ invitation: inout OutgoingInvitation, _ outcome: InvitationOutcome, telling reason: EndMessage.Reason?,
    _ now: Instant
  ) {
    if invitation.isEnding { return }
    emit(.invitationEnded(invitation.handle, outcome))
    if invitation.isGathering { session(invitation.session)?.autoJoin.ended(invitation.to, outcome, now) }
    noteBrief(invitation, outcome, now)
    invitation.phase = .ending(reason ?? .cancelled)
    invitation.deadline = reason == nil ? .zero : now + SessionLimits.settleTime
    invitation.dueAt = reason == nil ? .never : now
  }

  /// Removes invitations that are over, if their other end was notified or need not be.
  func removeEnded(_ now: Instant) {
    outgoing.removeAll { $0.isEnding && $0.dueAt == .never }
    incoming.removeAll { $0.phase == .over && $0.answerAt == .never && $0.keptUntil <= now }
  }

  /// Ends all invitations between a session and a member that is now connected.
  func memberConnected(_ session: LocalSession, _ address: MemberAddress, _ now: Instant) {
    endIntroductions(.connected, now) { $0.session == session.handle && $0.address == address }
    for index in outgoing.indices where outgoing[index].session == session.handle && outgoing[index].to == address {
      // An invitee that has not answered learns the outcome from the handshake with this end.
      end(&outgoing[index], .connected, telling: nil, now)
    }
    for index in incoming.indices
    where incoming[index].from == address && incoming[index].to == session.address.endpoint
      && incoming[index].phase != .over && session.table.contains(incoming[index].session)
    {
      end(&incoming[index], .connected, answering: nil, now)
    }
    removeEnded(now)
  }

  func endInvitations(of session: LocalSession, _ now: Instant) {
    endIntroductions(.sessionEnded, now) { $0.session == session.handle }
    for index in outgoing.indices where outgoing[index].session == session.handle {
      end(&outgoing[index], .sessionEnded, telling: .cancelled, now)
    }
    for index in incoming.indices {
      guard case .accepted(session.handle) = incoming[index].phase else { continue }
      end(&incoming[index], .sessionEnded, answering: .declined, now)
    }
    removeEnded(now)
  }

  /// Ends the invitations whose deadline has passed.
  func endInvitations(_ now: Instant) {
    endIntroductions(.timedOut, now) { $0.deadline <= now }
    for index in outgoing.indices where outgoing[index].deadline <= now {
      if outgoing[index].isEnding {
        outgoing[index].dueAt = .never
      } else {
        end(&outgoing[index], .timedOut, telling: .timedOut, now)
      }
    }
    for index in incoming.indices where incoming[index].deadline <= now {
      if incoming[index].phase == .over {
        incoming[index].answerAt = .never
      } else {
        if case .accepted(let handle) = incoming[index].phase, !incoming[index].isWelcomed,
          let session = session(handle), session.isJoining
        {
          session.autoJoin.welcomeMissed(incoming[index].from, now)
        }
        end(&incoming[index], .timedOut, answering: nil, now)
      }
    }
    removeEnded(now)
  }

  // MARK: Outputs

  func nextInvitationOutput(_ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    for index in outgoing.indices where outgoing[index].dueAt <= now && isInReach(outgoing[index].to.node) {
      let invitation = outgoing[index]
      guard let (kind, bytes) = message(of: invitation, now), canSend(invitation.to.node, .interactive, bytes.count)
      else { continue }
      outgoing[index].dueAt = .never
      let purpose = UndeliveredMessages.Purpose.invitation(invitation.handle)
      removeEnded(now)
      return output(kind, bytes, to: invitation.to.node, purpose)
    }
    for index in incoming.indices where incoming[index].answerAt <= now && isInReach(incoming[index].from.node) {
      guard var answer = incoming[index].answer else { continue }
      if let handle = incoming[index].offers, let session = session(handle) {
        answer.offer = try? offer(session, incoming[index])
      }
      let node = incoming[index].from.node
      let bytes = answer.bytes
      guard canSend(node, .interactive, bytes.count) else { continue }
      incoming[index].answerAt = .never
      let purpose = UndeliveredMessages.Purpose.answer(incoming[index].handle)
      removeEnded(now)
      return output(.answer, bytes, to: node, purpose)
    }
    return nil
  }

  private func message(of invitation: OutgoingInvitation, _ now: Instant) -> (SessionKind, [UInt8])? {
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
      return (.invite, message.bytes)
    case .welcoming(let admission):
      guard let session = session(invitation.session) else { return nil }
      let message = WelcomeMessage(
        number: invitation.handle.number, admission: admission, newcomers: newcomers(of: session, for: invitation.to),
        entries: session.table.entries)
      return (.welcome, message.bytes)
    case .ending(let reason): return (.end, EndMessage(number: invitation.handle.number, reason: reason).bytes)
    }
  }
}

extension OutgoingInvitation {
  var isEnding: Bool {
    if case .ending = phase { return true }
    return false
  }
}
