import Primitives

/// Auto-join of all sessions: a session invites the addresses that its application gathers (adds by `gather`), and
/// accepts their invitations without asking. `AutoJoin` contains the rules.
extension Sessions {
  /// Adds an address to the auto-join of the session. If the application at the address has added this session's
  /// address too, each end accepts the other end's invitation without asking. Auto-join of the address ends when the
  /// address is a member or declines, or with the session. An unreachable address is invited when its node becomes
  /// reachable. Throws `.full` at the limit `SessionLimits.gatherings` if no address can be evicted.
  public func gather(
    _ address: MemberAddress, into handle: SessionHandle, now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard address != session.address, address.endpoint != 0 else { throw .invalid }
    session.autoJoin.turnOn()
    if session.autoJoin.entry(of: address) == nil { try beginGathering(address, session, now) }
    session.autoJoin.check()
  }

  private func beginGathering(
    _ address: MemberAddress, _ session: LocalSession, _ now: Instant
  ) throws(SessionError) {
    if session.isMet(address) { return }
    let mayGather = mayTake(
      session.owner, of: SessionLimits.gatherings, taken: sessions.reduce(0) { $0 + $1.autoJoin.entries.count },
      held: { application in
        sessions.reduce(0) { $0 + ($1.owner.application == application ? $1.autoJoin.entries.count : 0) }
      })
    if !mayGather {
      guard forgetOneGathering(of: session.owner.application, for: address.node) else { throw .full }
    }
    session.autoJoin.add(address, now)
  }

  /// Evicts one auto-join address of an application, to make room for an address of the node `newcomer`. Returns false
  /// if no address can be evicted.
  ///
  /// The slots are shared by the links over which the nodes are reached (`FairSlots`). An address whose invitations
  /// failed is evicted first, unless its link has fewer slots than the link of `newcomer`. Without failed invitations,
  /// the newest address of the link with the most slots is evicted, provided that this link has more slots than
  /// `newcomer`. Among equally new addresses the highest address is evicted, because the lowest addresses invite the
  /// other addresses. Gathered addresses of a higher admission class than `newcomer` (former member, pinned) stay. An
  /// address of this node evicts only an address whose invitations failed.
  private func forgetOneGathering(of application: UInt32, for newcomer: NodeID) -> Bool {
    struct Rival {
      let session: LocalSession, link: Int
      let gathering: AutoJoin.Entry
      var hasFailed: Bool { gathering.failures > 0 }
    }
    let own = holder(newcomer)
    var links = [own.ingress]
    var counts = [1]
    var rivals: [Rival] = []
    for session in sessions where session.owner.application == application {
      for gathering in session.autoJoin.entries {
        let holder = holder(gathering.address.node)
        guard holder.standing <= own.standing else { continue }
        let link = links.firstIndex(of: holder.ingress) ?? links.count
        if link == links.count {
          links.append(holder.ingress)
          counts.append(0)
        }
        counts[link] += 1
        rivals.append(Rival(session: session, link: link, gathering: gathering))
      }
    }
    func isBefore(_ a: Rival, _ b: Rival) -> Bool {
      if a.hasFailed != b.hasFailed { return a.hasFailed }
      if counts[a.link] != counts[b.link] { return counts[a.link] > counts[b.link] }
      if a.hasFailed { return false }
      return a.gathering.since == b.gathering.since
        ? a.gathering.address > b.gathering.address : a.gathering.since > b.gathering.since
    }
    var leaver: Rival?
    for rival in rivals {
      let mayLeave =
        newcomer == local
        ? rival.hasFailed
        : counts[rival.link] > counts[0] || rival.hasFailed && counts[rival.link] == counts[0]
      if !mayLeave { continue }
      if let other = leaver, !isBefore(rival, other) { continue }
      leaver = rival
    }
    guard let leaver else { return false }
    leaver.session.autoJoin.remove(leaver.gathering.address)
    return true
  }

  /// Resets the auto-join state of the addresses of a node that became reachable or restarted. An address that sent no
  /// welcome stays paused.
  func restartGatherings(of node: NodeID, _ now: Instant) {
    for session in sessions where session.autoJoin.isOn { session.autoJoin.restart(node, now) }
  }

  /// Schedules a check of auto-join after a node became unreachable, because another application may now be the first
  /// to invite.
  func wakeGatherings() {
    for session in sessions where session.autoJoin.isOn { session.autoJoin.check() }
  }

  // MARK: Received invitations

  /// The session that has the inviter's address in its auto-join; nil if there is none.
  private func gatheringSession(of invitation: IncomingInvitation) -> LocalSession? {
    sessions.first {
      $0.isOpen && $0.address.endpoint == invitation.to && $0.autoJoin.entry(of: invitation.from) != nil
    }
  }

