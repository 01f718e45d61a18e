import Primitives

/// An address in the auto-join of a session. Until the address is a member, either the session or the address invites
/// the other.
struct AutoJoin {
  static let failuresMax: UInt8 = 16

  let address: MemberAddress
  /// The time since which the address is known and its node is reachable.
  var since: Instant
  /// The earliest time of the next invitation.
  var pausedUntil = Instant.zero
  /// Failed invitations to the address since its node became reachable.
  var failures: UInt8 = 0
  /// Whether the address invited this session, was accepted and sent no welcome. Until `pausedUntil`, its invitations
  /// are answered `busy`.
  var isUnwelcoming = false
  /// Whether the address has no other members and has invited this session, which has members. The session then invites
  /// the address at once.
  var isAsking = false
}

/// Auto-join: a session invites the addresses that its application gathers (adds by `gather`), and accepts their
/// invitations without asking. The rules minimise the numbers of invitations and of merged sessions, because a table
/// holds at most `SessionLimits.originsMax` merged sessions. Among applications that start at the same time, the one
/// with the lowest address invites all others.
///
/// - An application that is alone (without other members) invites the gathered addresses. If lower addresses are
///   reachable, the application first waits `takeOverTime` for each node that has lower addresses.
/// - In a session with members, the member with the lowest address invites at once. Any other member first waits
///   `takeOverTime` for each node with lower members. The wait starts again when the session grows.
/// - If an application that is alone invites a member, the member invites that application instead. So a session grows
///   by tickets (signed memberships), not by merges.
/// - An unanswered invitation delays the next invitation for `answerTime`. A failed invitation is repeated with
///   back-off.
extension Sessions {
  /// Adds an address to the auto-join of the session. If the application at the address has added this session's
  /// address too, each end accepts the other end's invitation without asking. Auto-join of the address ends when the
  /// address is a member or declines, or with the session. An unreachable address is invited when it becomes reachable.
  /// Throws `.full` at the limit `SessionLimits.gatherings` if no address can be evicted.
  public func gather(
    _ address: MemberAddress, into handle: SessionHandle, now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard address != session.address, address.endpoint != 0 else { throw .invalid }
    session.gathers = true
    if session.gathering(address) == nil { try beginGathering(address, session, now) }
    session.gatherAt = .zero
  }

  private func beginGathering(
    _ address: MemberAddress, _ session: LocalSession, _ now: Instant
  ) throws(SessionError) {
    if session.isMet(address) { return }
    let mayGather = mayTake(
      session.owner, of: SessionLimits.gatherings, taken: sessions.reduce(0) { $0 + $1.gatherings.count },
      held: { application in
        sessions.reduce(0) { $0 + ($1.owner.application == application ? $1.gatherings.count : 0) }
      })
    if !mayGather {
      guard forgetOneGathering(of: session.owner.application, for: address.node) else { throw .full }
    }
    let place = session.gatherings.firstIndex { address < $0.address } ?? session.gatherings.count
    session.gatherings.insert(AutoJoin(address: address, since: now), at: place)
    if address < session.address { session.grewAt = now }
  }

