import Primitives

/// An address that a session gathers: until it is a member, one of the two invites the other.
struct Gathering {
  static let failuresMax: UInt8 = 16

  let address: MemberAddress
  /// Since when it is known, and its node in reach.
  var since: Instant
  /// It is not invited before this time.
  var pausedUntil = Instant.zero
  /// Invitations to it that came to nothing since it came into reach.
  var failures: UInt8 = 0
  /// It invited this session and never welcomed it: while it is paused its invitations are answered busy.
  var isUnwelcoming = false
  /// It is alone and has invited this session, which has members: it is invited at once.
  var isAsking = false
}

/// Sessions that gather: each invites as few as possible, and as few sessions as possible are merged, because a table holds
/// only so many. So of applications that begin at once the one with the lowest address invites all others.
///
/// - An application that is alone invites those that it knows when nobody lower is there to do so: one node with lower
///   addresses after the other has `takeOverTime`.
/// - Of a session's members the lowest invites; it waits for nobody. The others, by the number of nodes with lower members,
///   take over after `takeOverTime` for each, in which neither the session has grown nor the address has joined.
/// - Whoever is alone and invites a member is invited by it: so a session grows by tickets, not by merges.
/// - An invitation that is not answered holds up the next one for `answerTime`, and one that failed is repeated
///   after longer and longer pauses.
extension Sessions {
  /// Brings an address into the session; see above. Whichever invites, the other end accepts without a question if it
  /// gathers this one too. It lasts until the address is a member, declines, or the session ends; an address out of reach
  /// is waited for.
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

  /// Makes room for an address of `newcomer` among those that an application gathers; false when none gives way.
  ///
  /// The places are shared by the links over which the nodes are reached, as those of invitations (`FairPlaces`). An address
  /// that was invited in vain gives way to one of a link with no more places; then the newest one of the link with most, if
  /// that has more, and of several the highest, because the lowest ones invite. Addresses of a higher standing stay. An
  /// address of this node takes only the place of one that was invited in vain.
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

  /// A node is in reach, or another life of it: its addresses are new.
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

  /// A node is out of reach: others may have its turn.
  func wakeGatherings() {
    for session in sessions where session.gathers { session.gatherAt = .zero }
  }

  // MARK: Invitations that came

  /// The session that gathers whom an invitation is from.
  private func gatheringSession(of invitation: IncomingInvitation) -> (session: LocalSession, index: Int)? {
    for session in sessions where session.isOpen && session.address.endpoint == invitation.to {
      if let index = session.gathering(invitation.from) { return (session, index) }
    }
    return nil
  }

  /// Whether the application is not to be asked: the address is gathered.
  func isGathered(_ invitation: IncomingInvitation) -> Bool {
    guard let (session, _) = gatheringSession(of: invitation) else { return false }
    session.gatherAt = .zero
    return true
  }

  /// Whether it is from an address that lately invited and did not welcome.
  func isUnwelcoming(_ invitation: IncomingInvitation, _ now: Instant) -> Bool {
    guard let (session, index) = gatheringSession(of: invitation) else { return false }
    return session.gatherings[index].isUnwelcoming && session.gatherings[index].pausedUntil > now
  }

  /// Accepts an invitation as one of an address that the session gathers: as soon as it can, and if whoever is alone has
  /// invited a session with members only after a while in which it is invited itself.
  public func acceptGathered(_ invitation: InvitationHandle, into handle: SessionHandle) throws(SessionError) {
    guard let index = incoming.firstIndex(where: { $0.handle == invitation && $0.phase == .asked }),
      let session = session(handle), session.address.endpoint == incoming[index].to
    else { throw .unknown }
    session.gathers = true
    incoming[index].acceptAt = .zero
    session.gatherAt = .zero
  }

  /// Accepts the invitations whose time has come.
  private func acceptGathered(_ session: LocalSession, _ now: Instant) {
    for index in incoming.indices
    where incoming[index].to == session.address.endpoint && incoming[index].phase == .asked {
      guard let acceptAt = incoming[index].acceptAt, !session.isJoining else { continue }
      // Another session of the application may gather whom it is from.
      if let other = gatheringSession(of: incoming[index])?.session, other !== session { continue }
      if acceptAt == .zero && mayComeAlone(incoming[index], session) {
        incoming[index].acceptAt = now + SessionLimits.answerTime
        // Once: one that is refused at once, as of somebody who offers no service, would be repeated at once.
        if session.gathering(incoming[index].from) == nil { try? beginGathering(incoming[index].from, session, now) }
        if let place = session.gathering(incoming[index].from) { session.gatherings[place].isAsking = true }
      } else if acceptAt <= now {
        if (try? accept(incoming[index].handle, into: session.handle, now: now)) != nil { continue }
        // What could not be accepted is tried again.
        incoming[index].acceptAt = now + SessionLimits.answerTime
      }
      session.gatherAt = min(session.gatherAt, incoming[index].acceptAt ?? .never)
    }
  }