  /// Whether the inviter's address is in the auto-join of a session, so that the application is not asked to accept.
  func isGathered(_ invitation: IncomingInvitation) -> Bool {
    guard let session = gatheringSession(of: invitation) else { return false }
    session.autoJoin.check()
    return true
  }

  /// Whether the inviter is refused at present, because its invitation was accepted recently and no welcome followed.
  func isUnwelcoming(_ invitation: IncomingInvitation, _ now: Instant) -> Bool {
    gatheringSession(of: invitation)?.autoJoin.refuses(invitation.from, now) ?? false
  }

  /// Accepts an invitation by the rules of auto-join, as if the inviter's address were in the session's auto-join: as
  /// soon as possible. If the inviter is alone and this session has members, the session first invites the inviter. The
  /// inviter's invitation is then accepted only after `SessionLimits.answerTime`.
  public func acceptGathered(_ invitation: InvitationHandle, into handle: SessionHandle) throws(SessionError) {
    guard let asked = incoming.asked(invitation), let session = session(handle), session.address.endpoint == asked.to
    else { throw .unknown }
    session.autoJoin.turnOn()
    incoming.scheduleAcceptance(invitation, at: .zero)
    session.autoJoin.check()
  }

  /// Accepts the invitations to the session's endpoint whose acceptance by auto-join is due.
  private func acceptGathered(_ session: LocalSession, _ now: Instant) {
    for known in incoming.all where known.to == session.address.endpoint {
      // An acceptance may end or change later invitations.
      guard let invitation = incoming.asked(known.handle), let acceptAt = invitation.acceptAt, !session.isJoining
      else { continue }
      // If another session of the application has the inviter's address in its auto-join, that session accepts the
      // invitation.
      if let other = gatheringSession(of: invitation), other !== session { continue }
      var nextAt = acceptAt
      if acceptAt == .zero && mayComeAlone(invitation, session) {
        nextAt = now + SessionLimits.answerTime
        incoming.scheduleAcceptance(invitation.handle, at: nextAt)
        // The inviter is invited only once. An invitation that is refused at once, e.g. because the other end offers no
        // service, would otherwise be repeated without a pause.
        let from = invitation.from
        if session.autoJoin.entry(of: from) == nil { try? beginGathering(from, session, now) }
        session.autoJoin.noteRequest(of: from)
      } else if mustWaitForOffer(invitation, into: session, now) {
        nextAt = max(acceptAt, offerAllowedAt)
      } else if acceptAt <= now {
        if (try? accept(invitation.handle, into: session.handle, now: now)) != nil { continue }
        // An acceptance that failed is tried again later.
        nextAt = now + SessionLimits.answerTime
        incoming.scheduleAcceptance(invitation.handle, at: nextAt)
      }
      session.autoJoin.check(at: nextAt)
    }
  }

  /// Whether the inviter can join this session alone, without a merge of two sessions. An inviter that is already a
  /// member is included, because that inviter may have joined after sending the invitation.
  private func mayComeAlone(_ invitation: IncomingInvitation, _ session: LocalSession) -> Bool {
    !session.isAlone && !session.table.contains(invitation.session)
      && (invitation.memberCount == 1 || session.table.isJoined(invitation.from))
  }

  // MARK: Sent invitations

  /// Sends the invitations that are due.
  func tendGatherings(_ now: Instant) {
    for session in sessions where session.autoJoin.checkAt <= now { tend(session, now) }
  }

  private func tend(_ session: LocalSession, _ now: Instant) {
    session.autoJoin.beginCheck()
    guard session.isOpen else { return }
    session.autoJoin.remove { session.isMet($0) }
    acceptGathered(session, now)
    if session.isJoining { return }
    var due = dueGatherings(session, AutoJoin.Turn(position: turn(of: session), isAlone: session.isAlone), now)
    var waiting = waitingInvitations(of: session, now)
    if waiting == 0 && due.isEmpty { session.autoJoin.cameToRest() }
    while waiting < session.autoJoin.window, !due.isEmpty {
      let gathering = due.removeFirst()
      guard hasRoom(for: gathering.address.node, session.owner, now) else {
        session.autoJoin.check(at: now + .seconds(1))
        continue
      }
      let isInvited = (try? invite(gathering.address, into: session.handle, isGathering: true, now: now)) != nil
      guard isInvited else {
        // The session is full, or this member is not allowed to admit.
        session.autoJoin.check(at: now + SessionLimits.sweepTime)
        guard isFormer(gathering.address, session) else { return }
        // The former member at the address of `gathering` gets no place, because its branch of the admission tree has
        // its share. An address that was never a member may still get a place. At the next check another former member
        // is tried first, because this former member has failed once more.
        due.removeAll { isFormer($0.address, session) }
        session.autoJoin.noteLackOfPlace(for: gathering.address)
        continue
      }
      session.autoJoin.noteInvitation(to: gathering.address)
      session.autoJoin.check(at: now + SessionLimits.answerTime)
      waiting += 1
    }
  }

