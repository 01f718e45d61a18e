import Primitives

/// The wait of an application for an address that it does not know from an advertised service.
struct Introduction {
  let handle: InvitationHandle
  let session: SessionHandle
  let address: MemberAddress
  /// Whether the session gathers the address only for this introduction.
  let isGatheredFor: Bool
  let deadline: Instant
}

/// Custom discovery: applications exchange their addresses in any way, and each connects to the other's. Neither
/// advertises a service, and neither is asked.
extension Sessions {
  /// Waits until an address is a connected member. If two applications connect to each other, both invite and either
  /// one accepts. An application that does not connect is asked as by `invite`, if it advertises. The wait lasts for
  /// `timeout` (zero means `SessionLimits.invitationTimeDefault`), even while the address is unreachable.
  /// `.invitationEnded` reports the outcome once. `cancel` ends the wait.
  public func connect(
    _ address: MemberAddress, into handle: SessionHandle, timeout: TimeSpan = .seconds(0), now: Instant
  ) throws(SessionError) -> InvitationHandle {
    guard let session = session(handle) else { throw .unknown }
    guard address != session.address, address.endpoint != 0 else { throw .invalid }
    if let index = session.position(of: address), session.pairs[index].phase == .connected { throw .alreadyMember }
    if isIntroduced(session, address) { throw .busy }
    guard
      mayTake(
        session.owner, of: SessionLimits.introductions, taken: introductions.count,
        held: { application in introductions.count { self.session($0.session)?.owner.application == application } })
    else { throw .full }
    let isGathered = session.gathering(address) != nil
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

  /// Whether an application at an endpoint waits for an address. The endpoint need not be advertised.
  func awaits(_ address: MemberAddress, at endpoint: UInt32) -> Bool {
    introductions.contains { $0.address == address && session($0.session)?.address.endpoint == endpoint }
  }

  /// Ends the introductions for which `match` returns true.
  func endIntroductions(_ outcome: InvitationOutcome, _ now: Instant, where match: (Introduction) -> Bool) {
    while let index = introductions.firstIndex(where: match) {
      let ended = introductions.remove(at: index)
      tell(.invitationEnded(ended.handle, outcome))
      guard ended.isGatheredFor, let session = session(ended.session) else { continue }
      // The address is not invited again when it leaves.
      session.gatherings.removeAll { $0.address == ended.address }
      for index in outgoing.indices where outgoing[index].session == ended.session && outcome != .connected {
        guard outgoing[index].isGathering, outgoing[index].to == ended.address else { continue }
        end(&outgoing[index], .cancelled, telling: .cancelled, now)
      }
      // The address may have invited this application to another session, without a notification. That invitation is no
      // longer accepted.
      for index in incoming.indices where incoming[index].from == ended.address && incoming[index].acceptAt != nil {
        guard incoming[index].phase == .asked, !session.table.contains(incoming[index].session),
          !isGathered(incoming[index])
        else { continue }
        end(&incoming[index], .noService, answering: .noService, now)
      }
    }
  }
}
