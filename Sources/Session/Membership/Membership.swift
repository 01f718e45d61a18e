import Primitives

/// The local changes of a table: founding, admitting, joining, leaving.
extension SessionTable {
  /// Creates the first ticket of a session: the founder, which is an address of this node, admits itself.
  mutating func found() {
    let origin = origins[0]
    let admission = admission(origin.id, of: origin.origin.founder, by: origin.origin.founder, depth: 0, version: 1)
    accept(
      admission, origin.id, of: origin.origin.founder, by: origin.origin.founder, key: origin.origin.point, isOwn: true)
  }

  /// Signs the admission of `address` by `admitter`, an address of this node. `version` must follow the version of the
  /// last ticket of `address`.
  func admission(
    _ session: SessionID, of address: MemberAddress, by admitter: MemberAddress, depth: UInt8, version: UInt32
  ) -> WelcomeMessage.Admission {
    let text = Ticket.admissionText(session, address, version: version, depth: depth, admitter)
    return WelcomeMessage.Admission(version: version, depth: depth, signature: cryptography.signature(text))
  }

  /// Completes an admission (the admitter's half of a ticket) to a ticket of `address`, an address of this node.
  /// Returns false if the admission is not valid, or older than the known record. If `isOwn` is true, this node has
  /// just signed the admission, which is then not verified.
  @discardableResult
  mutating func accept(
    _ admission: WelcomeMessage.Admission, _ session: SessionID, of address: MemberAddress, by admitter: MemberAddress,
    key: PublicPoint, isOwn: Bool = false
  ) -> Bool {
    let text = Ticket.acceptanceText(
      session, address, version: admission.version, depth: admission.depth, admitter)
    let ticket = Ticket(
      version: admission.version, depth: admission.depth, admitter: admitter, admission: admission.signature,
      acceptance: cryptography.signature(text))
    let record = MemberRecord(session: session, address: address, point: key, ticket: ticket)
    var verification = TableVerification(TableEntries(origins: [], merges: [], records: []), isOwn: isOwn)
    var allowance = CheckAllowance(holder: FairShare.ownHolder, checks: 2)
    guard verification.check(record, self, &allowance) == .right else { return false }
    enter(record)
    return self.record(session, address)?.isJoined == true
  }

  /// Ends the membership of an address in all sessions where the address is joined and `signer` is allowed to end the
  /// membership, but in at most `recordsMax` sessions. Returns false if there are none.
  mutating func end(
    _ address: MemberAddress, by signer: MemberAddress, _ reason: Departure.Reason, _ text: [UInt8],
    recordsMax: Int = .max
  ) -> Bool {
    let isEjection = address != signer
    var count = 0
    for record in records(of: address) where record.isJoined && count < recordsMax {
      if isEjection && origin(record.session)?.founder != signer { continue }
      var ended = record
      ended.end(isEjection: isEjection, reason, text: text, cryptography)
      enter(ended)
      count += 1
    }
    return count > 0
  }
}

extension MemberRecord {
  /// Ends the membership of the newest ticket by a departure that this node signs.
  mutating func end(
    isEjection: Bool, _ reason: Departure.Reason, text: [UInt8], _ cryptography: any SessionCryptography
  ) {
    let signed = Departure.signedText(
      session, address, version: ticket.version, isEjection: isEjection, reason, text)
    departure = Departure(
      isEjection: isEjection, reason: reason, text: text, signature: cryptography.signature(signed))
  }
}

/// Requests of applications that change membership, and the effects of a changed table.
extension Sessions {
  /// Leaves a session. A text of at most `SessionLimits.farewellBytesMax` bytes of plain text goes to the other
  /// members, together with the reason.
  ///
  /// A departure takes one signature for each of the merged sessions that the address is joined in. If `signsLater` is
  /// true, this call signs nothing, and the other members are notified after `signDeparture` has signed the last one.
  public func leave(
    _ handle: SessionHandle, _ reason: Departure.Reason = .wanted, text: [UInt8] = [], signsLater: Bool = false,
    now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard text.count <= SessionLimits.farewellBytesMax, isPlainText(text.span.bytes) else { throw .invalid }
    leave(session, reason, text, .left, signsLater: signsLater, now)
  }

  /// Whether signatures for the departure from a session are left for `signDeparture`.
  public func owesDeparture(_ handle: SessionHandle) -> Bool {
    sessions.contains { $0.handle == handle && $0.unsignedDeparture != nil && $0.phase != .over }
  }

  /// Makes one signature for the departure from a session that was left with `signsLater`. Does nothing without such a
  /// session.
  public func signDeparture(from handle: SessionHandle, now: Instant) {
    if let session = sessions.first(where: { $0.handle == handle }) { signDeparture(session, now) }
  }

