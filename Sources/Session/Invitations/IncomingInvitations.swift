import Primitives

/// A local session that an answer offers to merge with the inviter's session. The offer is signed once, when the
/// invitation is accepted. The table of the local session is read when the answer is sent.
struct MergeOffer: Equatable {
  let handle: SessionHandle
  /// The session for which this node's address is allowed to admit, and so to merge.
  let session: SessionID
  let signature: Signature
}

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
  fileprivate(set) var deadline: Instant
  fileprivate(set) var phase = Phase.asked
  /// The earliest time at which auto-join accepts the invitation without asking the application; nil if the application
  /// is asked.
  fileprivate(set) var acceptAt: Instant?
  fileprivate(set) var isWelcomed = false
  fileprivate(set) var answer: AnswerMessage?
  /// The time when the application accepted the invitation.
  fileprivate(set) var acceptedAt = Instant.never
  /// The time until which an ended invitation is still charged to its inviter.
  fileprivate(set) var keptUntil = Instant.zero
  /// The session that the answer offers to merge with the inviter's; nil without an offer.
  fileprivate(set) var offers: MergeOffer?
  fileprivate(set) var answerAt = Instant.never
  /// The time when the answer was last sent.
  fileprivate var answeredAt: Instant?

  init(
    _ handle: InvitationHandle, _ invite: InviteMessage, from node: NodeID, session: SessionID, now: Instant
  ) {
    self.handle = handle
    number = invite.number
    from = MemberAddress(node: node, endpoint: invite.from)
    to = invite.to
    origin = invite.origin
    self.session = session
    memberCount = invite.memberCount
    cameAt = now
    deadline = now + .seconds(UInt64(invite.seconds))
  }

  /// Refuses the invitation without asking the application.
  mutating func refuse(_ reason: InvitationAnswer, _ now: Instant) {
    phase = .over
    answer = AnswerMessage(number: number, answer: reason)
    answerAt = now
    deadline = min(deadline, now + SessionLimits.settleTime)
  }

  /// Lets auto-join accept the invitation as soon as possible.
  mutating func gather() { acceptAt = .zero }
}

/// The invitations that this node received, sans-IO, oldest first. An invitation that is over is kept while its answer
/// must still be sent, and while it is charged to its inviter.
struct IncomingInvitations {
  private(set) var all: [IncomingInvitation] = []

  mutating func add(_ invitation: IncomingInvitation) { all.append(invitation) }

  private func index(_ handle: InvitationHandle) -> Int? { all.firstIndex { $0.handle == handle } }

  subscript(handle: InvitationHandle) -> IncomingInvitation? { index(handle).map { all[$0] } }

  /// The invitation to which a node gave `number`.
  func invitation(_ number: UInt32, of node: NodeID) -> IncomingInvitation? {
    all.first { $0.number == number && $0.from.node == node }
  }

  /// The invitation with this handle, if the application has not answered it.
  func asked(_ handle: InvitationHandle) -> IncomingInvitation? {
    self[handle].flatMap { $0.phase == .asked ? $0 : nil }
  }

  // MARK: Slots

  /// Whether one more invitation of a node can be stored and answered, and the invitation to remove for it, even an
  /// ended one whose answer was not sent.
  func roomForAnswer(
    to node: NodeID, holder: (NodeID) -> Holder, _ now: Instant
  ) -> (isThere: Bool, victim: InvitationHandle?) {
    if all.count(where: { $0.from.node == node }) >= 2 * SessionLimits.invitationsPerNodeMax { return (false, nil) }
    let slots = FairSlots(capacity: SessionLimits.invitationsMax, standTime: SessionLimits.invitationStandTime)
    switch slots.choose(for: holder(node), among: all.map { entry(of: $0, holder, now) }, now: now) {
    case .free: return (true, nil)
    case .instead(let index): return (true, all[index].handle)
    case .none: return (false, nil)
    }
  }

  /// The number of invitations of a node that are charged to it.
  func chargedCount(of node: NodeID, _ now: Instant) -> Int {
    all.count { isCharged($0, now) && $0.from.node == node }
  }

  /// Whether there is a slot for `new` among `capacity` slots of its rivals, and the invitation to evict for it.
  func slot(
    for new: IncomingInvitation, _ capacity: Int, holder: (NodeID) -> Holder, _ now: Instant,
    isRival: (IncomingInvitation) -> Bool
  ) -> (isThere: Bool, victim: InvitationHandle?) {
    let rivals = all.filter { isCharged($0, now) && isRival($0) }
    let slots = FairSlots(capacity: capacity, standTime: SessionLimits.invitationStandTime)
    let entries = rivals.map { entry(of: $0, holder, now) }
    switch slots.choose(for: holder(new.from.node), among: entries, now: now) {
    case .free: return (true, nil)
    case .instead(let index): return (true, rivals[index].handle)
    case .none: return (false, nil)
    }
  }

  private func isCharged(_ invitation: IncomingInvitation, _ now: Instant) -> Bool {
    invitation.phase != .over || invitation.keptUntil > now
  }

