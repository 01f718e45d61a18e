import Primitives

/// An address of auto-join: until it is a member, one of the two ends invites the other.
struct Gathering {
  static let failuresMax: UInt8 = 16

  let address: MemberAddress
  /// The time since which the address is known and its node is reachable.
  var since: Instant
  /// The earliest time of the next invitation.
  var pausedUntil = Instant.zero
  /// Failed invitations to the address since its node became reachable.
  var failures: UInt8 = 0
  /// Whether the address invited this session and sent no welcome. While it is paused, its invitations are answered
  /// busy.
  var isUnwelcoming = false
  /// Whether the address is alone and has invited this session, which has members. It is invited at once.
  var isAsking = false
}

/// Auto-join: sessions that gather addresses. It minimises the numbers of invitations and of merged sessions, because a
/// table holds only a limited number. Among applications that start at once, the one with the lowest address invites
/// all others.
///
/// - An application that is alone invites the known addresses. If lower ones are reachable, it first waits
///   `takeOverTime` for each of their nodes.
/// - In a session the member with the lowest address invites at once. Another member waits `takeOverTime` for each node
///   with lower members. The wait starts again when the session grows.
/// - If an application that is alone invites a member, the member invites it instead. So a session grows by tickets,
///   not by merges.
/// - An unanswered invitation delays the next one for `answerTime`. A failed invitation is repeated with back-off.
extension Sessions {
  /// Adds an address to the auto-join of the session; see above. Whichever end invites, the other one accepts without
  /// asking its application if it gathers this address too. Auto-join ends when the address is a member or declines, or
  /// with the session. It waits for an unreachable address.
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
    session.gatherings.insert(Gathering(address: address, since: now), at: place)
    if address < session.address { session.grewAt = now }
  }

  /// Makes room for an address of `newcomer` among those that an application gathers. Returns false if none can be
  /// evicted.
  ///
  /// The links over which the nodes are reached share the places, like those of invitations (`FairPlaces`). An address
  /// whose invitations failed is evicted first, unless its link has fewer places than the new address's link. Otherwise
  /// the newest address of the link with the most places is evicted, if that link has more places than the new one's.
  /// Among equally new addresses it is the highest, because the lowest ones invite. Addresses of a higher standing
  /// stay. An address of this node evicts only one whose invitations failed.
  private func forgetOneGathering(of application: UInt32, for newcomer: NodeID) -> Bool {
    struct Rival {
      let session: Int, index: Int, link: Int
      let gathering: Gathering
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

  /// Starts over with the addresses of a node that became reachable or restarted.
  func restartGatherings(of node: NodeID, _ now: Instant) {
    for session in sessions where session.gathers {
      for index in session.gatherings.indices where session.gatherings[index].address.node == node {
        let former = session.gatherings[index]
        session.gatherings[index] = Gathering(address: former.address, since: now)
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

  /// Checks auto-join again after a node became unreachable: others may have its turn.
  func wakeGatherings() {
    for session in sessions where session.gathers { session.gatherAt = .zero }
  }

  // MARK: Received invitations

  /// The session that gathers the inviter's address.
  private func gatheringSession(of invitation: IncomingInvitation) -> (session: LocalSession, index: Int)? {
    for session in sessions where session.isOpen && session.address.endpoint == invitation.to {
      if let index = session.gathering(invitation.from) { return (session, index) }
    }
    return nil
  }

  /// Whether the inviter's address is gathered. Then the application is not asked.
  func isGathered(_ invitation: IncomingInvitation) -> Bool {
    guard let (session, _) = gatheringSession(of: invitation) else { return false }
    session.gatherAt = .zero
    return true
  }

  /// Whether the inviter is paused because it recently invited this session and sent no welcome.
  func isUnwelcoming(_ invitation: IncomingInvitation, _ now: Instant) -> Bool {
    guard let (session, index) = gatheringSession(of: invitation) else { return false }
    return session.gatherings[index].isUnwelcoming && session.gatherings[index].pausedUntil > now
  }

  /// Accepts an invitation as if the session gathered the inviter's address: as soon as possible. If an application
  /// that is alone has invited a session with members, the session first invites it and waits for
  /// `SessionLimits.answerTime`.
  public func acceptGathered(_ invitation: InvitationHandle, into handle: SessionHandle) throws(SessionError) {
    guard let index = incoming.firstIndex(where: { $0.handle == invitation && $0.phase == .asked }),
      let session = session(handle), session.address.endpoint == incoming[index].to
    else { throw .unknown }
    session.gathers = true
    incoming[index].acceptAt = .zero
    session.gatherAt = .zero
  }

  /// Accepts the invitations that are due.
  private func acceptGathered(_ session: LocalSession, _ now: Instant) {
    for index in incoming.indices
    where incoming[index].to == session.address.endpoint && incoming[index].phase == .asked {
      guard let acceptAt = incoming[index].acceptAt, !session.isJoining else { continue }
      // Another session of the application may gather the inviter's address.
      if let other = gatheringSession(of: incoming[index])?.session, other !== session { continue }
      if acceptAt == .zero && mayComeAlone(incoming[index], session) {
        incoming[index].acceptAt = now + SessionLimits.answerTime
        // Only once: an invitation that is refused at once, e.g. because the other end offers no service, would be
        // repeated at once.
        if session.gathering(incoming[index].from) == nil { try? beginGathering(incoming[index].from, session, now) }
        if let place = session.gathering(incoming[index].from) { session.gatherings[place].isAsking = true }
      } else if acceptAt <= now {
        if (try? accept(incoming[index].handle, into: session.handle, now: now)) != nil { continue }
        // An acceptance that failed is retried.
        incoming[index].acceptAt = now + SessionLimits.answerTime
      }
      session.gatherAt = min(session.gatherAt, incoming[index].acceptAt ?? .never)
    }
  }

  /// Whether the inviter can join this session alone, without a merge. An inviter that is a member already may have
  /// sent its invitation before it joined.
  private func mayComeAlone(_ invitation: IncomingInvitation, _ session: LocalSession) -> Bool {
    !session.isAlone && !session.table.contains(invitation.session)
      && (invitation.memberCount == 1 || session.table.isJoined(invitation.from))
  }

  /// Handles an accepted invitation without a welcome.
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
        // The session is full, or this member may not admit.
        session.gatherAt = min(session.gatherAt, now + SessionLimits.sweepTime)
        guard isFormer(gathering.address, session) else { return }
        // The branch of this former member has its share of the places. An address that was never a member may still
        // get one. Another former member is tried next time.
        due.removeAll { isFormer($0.address, session) }
        if let index = session.gathering(gathering.address) {
          session.gatherings[index].failures = min(gathering.failures + 1, Gathering.failuresMax)
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

  /// The number of nodes that invite before this session. Nil if this session does not invite, because it may not admit
  /// or because another session of this node invites for both.
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

  /// The addresses that are due, in the order of their invitations. Updates the time of the next check.
  private func dueGatherings(_ session: LocalSession, _ turn: UInt64?, _ now: Instant) -> [Gathering] {
    var due: [Gathering] = []
    for gathering in session.gatherings where isInReach(gathering.address.node) {
      if outgoing.contains(where: {
        $0.session == session.handle && $0.to == gathering.address && !$0.isEnding
      }) {
        continue
      }
      let at = gathering.isAsking ? now : max(gathering.pausedUntil, time(of: gathering, session, turn))
      if at <= now { due.append(gathering) } else { session.gatherAt = min(session.gatherAt, at) }
    }
    // An application that had its turn and did not invite comes last. Among several sessions, all others invite the
    // same one.
    func isLate(_ gathering: Gathering) -> Bool { session.isAlone && gathering.address < session.address }
    return due.inOrder { a, b in
      if a.isAsking != b.isAsking { return a.isAsking }
      if a.failures != b.failures { return a.failures < b.failures }
      if isLate(a) != isLate(b) { return isLate(b) }
      return a.address < b.address
    }
  }

  private func time(of gathering: Gathering, _ session: LocalSession, _ turn: UInt64?) -> Instant {
    // Both ends of an introduction invite, because possibly only one of them can reach the other.
    if isIntroduced(session, gathering.address) { return gathering.since }
    guard let turn else { return .never }
    // A member connects without an invitation, unless it restarted.
    let isMember = session.table.isJoined(gathering.address)
    if turn == 0 && !isMember { return session.isAlone ? gathering.since + SessionLimits.aloneTime : gathering.since }
    let since = max(gathering.since, min(session.grewAt, gathering.since + SessionLimits.growTime))
    return since + SessionLimits.takeOverTime * (isMember ? turn + 1 : turn)
  }

  /// The number of invitations that delay the next one.
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

  /// Whether one more invitation may be sent to a node. It may evict one of the user with the most. If none can be
  /// evicted, an unanswered invitation of the application itself ends, which makes room for the next attempt.
  private func hasRoom(for node: NodeID, _ owner: SessionOwner, _ now: Instant) -> Bool {
    let gathering = outgoing.indices.filter { outgoing[$0].isGathering && !outgoing[$0].isEnding }
    let toNode = gathering.filter { outgoing[$0].to.node == node }
    // An invitation that was just sent may be accepted in a moment.
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

  /// Notes that an invitation was accepted, by an application that was alone or by a session that was merged with this
  /// one.
  func gatheringAccepted(_ invitation: OutgoingInvitation, _ session: LocalSession, isMerge: Bool) {
    guard invitation.isGathering else { return }
    session.gatherWindow =
      isMerge ? 1 : min(2 * session.gatherWindow, SessionLimits.gatherInvitationsPerSessionMax)
    session.gatherAt = .zero
  }

  /// Notes that an invitation ended. An address that declined is not invited again.
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

  /// Pauses the invitations of an address. The pause doubles with each failure and differs from address to address.
  private func fail(_ session: LocalSession, _ index: Int, _ pause: TimeSpan, _ now: Instant) {
    let gathering = session.gatherings[index]
    session.gatherings[index].failures = min(gathering.failures + 1, Gathering.failuresMax)
    let doubled = pause * ((1 as UInt64) << UInt64(gathering.failures))
    let longer = min(doubled, SessionLimits.gatherPauseMax)
    let spread = UInt64((gathering.address.endpoint ^ session.address.endpoint) & 255)
    session.gatherings[index].pausedUntil = now + longer + longer * spread / 1024
    session.gatherAt = .zero
  }
}

extension LocalSession {
  /// Whether an address is a member that is connected, or will not be connected. A member that restarted does not know
  /// that it is a member.
  fileprivate func isMet(_ address: MemberAddress) -> Bool {
    guard table.isJoined(address) else { return false }
    guard let index = position(of: address) else { return true }
    return pairs[index].phase == .connected || pairs[index].verdict == .rejected
  }

  func gathering(_ address: MemberAddress) -> Int? { gatherings.firstIndex { $0.address == address } }
}
