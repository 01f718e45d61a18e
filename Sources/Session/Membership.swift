import Primitives

/// How a table comes about on this node: founding, admitting, joining.
extension SessionTable {
  /// The first ticket of a session: the founder, whom this node is, admits itself.
  mutating func found() {
    let origin = origins[0]
    let admission = admission(origin.id, of: origin.origin.founder, by: origin.origin.founder, depth: 0, version: 1)
    accept(
      admission, origin.id, of: origin.origin.founder, by: origin.origin.founder, key: origin.origin.point, isOwn: true)
  }

  /// What `admitter`, an address of this node, signs for `address`. The version is the next one.
  func admission(
    _ session: SessionID, of address: MemberAddress, by admitter: MemberAddress, depth: UInt8, version: UInt32
  ) -> WelcomeMessage.Admission {
    let text = Ticket.admissionText(session, address, version: version, depth: depth, admitter)
    return WelcomeMessage.Admission(version: version, depth: depth, signature: cryptography.signature(text))
  }

  /// Makes an admission a ticket of `address`, which is of this node. False when the admission is not right, or older
  /// than what the table knows. `isOwn`: this node has just signed it, and it is not verified.
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

  /// Ends the membership of an address in all sessions where it is joined and `signer` may end it. False when there is
  /// none.
  mutating func end(_ address: MemberAddress, by signer: MemberAddress, _ reason: Departure.Reason, _ text: [UInt8])
    -> Bool
  {
    let isEjection = address != signer
    var hasEnded = false
    for record in records(of: address) where record.isJoined {
      if isEjection && origin(record.session)?.founder != signer { continue }
      var ended = record
      ended.end(isEjection: isEjection, reason, text: text, cryptography)
      enter(ended)
      hasEnded = true
    }
    return hasEnded
  }
}

extension MemberRecord {
  /// Ends the membership of the newest ticket with this node's signature.
  mutating func end(
    isEjection: Bool, _ reason: Departure.Reason, text: [UInt8], _ cryptography: any SessionCryptography
  ) {
    let signed = Departure.signedText(
      session, address, version: ticket.version, isEjection: isEjection, reason, text)
    departure = Departure(
      isEjection: isEjection, reason: reason, text: text, signature: cryptography.signature(signed))
  }
}

/// Who is a member, and what follows from it.
extension Sessions {
  /// Leaves a session. The others learn it with the reason and the text, plain text of at most
  /// `SessionLimits.farewellBytesMax` bytes.
  public func leave(
    _ handle: SessionHandle, _ reason: Departure.Reason = .wanted, text: [UInt8] = [], now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard text.count <= SessionLimits.farewellBytesMax, isPlainText(text.span.bytes) else { throw .invalid }
    leave(session, reason, text, .left, now)
  }

  /// Ends the membership of another address: for who founded the session that its ticket is for.
  public func eject(
    _ handle: SessionHandle, _ address: MemberAddress, text: [UInt8] = [], now: Instant
  ) throws(SessionError) {
    guard let session = session(handle) else { throw .unknown }
    guard text.count <= SessionLimits.farewellBytesMax, isPlainText(text.span.bytes) else { throw .invalid }
    guard address != session.address, session.table.isJoined(address) else { throw .unavailable }
    guard session.table.end(address, by: session.address, .wanted, text) else { throw .notAllowed }
    tellNews(session, now)
    tableChanged(session, now)
  }

  /// The application's decision on the certificate of a member's node.
  public func decide(_ handle: SessionHandle, _ address: MemberAddress, accepts: Bool, now: Instant)
    throws(SessionError)
  {
    guard let session = session(handle), let index = session.position(of: address) else { throw .unknown }
    guard session.pairs[index].verdict == .asked else { return }
    session.pairs[index].verdict = accepts ? .accepted : .rejected
    if accepts && session.pairs[index].phase == .meeting { session.pairs[index].meetAt = now }
    if accepts { return }
    session.pairs[index].credit.beginReceiving(0)
    tell(.member(handle, address, .rejected))
  }

  /// The host calls it when a node has proved its key, or failed to: what is still to be decided on its members is wanted again.
  public func askAgain(about node: NodeID) {
    for session in sessions where session.isOpen {
      for pair in session.pairs where pair.address.node == node { ask(session, pair) }
    }
  }

  /// Whether the application has still to decide on a member of this node, and so on its certificates.
  public func hasQuestion(about node: NodeID) -> Bool {
    sessions.contains { session in
      session.isOpen && session.judges && session.pairs.contains { $0.address.node == node && $0.verdict == .asked }
    }
  }

  func ask(_ session: LocalSession, _ pair: Pair) {
    if pair.verdict == .asked { tell(.decisionWanted(session.handle, pair.address)) }
  }

  /// What the application is told of a member.
  func state(of pair: Pair) -> MemberState {
    if pair.verdict == .rejected { return .rejected }
    switch pair.phase {
    case .away: return .away
    case .meeting: return .connecting
    case .connected: return pair.credit.isPausedThere ? .paused : .connected
    }
  }

  // MARK: Consequences

