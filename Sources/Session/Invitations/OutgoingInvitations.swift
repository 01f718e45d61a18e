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
  fileprivate(set) var askedAt: Instant
  /// Whether the invitee has invited this end too and has the lower address, so that the invitee's invitation decides
  /// about both.
  fileprivate(set) var isCrossed = false
  fileprivate(set) var deadline: Instant
  fileprivate(set) var phase = Phase.inviting
  fileprivate(set) var dueAt: Instant

  init(
    _ handle: InvitationHandle, of session: SessionHandle, _ owner: SessionOwner, origin: SessionID, from: UInt32,
    to: MemberAddress, context: [UInt8], isGathering: Bool, for time: TimeSpan, now: Instant
  ) {
    self.handle = handle
    self.session = session
    self.owner = owner
    self.origin = origin
    self.from = from
    self.to = to
    self.context = context
    self.isGathering = isGathering
    askedAt = now
    deadline = now + time
    dueAt = now
  }

  var isEnding: Bool {
    if case .ending = phase { return true }
    return false
  }
}

/// The invitations that this node sent and whose invitees must still be notified, sans-IO, oldest first.
struct OutgoingInvitations {
  private(set) var all: [OutgoingInvitation] = []
  /// The rates of invitations that ended early, one for each pair of user and node.
  private var brief = SourceBuckets(SessionLimits.briefInvitations)

  mutating func add(_ invitation: OutgoingInvitation) { all.append(invitation) }

  private func index(_ handle: InvitationHandle) -> Int? { all.firstIndex { $0.handle == handle } }

  subscript(handle: InvitationHandle) -> OutgoingInvitation? { index(handle).map { all[$0] } }

  // MARK: Slots

  /// Whether there is a slot for one more invitation to a node, and the invitation to evict for it. An application's
  /// own invitation is not evicted, because the application can cancel it. An accepted invitation can be evicted after
  /// `SessionLimits.giveWayTime`: the inviting application may be what keeps the invitee from becoming a member.
  func slot(
    for owner: SessionOwner, to node: NodeID, _ now: Instant
  ) -> (isThere: Bool, victim: InvitationHandle?) {
    if !owner.isFavoured && brief.next(source(owner, node)) > now { return (false, nil) }
    let standing = all.filter { $0.to.node == node && !$0.isEnding }
    let entries = standing.map { invitation in
      FairSlots.Entry(
        holder: invitation.owner.holder, since: invitation.askedAt,
        mayYield: invitation.phase == .inviting || now - invitation.askedAt >= SessionLimits.giveWayTime)
    }
    switch SessionLimits.invitationsPerNode.choose(for: owner.holder, among: entries, now: now) {
    case .free: return (true, nil)
    case .none: return (false, nil)
    case .instead(of: let index):
      let victim = standing[index]
      return victim.owner.holder == owner.holder ? (false, nil) : (true, victim.handle)
    }
  }

  /// The key of a user and a node in `brief`.
  private func source(_ owner: SessionOwner, _ node: NodeID) -> UInt64 {
    UInt64(owner.user) &* 0x9E37_79B9_7F4A_7C15 ^ node.high ^ node.low
  }

  /// Notes that an invitation ended. If the invitee's node still charges the invitation to this node, the inviting user
  /// is charged here.
  private mutating func noteBrief(_ invitation: OutgoingInvitation, _ outcome: InvitationOutcome, _ now: Instant) {
    switch outcome {
    case .connected, .busy, .full, .noService, .incompatible: return
    case .declined, .timedOut, .cancelled, .sessionEnded: break
    }
    if invitation.owner.isFavoured || now - invitation.askedAt >= SessionLimits.invitationStandTime { return }
    _ = brief.take(source(invitation.owner, invitation.to.node), now: now)
  }

  // MARK: Changes

  /// Notes that the invitee's own invitation decides about both.
  mutating func cross(_ handle: InvitationHandle) {
    if let index = index(handle) { all[index].isCrossed = true }
  }

  /// Schedules the welcome of an invitee that has accepted. `admission` is this node's half of the invitee's ticket;
  /// nil if the sessions were merged.
  mutating func welcome(_ handle: InvitationHandle, _ admission: WelcomeMessage.Admission?, _ now: Instant) {
    guard let index = index(handle) else { return }
    all[index].phase = .welcoming(admission)
    all[index].askedAt = now
    all[index].dueAt = now
  }

  /// Ends an invitation. If there is a `reason`, the invitee is notified of it. Returns the invitation as it was, nil
  /// if it is unknown or has ended already.
  mutating func end(
    _ handle: InvitationHandle, _ outcome: InvitationOutcome, telling reason: EndMessage.Reason?, _ now: Instant
  ) -> OutgoingInvitation? {
    guard let index = index(handle), !all[index].isEnding else { return nil }
    let former = all[index]
    noteBrief(former, outcome, now)
    all[index].phase = .ending(reason ?? .cancelled)
    all[index].deadline = reason == nil ? .zero : now + SessionLimits.settleTime
    all[index].dueAt = reason == nil ? .never : now
    return former
  }

  /// Gives up notifying the invitees for which the time has passed, and returns the invitations that have timed out.
  mutating func expire(_ now: Instant) -> [InvitationHandle] {
    for index in all.indices where all[index].deadline <= now && all[index].isEnding { all[index].dueAt = .never }
    return all.filter { $0.deadline <= now && !$0.isEnding }.map { $0.handle }
  }

  /// Removes the invitations that are over, if the invitee was notified or need not be.
  mutating func removeEnded() { all.removeAll { $0.isEnding && $0.dueAt == .never } }

  // MARK: Messages

  mutating func sent(_ handle: InvitationHandle) {
    if let index = index(handle) { all[index].dueAt = .never }
  }

  /// Schedules the last message again, because it was not delivered.
  mutating func repeatMessage(_ handle: InvitationHandle, at time: Instant) {
    if let index = index(handle) { all[index].dueAt = time }
  }

  /// The time when an invitation times out or a message is due. Messages that are due already are not included, because
  /// they wait for a route.
  func nextDeadline(now: Instant) -> Instant {
    all.reduce(.never) { min($0, min($1.deadline, $1.dueAt > now ? $1.dueAt : .never)) }
  }
}