  /// Whoever is alone does not need a merge; and whoever is a member already may have invited before it was.
  private func mayComeAlone(_ invitation: IncomingInvitation, _ session: LocalSession) -> Bool {
    !session.isAlone && !session.table.contains(invitation.session)
      && (invitation.memberCount == 1 || session.table.isJoined(invitation.from))
  }

  /// An invitation was accepted, and no welcome came.
  func welcomeMissed(_ session: LocalSession, _ address: MemberAddress, _ now: Instant) {
    guard let index = session.gathering(address) else { return }
    session.gatherings[index].isUnwelcoming = true
    session.grewAt = now
    fail(session, index, SessionLimits.sweepTime, now)
  }

  // MARK: Whom to invite

  /// Invites whom it is time to invite.
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
        // The session is full, or may not admit.
        session.gatherAt = min(session.gatherAt, now + SessionLimits.sweepTime)
        guard isFormer(gathering.address, session) else { return }
        // The branch of this former member has its share of the places. Newcomers may find one, and another former member next time.
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

  /// How many others are to invite before this session; nil when another one of this node does for both.
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

  /// Those whose time has come, in the order in which they are invited; notes when the next one's comes.
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
    // Who was to invite and did not comes last; of several sessions the same one is invited by all others.
    func isLate(_ gathering: Gathering) -> Bool { session.isAlone && gathering.address < session.address }
    return due.inOrder { a, b in
      if a.isAsking != b.isAsking { return a.isAsking }
      if a.failures != b.failures { return a.failures < b.failures }
      if isLate(a) != isLate(b) { return isLate(b) }
      return a.address < b.address
    }
  }

  private func time(of gathering: Gathering, _ session: LocalSession, _ turn: UInt64?) -> Instant {
    // Of those that were introduced to each other both invite: only one of them may be in reach of the other.
    if isIntroduced(session, gathering.address) { return gathering.since }
    guard let turn else { return .never }
    // A member is met, unless it started again.
    let isMember = session.table.isJoined(gathering.address)
    if turn == 0 && !isMember { return session.isAlone ? gathering.since + SessionLimits.aloneTime : gathering.since }
    let since = max(gathering.since, min(session.grewAt, gathering.since + SessionLimits.growTime))
    return since + SessionLimits.takeOverTime * (isMember ? turn + 1 : turn)
  }

  /// Invitations that hold up the next one.
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

  /// Whether one more invitation may go to a node. One of the user with most gives way; if none does, one of the application's
  /// own that nobody answers, for the next time.
  private func hasRoom(for node: NodeID, _ owner: SessionOwner, _ now: Instant) -> Bool {
    let gathering = outgoing.indices.filter { outgoing[$0].isGathering && !outgoing[$0].isEnding }
    let toNode = gathering.filter { outgoing[$0].to.node == node }
    // One that was sent just now may be accepted in a moment.
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

  // MARK: What becomes of it

  /// An invitation was accepted: by somebody who was alone, or by a session with which this one was merged.
  func gatheringAccepted(_ invitation: OutgoingInvitation, _ session: LocalSession, isMerge: Bool) {
    guard invitation.isGathering else { return }
    session.gatherWindow =
      isMerge ? 1 : min(2 * session.gatherWindow, SessionLimits.gatherInvitationsPerSessionMax)
    session.gatherAt = .zero
  }

  /// An invitation ended. Who declines is not asked again.
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

  /// The next invitation comes after a pause that doubles, and differs from one address to the other.
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
  /// Whether an address is a member with which this one is connected, or will not be. One that started again does not know
  /// that it is a member.
  fileprivate func isMet(_ address: MemberAddress) -> Bool {
    guard table.isJoined(address) else { return false }
    guard let index = position(of: address) else { return true }
    return pairs[index].phase == .connected || pairs[index].verdict == .rejected
  }

  func gathering(_ address: MemberAddress) -> Int? { gatherings.firstIndex { $0.address == address } }
}
