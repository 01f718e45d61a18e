import Primitives

/// A request of an application to connect to an address that is known by other means than an advertised service.
struct Introduction {
  let handle: InvitationHandle
  let session: SessionHandle
  let address: MemberAddress
  /// Whether auto-join of the session includes the address only because of this request.
  let isGatheredFor: Bool
  let deadline: Instant
}

/// Custom discovery: two applications learn each other's addresses in any way, and each connects to the other.
/// Applications that use custom discovery need no advertised service, and are not asked to accept.
extension Sessions {
  /// Connects to an address: invites the address, and waits until it is a connected member. If the application at the
  /// address connects to this application too, the two applications invite each other. An invitation between two
  /// applications that connect to each other is accepted without a question. An application that does not connect but
  /// advertises a service is asked as by `invite`. The wait lasts for `timeout` (zero means
  /// `SessionLimits.invitationTimeDefault`), even while the address is unreachable. `.invitationEnded` reports the
  /// outcome once. `cancel` ends the wait.
  public func connect(
    _ address: MemberAddress, into handle: SessionHandle, timeout: TimeSpan = .seconds(0), now: Instant
  ) throws(SessionError) -> InvitationHandle {
    guard let session = session(handle) else { throw .unknown }
    guard address != session.address, address.endpoint != 0 else { throw .invalid }
    if let index = session.position(of: address), session.peers[index].phase == .connected { throw .alreadyMember }
    if isIntroduced(session, address) { throw .busy }
    guard
      mayTake(
        session.owner, of: SessionLimits.introductions, taken: introductions.count,
        held: { application in introductions.count { self.session($0.session)?.owner.application == application } })
    else { throw .full }
    let isGathered = session.autoJoin.entry(of: address) != nil
    try gather(address, into: handle, now: now)
    let time = timeout == .seconds(0) ? SessionLimits.invitationTimeDefault : timeout
    let introduction = Introduction(
      handle: InvitationHandle(number: nextNumber()), session: handle, address: address, isGatheredFor: !isGathered,
      deadline: now + min(time, SessionLimits.invitationTimeMax))
    introductions.append(introduction)
    return introduction.handle
  }

  func isIntroduced(_ session: LocalSession, _ address: MemberAddress) -> Bool {
    introductions.contains { $0.session == session.handle && $0.address == address }
  }

  /// Whether a local application at `endpoint` connects to `address`. The endpoint need not be advertised.
  func awaits(_ address: MemberAddress, at endpoint: UInt32) -> Bool {
    introductions.contains { $0.address == address && session($0.session)?.address.endpoint == endpoint }
  }

  /// Ends the requests to connect for which `match` returns true.
  func endIntroductions(_ outcome: InvitationOutcome, _ now: Instant, where match: (Introduction) -> Bool) {
    while let index = introductions.firstIndex(where: match) {
      let ended = introductions.remove(at: index)
      emit(.invitationEnded(ended.handle, outcome))
      guard ended.isGatheredFor, let session = session(ended.session) else { continue }
      // Without the entry, auto-join does not invite the address again when the address leaves the session.
      session.autoJoin.remove(ended.address)
      if outcome != .connected {
        endOutgoing(.cancelled, telling: .cancelled, now) {
          $0.session == ended.session && $0.isGathering && $0.to == ended.address
        }
      }
      // The address may have invited this application into another session. An invitation into another session was to
      // be accepted without asking the application, and is now refused.
      endIncoming(.noService, answering: .noService, now) {
        $0.from == ended.address && $0.acceptAt != nil && $0.phase == .asked && !session.table.contains($0.session)
          && !isGathered($0)
      }
    }
  }
}