  private func isFormer(_ address: MemberAddress, _ session: LocalSession) -> Bool {
    !session.table.isJoined(address) && !session.table.records(of: address).isEmpty
  }

  /// The number of nodes that have to invite before this session. Nil if this session does not invite: it is not
  /// allowed to admit, or another session of this node invites for both.
  private func turn(of session: LocalSession) -> UInt64? {
    if session.isAlone {
      return nodeCount(
        session.autoJoin.entries.filter {
          $0.address < session.address && $0.failures == 0 && isInReach($0.address.node)
        }.map { $0.address.node })
    }
    guard session.table.right(of: session.address) != nil else { return nil }
    if session.table.rules.onlyFounderAdmits { return 0 }
    for other in sessions where other.isOpen && other.autoJoin.isOn && other.address < session.address {
      if session.table.contains(other.table.id) && session.table.isJoined(other.address) { return nil }
    }
    return nodeCount(
      session.peers.filter { $0.address < session.address && $0.phase != .away }.map { $0.address.node })
  }

  private func nodeCount(_ nodes: [NodeID]) -> UInt64 {
    UInt64(nodes.indices.filter { !nodes[..<$0].contains(nodes[$0]) }.count)
  }

  /// The auto-join addresses whose invitations are due, in the order of their invitations. Schedules the check of the
  /// next address that will be due.
  private func dueGatherings(_ session: LocalSession, _ turn: AutoJoin.Turn, _ now: Instant) -> [AutoJoin.Entry] {
    var due: [AutoJoin.Entry] = []
    for gathering in session.autoJoin.entries where isInReach(gathering.address.node) {
      if outgoing.all.contains(where: {
        $0.session == session.handle && $0.to == gathering.address && !$0.isEnding
      }) {
        continue
      }
      let at = session.autoJoin.dueTime(
        of: gathering, turn, isMember: session.table.isJoined(gathering.address),
        isIntroduced: isIntroduced(session, gathering.address), now)
      if at <= now { due.append(gathering) } else { session.autoJoin.check(at: at) }
    }
    let autoJoin = session.autoJoin
    return due.inOrder { autoJoin.isInvited($0, before: $1, isAlone: turn.isAlone) }
  }

  /// The number of recent auto-join invitations whose invitees have not connected yet. Invitations without a connection
  /// delay the next invitation.
  private func waitingInvitations(of session: LocalSession, _ now: Instant) -> Int {
    var waiting = 0
    for invitation in outgoing.all
    where invitation.isGathering && invitation.session == session.handle && !invitation.isEnding {
      let until = invitation.askedAt + SessionLimits.answerTime * (invitation.phase == .inviting ? 1 : 2)
      if until <= now { continue }
      waiting += 1
      session.autoJoin.check(at: until)
    }
    return waiting
  }

  /// Whether one more auto-join invitation can be sent to a node. To make room, an invitation of the user with the most
  /// can be evicted. If no invitation of that user can be evicted, an old unanswered invitation of the same application
  /// ends, so that the next attempt finds room.
  private func hasRoom(for node: NodeID, _ owner: SessionOwner, _ now: Instant) -> Bool {
    let gathering = outgoing.all.filter { $0.isGathering && !$0.isEnding }
    let toNode = gathering.filter { $0.to.node == node }
    // A recent invitation cannot be evicted, because its acceptance may be on its way.
    let entries = toNode.map { invitation in
      FairSlots.Entry(
        holder: invitation.owner.holder, since: invitation.askedAt,
        mayYield: invitation.phase == .inviting && now - invitation.askedAt >= SessionLimits.answerTime)
    }
    let slot = SessionLimits.gatherInvitationsPerNode.choose(for: owner.holder, among: entries, now: now)
    let mayGoThere = slot != .none && mayInvite(owner, to: node, now)
    if mayGoThere && mayInvite(owner) {
      if case .instead(of: let index) = slot { end(toNode[index].handle, .timedOut, telling: .timedOut, now) }
      return true
    }
    let oldest = gathering.first {
      $0.owner.application == owner.application && (mayGoThere || $0.to.node == node) && $0.phase == .inviting
        && $0.askedAt + SessionLimits.giveWayTime <= now
    }
    if let oldest { end(oldest.handle, .timedOut, telling: .timedOut, now) }
    return false
  }
}

extension LocalSession {
  /// Whether auto-join need not invite an address. Auto-join need not invite a member that is connected or was
  /// rejected, or an address without a place. A member in the handshake is not included, because a restarted
  /// member does not know about its membership.
  fileprivate func isMet(_ address: MemberAddress) -> Bool {
    guard table.isJoined(address) else { return false }
    guard let index = position(of: address) else { return true }
    return peers[index].phase == .connected || peers[index].decision == .rejected
  }
}
