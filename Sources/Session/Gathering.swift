import Primitives

/// Two applications that look for each other and offer themselves: one of them invites, the other accepts.
struct Gathering {
  let session: SessionHandle
  let address: MemberAddress
  /// When this end invites.
  var at: Instant
}

extension Sessions {
  /// Brings an address into the session: the lower of the two addresses invites at once; the higher one does when the
  /// lower has not within `SessionLimits.takeOverTime`. Whichever invites, the other end accepts without a question if it
  /// gathers this one too. It lasts until the address is a member, declines, or the session ends; an address out of reach
  /// is waited for.
  public func gather(
    _ address: MemberAddress, into handle: SessionHandle, now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard address != session.address, address.endpoint != 0 else { throw .invalid }
    if gatherings.contains(where: { $0.session == handle && $0.address == address }) { return }
    guard gatherings.count < SessionLimits.gatheringsMax else { throw .full }
    gatherings.append(
      Gathering(session: handle, address: address, at: now + yieldTime(session, to: address)))
  }

  /// Invites whom it is time to invite.
  func tendGatherings(_ now: Instant) {
    for index in gatherings.indices.reversed() {
      let gathering = gatherings[index]
      guard let session = session(gathering.session), !session.table.isJoined(gathering.address) else {
        gatherings.remove(at: index)
        continue
      }
      guard gathering.at <= now, isInReach(gathering.address.node) else { continue }
      gatherings[index].at = now + SessionLimits.sweepTime
      let isAsked = outgoing.contains { $0.session == gathering.session && $0.to == gathering.address && !$0.isEnding }
      if isAsked { continue }
      _ = try? invite(gathering.address, into: gathering.session, now: now)
    }
  }

  /// A node is in reach: from now on the lower address has its time.
  func restartGatherings(of node: NodeID, _ now: Instant) {
    for index in gatherings.indices where gatherings[index].address.node == node {
      guard let session = session(gatherings[index].session) else { continue }
      gatherings[index].at = now + yieldTime(session, to: gatherings[index].address)
    }
  }

  /// The session into which an invitation is accepted without a question.
  func gatheringSession(of invitation: IncomingInvitation) -> SessionHandle? {
    gatherings.first { gathering in
      gathering.address == invitation.from && session(gathering.session)?.address.endpoint == invitation.to
    }?.session
  }

  private func yieldTime(_ session: LocalSession, to address: MemberAddress) -> TimeSpan {
    session.address < address ? .seconds(0) : SessionLimits.takeOverTime
  }
}