  /// Evicts one auto-join address of an application, to make room for an address of the node `newcomer`. Returns false
  /// if none can be evicted.
  ///
  /// The slots are shared by the links over which the nodes are reached (`FairPlaces`). An address whose invitations
  /// failed is evicted first, unless its link has fewer slots than the link of `newcomer`. Otherwise the newest address
  /// of the link with the most slots is evicted, if that link has more slots than the link of `newcomer`. Among equally
  /// new addresses the highest is evicted, because the lowest addresses invite the others. Addresses of a higher
  /// admission class than `newcomer` (former member, pinned) stay. An address of this node evicts only an address whose
  /// invitations failed.
  private func forgetOneGathering(of application: UInt32, for newcomer: NodeID) -> Bool {
    struct Rival {
      let session: Int, index: Int, link: Int
      let gathering: AutoJoin
      var hasFailed: Bool { gathering.failures > 0 }
    }
    let own = holder(newcomer)
    var links = [own.ingress]
    var counts = [1]
    var rivals: [Rival] = []
    for place in sessions.indices where sessions[place].owner.application == application {
      for (index, gathering) in sessions[place].gatherings.enumerated() {
        let holder = holder(gathering.address.node)
        guard holder.standing <= own.standing else { continue }
        let link = links.firstIndex(of: holder.ingress) ?? links.count
        if link == links.count {
          links.append(holder.ingress)
          counts.append(0)
        }
        counts[link] += 1
        rivals.append(Rival(session: place, index: index, link: link, gathering: gathering))
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
    sessions[leaver.session].gatherings.remove(at: leaver.index)
    return true
  }

  /// Resets the auto-join state of the addresses of a node that became reachable or restarted. An address that sent no
  /// welcome stays paused.
  func restartGatherings(of node: NodeID, _ now: Instant) {
    for session in sessions where session.gathers {
      for index in session.gatherings.indices where session.gatherings[index].address.node == node {
        let former = session.gatherings[index]
        session.gatherings[index] = AutoJoin(address: former.address, since: now)
        if former.isUnwelcoming {
          session.gatherings[index].isUnwelcoming = true
          session.gatherings[index].failures = former.failures
          session.gatherings[index].pausedUntil = former.pausedUntil
        }
        if session.gatherings[index].address < session.address { session.grewAt = now }
      }
      session.gatherAt = .zero
    }
  }

  /// Schedules a check of auto-join after a node became unreachable, because another application may now be the first
  /// to invite.
  func wakeGatherings() {
    for session in sessions where session.gathers { session.gatherAt = .zero }
  }

  // MARK: Received invitations

  /// The session that has the inviter's address in its auto-join, and the index of that address; nil if there is none.
  private func gatheringSession(of invitation: IncomingInvitation) -> (session: LocalSession, index: Int)? {
    for session in sessions where session.isOpen && session.address.endpoint == invitation.to {
      if let index = session.gathering(invitation.from) { return (session, index) }
    }
    return nil
  }

  /// Whether the inviter's address is in the auto-join of a session. Then the application is not asked to accept.
  func isGathered(_ invitation: IncomingInvitation) -> Bool {
    guard let (session, _) = gatheringSession(of: invitation) else { return false }
    session.gatherAt = .zero
    return true
  }

  /// Whether the inviter is refused at present, because its invitation was accepted recently and no welcome followed.
  func isUnwelcoming(_ invitation: IncomingInvitation, _ now: Instant) -> Bool {
    guard let (session, index) = gatheringSession(of: invitation) else { return false }
    return session.gatherings[index].isUnwelcoming && session.gatherings[index].pausedUntil > now
  }

  /// Accepts an invitation by the rules of auto-join, as if the inviter's address were in the session's auto-join: as
  /// soon as possible. If the inviter is alone and this session has members, the session first invites the inviter. The
  /// inviter's invitation is then accepted only after `SessionLimits.answerTime`.
  public func acceptGathered(_ invitation: InvitationHandle, into handle: SessionHandle) throws(SessionError) {
    guard let index = incoming.firstIndex(where: { $0.handle == invitation && $0.phase == .asked }),
      let session = session(handle), session.address.endpoint == incoming[index].to
    else { throw .unknown }
    session.gathers = true
    incoming[index].acceptAt = .zero
    session.gatherAt = .zero
  }

  /// Accepts the invitations to the session's endpoint whose acceptance by auto-join is due.
  private func acceptGathered(_ session: LocalSession, _ now: Instant) {
    for index in incoming.indices
    where incoming[index].to == session.address.endpoint && incoming[index].phase == .asked {
      guard let acceptAt = incoming[index].acceptAt, !session.isJoining else { continue }
      // If another session of the application has the inviter's address in its auto-join, that session accepts the
      // invitation.
      if let other = gatheringSession(of: incoming[index])?.session, other !== session { continue }
      if acceptAt == .zero && mayComeAlone(incoming[index], session) {
        incoming[index].acceptAt = now + SessionLimits.answerTime
        // The inviter is invited only once. An invitation that is refused at once, e.g. because the other end offers no
        // service, would be repeated without a pause.
        if session.gathering(incoming[index].from) == nil { try? beginGathering(incoming[index].from, session, now) }
        if let place = session.gathering(incoming[index].from) { session.gatherings[place].isAsking = true }
      } else if acceptAt <= now {
        if (try? accept(incoming[index].handle, into: session.handle, now: now)) != nil { continue }
        // An acceptance that failed is tried again later.
        incoming[index].acceptAt = now + SessionLimits.answerTime
      }
      session.gatherAt = min(session.gatherAt, incoming[index].acceptAt ?? .never)
    }
  }

  /// Whether the inviter can join this session alone, without a merge of two sessions. An inviter that is already a
  /// member is included, because it may have sent the invitation before it joined.
  private func mayComeAlone(_ invitation: IncomingInvitation, _ session: LocalSession) -> Bool {
    !session.isAlone && !session.table.contains(invitation.session)
      && (invitation.memberCount == 1 || session.table.isJoined(invitation.from))
  }

  /// Handles an invitation of `address` that was accepted, and whose welcome did not arrive in time.
  func welcomeMissed(_ session: LocalSession, _ address: MemberAddress, _ now: Instant) {
    guard let index = session.gathering(address) else { return }
    session.gatherings[index].isUnwelcoming = true
    session.grewAt = now
    fail(session, index, SessionLimits.sweepTime, now)
  }

  // MARK: Sent invitations

  /// Sends the invitations that are due.
  func tendGatherings(_ now: Instant) {
    for session in sessions where session.gatherAt <= now { tend(session, now) }
  }

  private func tend(_ session: LocalSession, _ now: Instant) {
    session.gatherAt = .never
    guard session.isOpen else { return }
    session.gatherings.removeAll { session.isMet($0.address) }
    acceptGathered(session, now)
    if session.isJoining { return }
    var due = dueGatherings(session, turn(of: session), now)
    var waiting = waitingInvitations(of: session, now)
    if waiting == 0 && due.isEmpty { session.gatherWindow = 1 }
    while waiting < session.gatherWindow, !due.isEmpty {
      let gathering = due.removeFirst()
      guard hasRoom(for: gathering.address.node, session.owner, now) else {
        session.gatherAt = min(session.gatherAt, now + .seconds(1))
        continue
      }
      let isInvited = (try? invite(gathering.address, into: session.handle, isGathering: true, now: now)) != nil
      guard isInvited else {
        // The session is full, or this member is not allowed to admit.
        session.gatherAt = min(session.gatherAt, now + SessionLimits.sweepTime)
        guard isFormer(gathering.address, session) else { return }
        // This former member gets no slot, because its branch of the admission tree has its share. An address that was
        // never a member may still get a slot. At the next check another former member is tried first, because this one
        // has failed once more.
        due.removeAll { isFormer($0.address, session) }
        if let index = session.gathering(gathering.address) {
          session.gatherings[index].failures = min(gathering.failures + 1, AutoJoin.failuresMax)
        }
        continue
      }
      if let index = session.gathering(gathering.address) { session.gatherings[index].isAsking = false }
      session.gatherAt = min(session.gatherAt, now + SessionLimits.answerTime)
      waiting += 1
    }
  }

  private func isFormer(_ address: MemberAddress, _ session: LocalSession) -> Bool {
    !session.table.isJoined(address) && !session.table.records(of: address).isEmpty
  }

  /// The number of nodes that have to invite before this session. Nil if this session does not invite, because it is
  /// not allowed to admit, or because another session of this node invites for both.
  private func turn(of session: LocalSession) -> UInt64? {
    if session.isAlone {
      return nodeCount(
        session.gatherings.filter {
          $0.address < session.address && $0.failures == 0 && isInReach($0.address.node)
        }.map { $0.address.node })
    }
    guard session.table.right(of: session.address) != nil else { return nil }
    if session.table.rules.onlyFounderAdmits { return 0 }
    for other in sessions where other.isOpen && other.gathers && other.address < session.address {
      if session.table.contains(other.table.id) && session.table.isJoined(other.address) { return nil }
    }
    return nodeCount(
      session.pairs.filter { $0.address < session.address && $0.phase != .away }.map { $0.address.node })
  }

  private func nodeCount(_ nodes: [NodeID]) -> UInt64 {
    UInt64(nodes.indices.filter { !nodes[..<$0].contains(nodes[$0]) }.count)
  }

  /// The auto-join addresses whose invitations are due, in the order in which they are invited. Sets `gatherAt` to the
  /// time when the next address is due.
  private func dueGatherings(_ session: LocalSession, _ turn: UInt64?, _ now: Instant) -> [AutoJoin] {
    var due: [AutoJoin] = []
    for gathering in session.gatherings where isInReach(gathering.address.node) {
      if outgoing.contains(where: {
        $0.session == session.handle && $0.to == gathering.address && !$0.isEnding
      }) {
        continue
      }
      let at = gathering.isAsking ? now : max(gathering.pausedUntil, time(of: gathering, session, turn))
      if at <= now { due.append(gathering) } else { session.gatherAt = min(session.gatherAt, at) }
    }
    // The application at a lower address should have invited and did not, so that address comes last. The other
    // addresses are in ascending order, so that all applications invite the same session first.
    func isLate(_ gathering: AutoJoin) -> Bool { session.isAlone && gathering.address < session.address }
    return due.inOrder { a, b in
      if a.isAsking != b.isAsking { return a.isAsking }
      if a.failures != b.failures { return a.failures < b.failures }
      if isLate(a) != isLate(b) { return isLate(b) }
      return a.address < b.address
    }
  }

  private func time(of gathering: AutoJoin, _ session: LocalSession, _ turn: UInt64?) -> Instant {
    // Both ends of a `connect` invite at once, because possibly only one of the two can reach the other.
    if isIntroduced(session, gathering.address) { return gathering.since }
    guard let turn else { return .never }
    // A member is invited later than other addresses, because a member that did not restart connects without an
    // invitation.
    let isMember = session.table.isJoined(gathering.address)
    if turn == 0 && !isMember { return session.isAlone ? gathering.since + SessionLimits.aloneTime : gathering.since }
    let since = max(gathering.since, min(session.grewAt, gathering.since + SessionLimits.growTime))
    return since + SessionLimits.takeOverTime * (isMember ? turn + 1 : turn)
  }

  /// The number of recent auto-join invitations whose invitees have not connected yet. These invitations delay the next
  /// one.
  private func waitingInvitations(of session: LocalSession, _ now: Instant) -> Int {
    var waiting = 0
    for invitation in outgoing
    where invitation.isGathering && invitation.session == session.handle && !invitation.isEnding {
      let until = invitation.askedAt + SessionLimits.answerTime * (invitation.phase == .inviting ? 1 : 2)
      if until <= now { continue }
      waiting += 1
      session.gatherAt = min(session.gatherAt, until)
    }
    return waiting
  }

  /// Whether one more auto-join invitation can be sent to a node. To make room, an invitation of the user with the most
  /// can be evicted. If that is not possible, an old unanswered invitation of the same application ends, so that the
  /// next attempt finds room.
  private func hasRoom(for node: NodeID, _ owner: SessionOwner, _ now: Instant) -> Bool {
    let gathering = outgoing.indices.filter { outgoing[$0].isGathering && !outgoing[$0].isEnding }
    let toNode = gathering.filter { outgoing[$0].to.node == node }
    // A recent invitation cannot be evicted, because its acceptance may be on its way.
    let entries = toNode.map { index in
      FairPlaces.Entry(
        holder: outgoing[index].owner.holder, since: outgoing[index].askedAt,
        mayYield: outgoing[index].phase == .inviting
          && now - outgoing[index].askedAt >= SessionLimits.answerTime)
    }
    let place = SessionLimits.gatherInvitationsPerNode.place(for: owner.holder, among: entries, now: now)
    let mayGoThere = place != .none && mayInvite(owner, to: node, now)
    if mayGoThere && mayInvite(owner) {
      if case .instead(of: let index) = place { end(&outgoing[toNode[index]], .timedOut, telling: .timedOut, now) }
      return true
    }
    let oldest = gathering.first {
      outgoing[$0].owner.application == owner.application && (mayGoThere || outgoing[$0].to.node == node)
        && outgoing[$0].phase == .inviting && outgoing[$0].askedAt + SessionLimits.giveWayTime <= now
    }
    if let oldest { end(&outgoing[oldest], .timedOut, telling: .timedOut, now) }
    return false
  }

  // MARK: Results

  /// Notes that an auto-join invitation was accepted. `isMerge` is true if the invitee had a session with members,
  /// which was merged with this one.
  func gatheringAccepted(_ invitation: OutgoingInvitation, _ session: LocalSession, isMerge: Bool) {
    guard invitation.isGathering else { return }
    session.gatherWindow =
      isMerge ? 1 : min(2 * session.gatherWindow, SessionLimits.gatherInvitationsPerSessionMax)
    session.gatherAt = .zero
  }

  /// Notes that an auto-join invitation ended. An address that declined is not invited again.
  func gatheringEnded(_ invitation: OutgoingInvitation, _ outcome: InvitationOutcome, _ now: Instant) {
    guard let session = session(invitation.session) else { return }
    session.gatherAt = .zero
    guard let index = session.gathering(invitation.to) else { return }
    switch outcome {
    case .connected, .cancelled, .sessionEnded: break
    case .declined: session.gatherings.remove(at: index)
    case .busy: fail(session, index, .milliseconds(500), now)
    case .timedOut, .full, .noService, .incompatible: fail(session, index, SessionLimits.sweepTime, now)
    }
  }

  /// Pauses the invitations to an address after a failed one. The pause doubles with each failure. The pause differs
  /// between addresses, so that not all addresses are invited at the same time.
  private func fail(_ session: LocalSession, _ index: Int, _ pause: TimeSpan, _ now: Instant) {
    let gathering = session.gatherings[index]
    session.gatherings[index].failures = min(gathering.failures + 1, AutoJoin.failuresMax)
    let longer = Backoff.pause(after: Int(gathering.failures), first: pause, longest: SessionLimits.gatherPauseMax)
    let spread = UInt64((gathering.address.endpoint ^ session.address.endpoint) & 255)
    session.gatherings[index].pausedUntil = now + longer + longer * spread / 1024
    session.gatherAt = .zero
  }
}

extension LocalSession {
  /// Whether auto-join need not invite an address. The address is then a member that is connected or was rejected, or
  /// it has no member slot. A member in the handshake is not included, because a restarted member does not know that it
  /// is a member.
  fileprivate func isMet(_ address: MemberAddress) -> Bool {
    guard table.isJoined(address) else { return false }
    guard let index = position(of: address) else { return true }
    return pairs[index].phase == .connected || pairs[index].verdict == .rejected
  }

  func gathering(_ address: MemberAddress) -> Int? { gatherings.firstIndex { $0.address == address } }
}