  /// Derives the pairs of a session from its table, and all that follows. After every change of the table.
  func tableChanged(_ session: LocalSession, _ now: Instant) {
    guard session.isOpen else { return }
    session.changedAt = now
    session.grewAt = now
    if session.gathers { session.gatherAt = .zero }
    if foldTwin(of: session, now) { return }
    guard session.table.isJoined(session.address) else { return endWithoutLeaving(session, now) }
    session.newcomers.removeAll { session.table.isJoined($0.address) }
    let members = session.table.members
    guard members.contains(session.address) else { return leave(session, .full, [], .full, now) }
    for index in session.pairs.indices.reversed() where !members.contains(session.pairs[index].address) {
      forget(session, index, now)
    }
    for address in members where address != session.address && session.position(of: address) == nil {
      let place = session.pairs.firstIndex { address < $0.address } ?? session.pairs.count
      session.pairs.insert(
        Pair(address, isAsked: session.judges, unread: takeUnread(session, address)), at: place)
      session.strangers.removeAll { $0.address == address }
      if mayMeet(session.table.rules, address.node) { begin(session, place, now) }
      tell(.member(session.handle, address, state(of: session.pairs[place])))
      ask(session, session.pairs[place])
    }
  }

  /// A member is one no longer.
  private func forget(_ session: LocalSession, _ index: Int, _ now: Instant) {
    endStreams(session, index)
    let pair = session.pairs.remove(at: index)
    // It may have left one of the merged sessions long ago, and been ejected from another one now.
    let departures =
      session.table.isJoined(pair.address)
      ? [] : session.table.records(of: pair.address).compactMap { $0.departure }
    let departure = departures.first { $0.isEjection } ?? departures.first
    let state: MemberState =
      switch departure {
      case .none: .left(.full, text: [])
      case .some(let departure) where departure.isEjection: .ejected(text: departure.text)
      case .some(let departure): .left(departure.reason, text: departure.text)
      }
    failMessages(session, to: pair.address)
    keepUnread(session, pair.address, pair.credit)
    if let known = session.session(knownTo: pair) {
      if departure?.isEjection != false {
        note(LocalSession.Stranger(address: pair.address, session: known, wish: .news, at: now), session, now)
      } else if pair.phase == .connected {
        // Who left knows it. But it may have come back by a ticket that this table does not have, as after a restart of
        // this node: then it holds this end for a member, and is asked for its table.
        note(
          LocalSession.Stranger(address: pair.address, session: known, wish: .ask, at: now + SessionLimits.askPause),
          session, now)
      }
    }
    tell(.member(session.handle, pair.address, state))
  }

  /// The node is told by its own entry, or a founder's, that it is no member.
  private func endWithoutLeaving(_ session: LocalSession, _ now: Instant) {
    let departure = session.table.records(of: session.address).compactMap { $0.departure }.first { $0.isEjection }
    // The founder may be gone before it has told the others.
    sayFarewell(session, now)
    sessionEnded(session, departure.map { .ejected(text: $0.text) } ?? .left, now)
  }

  /// Two sessions of one endpoint became one by a merge that others made: the older handle stays. True when this session
  /// is over for that.
  private func foldTwin(of session: LocalSession, _ now: Instant) -> Bool {
    for twin in sessions
    where twin !== session && twin.isOpen && twin.address == session.address
      && twin.table.origins.contains(where: { session.table.contains($0.id) })
    {
      let isOlder = sessions.firstIndex { $0 === session } ?? 0 < sessions.firstIndex { $0 === twin } ?? 0
      let (stays, goes) = isOlder ? (session, twin) : (twin, session)
      let met = goes.pairs.map { $0.address }.filter { stays.position(of: $0) != nil }
      goes.phase = .over
      for index in inCheck.indices where inCheck[index].session == goes.handle {
        inCheck[index].session = stays.handle
      }
      sessionEnded(goes, .isSame(stays.handle), now)
      merge(goes.table.entries, into: stays, now)
      // It may be this node that merged them.
      if stays.isOpen { tellNews(stays, now) }
      meetAnew(met, stays, now)
      return goes === session
    }
    return false
  }

  /// With members of both sessions this end had two meetings, and the other end may go on with the other one.
  private func meetAnew(_ addresses: [MemberAddress], _ session: LocalSession, _ now: Instant) {
    for address in addresses {
      guard session.isOpen, let index = session.position(of: address), session.pairs[index].phase != .away else {
        continue
      }
      beginAnew(session, index, now)
    }
  }

  private func leave(
    _ session: LocalSession, _ reason: Departure.Reason, _ text: [UInt8], _ end: SessionEnd, _ now: Instant
  ) {
    // A signature costs time, and without members nobody is sent the record.
    if !session.pairs.isEmpty { _ = session.table.end(session.address, by: session.address, reason, text) }
    sayFarewell(session, now)
    sessionEnded(session, end, now)
  }

  /// All others are told by the record of this member how its membership ended.
  private func sayFarewell(_ session: LocalSession, _ now: Instant) {
    for index in session.pairs.indices {
      session.pairs[index].meetAt = .never
      session.pairs[index].digestAt = .never
      session.pairs[index].wholeAt = .never
      session.pairs[index].windowAt = .never
      session.pairs[index].newsAt = now
    }
    session.phase =
      session.pairs.isEmpty
      ? .over : .leaving(owing: now + SessionLimits.owingTime, until: now + SessionLimits.leavingTime)
  }

  private func sessionEnded(_ session: LocalSession, _ end: SessionEnd, _ now: Instant) {
    for pair in session.pairs { failMessages(session, to: pair.address) }
    for index in session.pairs.indices {
      if case .leaving = session.phase { keepOwedStreams(session, index) } else { endStreams(session, index) }
    }
    keepUnread(session)
    session.gatherings = []
    endInvitations(of: session, now)
    tell(.ended(session.handle, end))
  }

  /// This node changed the table itself: all others are told what is new, so that nobody has to ask.
  func tellNews(_ session: LocalSession, _ now: Instant) {
    for index in session.pairs.indices { session.pairs[index].newsAt = now }
  }
}