  /// The entry that represents an invitation in `FairSlots`. An accepted invitation can be evicted only when
  /// `SessionLimits.welcomeTime` has passed since its acceptance.
  private func entry(
    of invitation: IncomingInvitation, _ holder: (NodeID) -> Holder, _ now: Instant
  ) -> FairSlots.Entry {
    let isJoining: Bool
    if case .accepted = invitation.phase { isJoining = true } else { isJoining = false }
    return FairSlots.Entry(
      holder: holder(invitation.from.node), since: invitation.cameAt,
      mayYield: !isJoining || now - invitation.acceptedAt >= SessionLimits.welcomeTime)
  }

  // MARK: Changes

  /// Notes that the application has accepted an invitation into a session. `offers` is the session to merge with the
  /// inviter's; `waits` limits the time until the welcome.
  mutating func accept(
    _ handle: InvitationHandle, into session: SessionHandle, _ answer: InvitationAnswer, offers: MergeOffer?,
    waits: TimeSpan?, _ now: Instant
  ) {
    guard let index = index(handle) else { return }
    all[index].answer = AnswerMessage(number: all[index].number, answer: answer)
    all[index].offers = offers
    all[index].phase = .accepted(session)
    all[index].acceptedAt = now
    all[index].deadline = all[index].deadline + SessionLimits.settleTime
    if let waits { all[index].deadline = min(all[index].deadline, now + waits) }
    all[index].answerAt = now
  }

  /// Replaces the offer of an accepted invitation.
  mutating func renewOffer(_ handle: InvitationHandle, _ offer: MergeOffer?) {
    if let index = index(handle) { all[index].offers = offer }
  }

  /// Sets the time at which auto-join accepts an invitation.
  mutating func scheduleAcceptance(_ handle: InvitationHandle, at time: Instant) {
    if let index = index(handle) { all[index].acceptAt = time }
  }

  mutating func welcomed(_ handle: InvitationHandle) {
    if let index = index(handle) { all[index].isWelcomed = true }
  }

  /// Ends an invitation. If there is an `answer`, the inviter is sent it. Returns the invitation as it was, nil if it
  /// is unknown or has ended already.
  mutating func end(
    _ handle: InvitationHandle, _ outcome: InvitationOutcome, answering answer: InvitationAnswer?,
    explanation: [UInt8], _ now: Instant
  ) -> IncomingInvitation? {
    guard let index = index(handle), all[index].phase != .over else { return nil }
    let former = all[index]
    // An invitation that auto-join accepts asks nobody, but an offer costs a signature.
    if outcome != .connected && (former.acceptAt == nil || former.offers != nil) {
      all[index].keptUntil = former.cameAt + SessionLimits.invitationStandTime
    }
    all[index].phase = .over
    all[index].answerAt = .never
    all[index].offers = nil
    all[index].deadline = min(former.deadline, now + SessionLimits.settleTime)
    if let answer {
      all[index].answer = AnswerMessage(number: former.number, answer: answer, explanation: explanation)
      all[index].answerAt = now
    }
    return former
  }

  /// Ends the charge of an evicted invitation, whose slot another one uses.
  mutating func endCharge(_ handle: InvitationHandle, _ now: Instant) {
    if let index = index(handle) { all[index].keptUntil = now }
  }

  mutating func remove(_ handle: InvitationHandle) { all.removeAll { $0.handle == handle } }

  /// Gives up the answers for which the time has passed, and returns the invitations that have timed out.
  mutating func expire(_ now: Instant) -> [IncomingInvitation] {
    for index in all.indices where all[index].deadline <= now && all[index].phase == .over {
      all[index].answerAt = .never
    }
    return all.filter { $0.deadline <= now && $0.phase != .over }
  }

  /// Removes the invitations that are over, answered and charged to nobody.
  mutating func removeEnded(_ now: Instant) {
    all.removeAll { $0.phase == .over && $0.answerAt == .never && $0.keptUntil <= now }
  }

  // MARK: Messages

  /// Schedules the answer to an invitation again, if there is one: `SessionLimits.answerPause` after the last answer,
  /// because an answer can contain a complete table.
  mutating func repeatAnswer(_ handle: InvitationHandle, _ now: Instant) {
    guard let index = index(handle), all[index].answer != nil else { return }
    let allowed = all[index].answeredAt.map { $0 + SessionLimits.answerPause } ?? now
    all[index].answerAt = min(all[index].answerAt, max(now, allowed))
  }

  mutating func answered(_ handle: InvitationHandle, _ now: Instant) {
    guard let index = index(handle) else { return }
    all[index].answerAt = .never
    all[index].answeredAt = now
  }

  /// The time when an invitation ends, can be removed, or an answer is due. Answers that are due already are not
  /// included, because they wait for a route.
  func nextDeadline(now: Instant) -> Instant {
    all.reduce(.never) { earliest, invitation in
      let kept = invitation.phase == .over && invitation.answerAt == .never ? invitation.keptUntil : .never
      let answer = invitation.answerAt > now ? invitation.answerAt : .never
      return min(min(earliest, invitation.deadline), min(kept, answer))
    }
  }
}