  /// Ejects another address. Only the founder of the session for which the address has its ticket is allowed to eject
  /// the address.
  public func eject(
    _ handle: SessionHandle, _ address: MemberAddress, text: [UInt8] = [], now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard text.count <= SessionLimits.farewellBytesMax, isPlainText(text.span.bytes) else { throw .invalid }
    guard address != session.address, session.table.isJoined(address) else { throw .unavailable }
    guard session.table.end(address, by: session.address, .wanted, text) else { throw .notAllowed }
    scheduleDeltas(session, now)
    tableChanged(session, now)
  }

  /// Applies the application's decision on the certificate of a member's node.
  public func decide(_ handle: SessionHandle, _ address: MemberAddress, accepts: Bool, now: Instant)
    throws(SessionError)
  {
    guard let session = session(handle), let index = session.position(of: address) else { throw .unknown }
    guard session.peers[index].decision == .pending else { return }
    session.peers[index].decision = accepts ? .accepted : .rejected
    if accepts && session.peers[index].phase == .connecting { session.peers[index].handshake.schedule(at: now) }
    if accepts { return }
    session.peers[index].credit.beginReceiving(0)
    emit(.member(handle, address, .rejected))
  }

  /// Reports the pending decisions on the members of a node to the applications again. The host calls this when the
  /// node has proved its key or has failed to.
  public func askAgain(about node: NodeID) {
    for session in sessions where session.isOpen {
      for peer in session.peers where peer.address.node == node { ask(session, peer) }
    }
  }

  /// Whether an application still has to decide on a member of `node`, and so on the certificate of that node.
  public func hasQuestion(about node: NodeID) -> Bool {
    sessions.contains { session in
      session.isOpen && session.decidesOnMembers
        && session.peers.contains { $0.address.node == node && $0.decision == .pending }
    }
  }

  func ask(_ session: LocalSession, _ peer: MemberPeer) {
    if peer.decision == .pending { emit(.decisionWanted(session.handle, peer.address)) }
  }

  /// The state of a member for the application.
  func state(of peer: MemberPeer) -> MemberState {
    if peer.decision == .rejected { return .rejected }
    switch peer.phase {
    case .away: return .away
    case .connecting: return .connecting
    case .connected: return peer.credit.isPausedThere ? .paused : .connected
    }
  }

  // MARK: Consequences

  /// Updates the peers of a session, and everything else that depends on its table. Must be called after every change
  /// of the table.
  func tableChanged(_ session: LocalSession, _ now: Instant) {
    guard session.isOpen else { return }
    session.changedAt = now
    session.autoJoin.tableChanged(now)
    if foldTwin(of: session, now) { return }
    guard session.table.isJoined(session.address) else { return endWithoutLeaving(session, now) }
    session.pendingMembers.removeAll { session.table.isJoined($0.address) }
    let members = session.table.members
    guard members.contains(session.address) else { return leave(session, .full, [], .full, now) }
    for index in session.peers.indices.reversed() where !members.contains(session.peers[index].address) {
      forget(session, index, now)
    }
    for address in members where address != session.address && session.position(of: address) == nil {
      let index = session.peers.firstIndex { address < $0.address } ?? session.peers.count
      session.peers.insert(
        MemberPeer(address, mustBeDecided: session.decidesOnMembers, unread: takeUnread(session, address)), at: index)
      session.strangers.removeAll { $0.address == address }
      if mayMeet(session.table.rules, address.node) { begin(session, index, now) }
      emit(.member(session.handle, address, state(of: session.peers[index])))
      ask(session, session.peers[index])
    }
  }

  /// Removes the peer of an address that is no longer a member.
  private func forget(_ session: LocalSession, _ index: Int, _ now: Instant) {
    endStreams(session, index)
    let peer = session.peers.remove(at: index)
    // The member may have left one of the merged sessions long ago, and be ejected from another one now.
    let departures =
      session.table.isJoined(peer.address)
      ? [] : session.table.records(of: peer.address).compactMap { $0.departure }
    let departure = departures.first { $0.isEjection } ?? departures.first
    let state: MemberState =
      switch departure {
      case .none: .left(.full, text: [])
      case .some(let departure) where departure.isEjection: .ejected(text: departure.text)
      case .some(let departure): .left(departure.reason, text: departure.text)
      }
    failMessages(session, to: peer.address)
    keepUnread(session, peer.address, peer.credit)
    if let known = session.session(knownTo: peer) {
      if departure?.isEjection != false {
        note(LocalSession.Stranger(address: peer.address, session: known, wish: .news, at: now), session, now)
      } else if peer.phase != .away {
        // A member that left by itself needs no notice. But a member that left may have returned with a ticket that
        // this table does not have, e.g. after a restart of this node. In this case the member's table lists this end
        // as a member, so the member is asked for its table.
        note(
          LocalSession.Stranger(address: peer.address, session: known, wish: .ask, at: now + SessionLimits.askPause),
          session, now)
      }
    }
    emit(.member(session.handle, peer.address, state))
  }

  /// Ends a session because its table shows a departure of this address, signed by this node or by a founder.
  private func endWithoutLeaving(_ session: LocalSession, _ now: Instant) {
    let departure = session.table.records(of: session.address).compactMap { $0.departure }.first { $0.isEjection }
    // The founder may disappear before notifying the other members of an ejection, so this node notifies these members
    // too.
    sayFarewell(session, now)
    sessionEnded(session, departure.map { .ejected(text: $0.text) } ?? .left, now)
  }

  /// Unites two sessions of one endpoint of this node that a merge has made one session. The session with the older
  /// handle stays. Returns true if `session` is the session that ended.
  private func foldTwin(of session: LocalSession, _ now: Instant) -> Bool {
    for twin in sessions
    where twin !== session && twin.isOpen && twin.address == session.address
      && twin.table.origins.contains(where: { session.table.contains($0.id) })
    {
      let isOlder = sessions.firstIndex { $0 === session } ?? 0 < sessions.firstIndex { $0 === twin } ?? 0
      let (stays, goes) = isOlder ? (session, twin) : (twin, session)
      let met = goes.peers.map { $0.address }.filter { stays.position(of: $0) != nil }
      goes.phase = .over
      checks.move(from: goes.handle, to: stays.handle)
      sessionEnded(goes, .isSame(stays.handle), now)
      merge(goes.table.entries, into: stays, now)
      // This node may have made the merge, in which case no other node sends the merge.
      if stays.isOpen { scheduleDeltas(stays, now) }
      meetAnew(met, stays, now)
      return goes === session
    }
    return false
  }

  /// Restarts the handshakes with addresses that were members of both sessions. This end had two handshakes with each
  /// of these addresses, and the other end may continue with the handshake that ended here.
  private func meetAnew(_ addresses: [MemberAddress], _ session: LocalSession, _ now: Instant) {
    for address in addresses {
      guard session.isOpen, let index = session.position(of: address), session.peers[index].phase != .away else {
        continue
      }
      beginAnew(session, index, now)
    }
  }

  private func leave(
    _ session: LocalSession, _ reason: Departure.Reason, _ text: [UInt8], _ end: SessionEnd,
    signsLater: Bool = false, _ now: Instant
  ) {
    // A signature costs time. Without other members the departure would be sent to no node.
    if !session.peers.isEmpty { session.unsignedDeparture = (reason, text) }
    sayFarewell(session, now)
    sessionEnded(session, end, now)
    while !signsLater && session.unsignedDeparture != nil { signDeparture(session, now) }
  }

  /// Signs the departure from one of the merged sessions that the address is joined in. After the last signature the
  /// other members are notified.
  private func signDeparture(_ session: LocalSession, _ now: Instant) {
    guard let departure = session.unsignedDeparture else { return }
    _ = session.table.end(session.address, by: session.address, departure.reason, departure.text, recordsMax: 1)
    if session.table.isJoined(session.address) { return }
    session.unsignedDeparture = nil
    if case .leaving(let owing, _) = session.phase {
      session.phase = .leaving(owing: owing, until: now + SessionLimits.leavingTime)
    }
    scheduleDeltas(session, now)
  }

  /// Schedules the departure of this address for all other members, and cancels all other messages to them.
  private func sayFarewell(_ session: LocalSession, _ now: Instant) {
    for index in session.peers.indices {
      session.peers[index].handshake.cancelMessage()
      session.peers[index].tableSync.cancelDigestAndSnapshot()
      session.peers[index].tableSync.scheduleDelta(at: now)
      session.peers[index].windowAt = .never
    }
    // The time of leaving begins when the departure is signed, so a departure is not lost while it waits.
    let until = session.unsignedDeparture == nil ? now + SessionLimits.leavingTime : .never
    session.phase = session.peers.isEmpty ? .over : .leaving(owing: now + SessionLimits.owingTime, until: until)
  }

  private func sessionEnded(_ session: LocalSession, _ end: SessionEnd, _ now: Instant) {
    for peer in session.peers { failMessages(session, to: peer.address) }
    for index in session.peers.indices {
      if case .leaving = session.phase { keepOwedStreams(session, index) } else { endStreams(session, index) }
    }
    keepUnread(session)
    session.autoJoin.remove { _ in true }
    endInvitations(of: session, now)
    emit(.ended(session.handle, end))
  }

  /// Schedules the delta (changed records) for all other members after a local change of the table, so that no member
  /// has to request the delta.
  func scheduleDeltas(_ session: LocalSession, _ now: Instant) {
    for index in session.peers.indices { session.peers[index].tableSync.scheduleDelta(at: now) }
  }
}
