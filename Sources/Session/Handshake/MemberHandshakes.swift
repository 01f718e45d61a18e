import Channel
import Primitives

/// Handshakes between members by meet messages (docs/protocol.md, 12.5), and the synchronisation of their tables.
extension Sessions {
  // MARK: Reachability

  /// Notes that a node is reachable, or that a reachable node has another boot epoch. `isSealed` is true if traffic
  /// with the node is sealed. Returns true if the boot epoch changed: the host then calls `tellServices`.
  @discardableResult
  public func peerFound(_ node: NodeID, epoch: UInt64, isSealed: Bool = true, now: Instant) -> Bool {
    if node == local { return false }
    var isAnotherLife = false
    if let index = peers.firstIndex(where: { $0.node == node }) {
      if peers[index].epoch == epoch && peers[index].isSealed == isSealed { return false }
      isAnotherLife = peers[index].epoch != epoch
      peers[index].epoch = epoch
      peers[index].isSealed = isSealed
      peerRestarted(node)
    } else {
      peers.append(Peer(node: node, epoch: epoch, isSealed: isSealed))
    }
    restartGatherings(of: node, now)
    for session in sessions where session.isOpen && mayMeet(session.table.rules, node) {
      tellEjected(session, node, now)
      for index in session.pairs.indices where session.pairs[index].address.node == node {
        begin(session, index, now)
        tell(.member(session.handle, session.pairs[index].address, state(of: session.pairs[index])))
        ask(session, session.pairs[index])
      }
    }
    return isAnotherLife
  }

  /// Notes that a node is unreachable.
  public func peerLost(_ node: NodeID) {
    peers.removeAll { $0.node == node }
    // A node that returns starts a new handshake, and is asked for its table then. Until then these requests must not
    // use slots.
    for session in sessions { session.strangers.removeAll { $0.wish == .ask && $0.address.node == node } }
    stale.removeAll { $0.member.node == node }
    wakeGatherings()
    peerServices(node, nil)
    peerRestarted(node)
  }

  private func peerRestarted(_ node: NodeID) {
    for session in sessions where session.isOpen {
      for index in session.pairs.indices
      where session.pairs[index].address.node == node && session.pairs[index].phase != .away {
        endStreams(session, index)
        session.pairs[index].lose()
        mayLend = true
        failMessages(session, to: session.pairs[index].address)
        tell(.member(session.handle, session.pairs[index].address, .away))
      }
    }
    for session in sessions where !session.isOpen {
      for index in session.pairs.indices where session.pairs[index].address.node == node {
        forgetOwedStreams(session, index)
      }
    }
  }

  /// Sends the ejection of its addresses to a node that became reachable. Every member does this, because the founder
  /// may have left before the node was reachable.
  private func tellEjected(_ session: LocalSession, _ node: NodeID, _ now: Instant) {
    for record in session.table.records
    where record.address.node == node && record.departure?.isEjection == true && !session.table.isJoined(record.address)
    {
      note(LocalSession.Stranger(address: record.address, session: record.session, wish: .news, at: now), session, now)
    }
  }

  /// Starts or restarts the handshake with a member. Messages that were sent before and have not arrived are lost.
  func begin(_ session: LocalSession, _ index: Int, _ now: Instant, after pause: TimeSpan = .seconds(0)) {
    if session.pairs[index].verdict == .rejected { return }
    endStreams(session, index)
    session.pairs[index].begin(nextNumber(), share: share(session, index), at: now + pause)
    mayLend = true
  }

  /// Restarts the handshake with a member after a message was lost or violated the protocol. The pause of 1 s limits
  /// the rate if a node keeps refusing messages.
  func beginAnew(_ session: LocalSession, _ index: Int, _ now: Instant) {
    let wasConnected = session.pairs[index].phase == .connected
    begin(session, index, now, after: .seconds(1))
    failMessages(session, to: session.pairs[index].address)
    if wasConnected { tell(.member(session.handle, session.pairs[index].address, .connecting)) }
  }

  // MARK: Received messages

  func receiveMeet(_ meet: MeetMessage, from node: NodeID, _ now: Instant) {
    let address = MemberAddress(node: node, endpoint: meet.from)
    let known = sessions.filter {
      $0.phase != .over && $0.address.endpoint == meet.to && $0.table.contains(meet.session)
    }
    // The application may have left the session and joined it again. Then the open session is meant.
    guard let session = known.first(where: { $0.isOpen }) ?? known.first else {
      return noteStale(address, meet.to, meet.session, now)
    }
    if !session.isOpen { return tellFarewell(session, address, meet, now) }
    guard let index = session.position(of: address) else {
      return receiveFromStranger(session, address, meet.session, now)
    }
    if session.pairs[index].verdict == .rejected || !mayMeet(session.table.rules, node) { return }
    session.pairs[index].named = meet.session
    if session.pairs[index].phase == .away { begin(session, index, now) }
    if session.pairs[index].theirNumber != meet.number {
      otherBegan(session, index, hasMyNumber: meet.echo == session.pairs[index].number, now)
      session.pairs[index].hears(meet.number, window: meet.window)
      if session.pairs[index].verdict == .accepted { session.pairs[index].meetAt = now }
    } else if meet.echo != session.pairs[index].number || isStillMeeting(session.pairs[index], now),
      session.pairs[index].verdict == .accepted
    {
      session.pairs[index].meetAt = min(session.pairs[index].meetAt, now)
    }
    if session.pairs[index].credit.isGranted(meet.window, now), session.pairs[index].phase == .connected {
      // A later window message with the same limit widens nothing, so the application is notified now.
      tell(.room(session.handle, address))
    }
    if meet.echo == session.pairs[index].number { session.pairs[index].isHeard = true }
    heardDigest(session, index, meet.digest, now)
    connectIfMet(session, index, now)
  }

  /// Whether a handshake message of a connected member needs an answer. The member repeats the message if it ignored
  /// this end's message, because it did not know the session that this end named. A message that answers a recent
  /// message of this end is not answered. Otherwise two connected members would answer each other forever.
  private func isStillMeeting(_ pair: MemberPeer, _ now: Instant) -> Bool {
    pair.phase == .connected && now - pair.metAt >= SessionLimits.sweepTime / 2
  }

  /// Handles a new handshake number of the other end. Earlier messages in both directions may be lost.
  private func otherBegan(_ session: LocalSession, _ index: Int, hasMyNumber: Bool, _ now: Instant) {
    let wasConnected = session.pairs[index].phase == .connected
    endStreams(session, index)
    if session.pairs[index].isHeard && !hasMyNumber { begin(session, index, now) }
    session.pairs[index].phase = .meeting
    guard wasConnected else { return }
    failMessages(session, to: session.pairs[index].address)
    tell(.member(session.handle, session.pairs[index].address, .connecting))
  }

  /// Handles a handshake message of a non-member.
  private func receiveFromStranger(
    _ session: LocalSession, _ address: MemberAddress, _ known: SessionID, _ now: Instant
  ) {
    let isKnown = !session.table.records(of: address).isEmpty
    // An address that was just admitted sends its record to all members. Its table is requested only if the record does
    // not arrive in time.
    note(
      LocalSession.Stranger(
        address: address, session: known, wish: isKnown ? .news : .ask,
        at: isKnown ? now : now + SessionLimits.askPause), session, now)
  }

  private func tellFarewell(_ session: LocalSession, _ address: MemberAddress, _ meet: MeetMessage, _ now: Instant) {
    if let index = session.position(of: address) {
      // The member has restarted the handshake, so it no longer knows the streams, and their ends need not be sent.
      if meet.number != session.pairs[index].theirNumber { forgetOwedStreams(session, index) }
      session.pairs[index].newsAt = min(session.pairs[index].newsAt, now)
      return
    }
    note(LocalSession.Stranger(address: address, session: meet.session, wish: .news, at: now), session, now)
    // The member's table may still list this address as joined, by a ticket from before a restart of this node. The
    // departure notice does not end that ticket.
    noteStale(address, meet.to, meet.session, now)
  }

  /// Queues a table message to a non-member, unless such a message is queued already.
  func note(_ stranger: LocalSession.Stranger, _ session: LocalSession, _ now: Instant) {
    if session.strangers.contains(where: { $0.address == stranger.address && $0.wish == stranger.wish }) { return }
    let places = FairPlaces(capacity: SessionLimits.strangersMax, standTime: SessionLimits.sweepTime)
    let entries = session.strangers.map { FairPlaces.Entry(holder: holder($0.address.node), since: $0.at) }
    switch places.place(for: holder(stranger.address.node), among: entries, now: now) {
    case .free: break
    case .instead(let index): session.strangers.remove(at: index)
    case .none: return
    }
    session.strangers.append(stranger)
  }

  func receiveTable(
    _ message: TableMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    if isForger(node, now) { return }
    let known = sessions.first { session in
      session.isOpen && session.address.endpoint == message.to
        && (session.table.contains(message.session)
          || message.entries?.origins.contains { session.table.contains($0.id) } == true)
    }
    guard let session = known else { return takeStale(message, from: node, &allowance, now) }
    guard let entries = message.entries else { return heardTable(message, hadEntries: false, session, from: node, now) }
    var head = message
    head.entries = nil
    begin(.table(head), entries, of: session.handle, from: node, &allowance, now)
  }

  /// Handles the fields of a table message other than its entries. The entries are merged before this call.
  func heardTable(
    _ message: TableMessage, hadEntries: Bool, _ session: LocalSession, from node: NodeID, _ now: Instant
  ) {
    let address = MemberAddress(node: node, endpoint: message.from)
    if session.isOpen, session.position(of: address) == nil, !hadEntries,
      !message.asks, message.digest != session.table.digest
    {
      // The sender regards this end as a member, by a table that this end does not have.
      receiveFromStranger(session, address, message.session, now)
    }
    guard session.isOpen, let index = session.position(of: address) else { return }
    if session.table.contains(message.session) { session.pairs[index].named = message.session }
    if message.asks {
      session.pairs[index].isAskedForWhole = true
      session.pairs[index].wholeAt = max(now, session.pairs[index].wholeMayGoAt(session.table.sequence))
    }
    heardDigest(session, index, message.digest, now)
  }

  /// Merges the verified entries of another node.
  func take(_ verification: TableVerification, into session: LocalSession, _ now: Instant) {
    let former = session.table.id
    let result = session.table.take(verification)
    if result.isChanged { hasGrown(session, from: former, now) }
  }

  /// Merges the table of another session of this node.
  func merge(_ entries: TableEntries, into session: LocalSession, _ now: Instant) {
    let former = session.table.id
    let result = session.table.merge(entries, isOwn: true)
    if result.isChanged { hasGrown(session, from: former, now) }
  }

  private func hasGrown(_ session: LocalSession, from former: SessionID, _ now: Instant) {
    if session.table.id != former { tell(.identified(session.handle, session.table.id)) }
    tableChanged(session, now)
    announce(session, now)
  }

  /// Schedules the new digest for the reachable members. A member whose table differs then sends its own digest or
  /// table. Members to which a handshake message is in flight are included, because that message has the former digest.
  private func announce(_ session: LocalSession, _ now: Instant) {
    for index in session.pairs.indices where session.pairs[index].phase != .away {
      session.pairs[index].digestAt = min(session.pairs[index].digestAt, now + SessionLimits.sweepTime)
    }
  }

  private func heardDigest(_ session: LocalSession, _ index: Int, _ digest: TableDigest, _ now: Instant) {
    session.pairs[index].theirDigest = digest
    session.pairs[index].theirDigestAt = now
    if digest == session.table.digest {
      session.pairs[index].toldUpTo = session.table.sequence
      session.pairs[index].toldDigest = digest
      session.pairs[index].wholeAt = .never
      session.pairs[index].unlikeSince = .never
    } else {
      session.pairs[index].unlikeSince = min(session.pairs[index].unlikeSince, now)
      let mayGoAt = session.pairs[index].wholeMayGoAt(session.table.sequence)
      session.pairs[index].wholeAt = min(session.pairs[index].wholeAt, max(now + SessionLimits.askPause * 2, mayGoAt))
    }
  }

  /// Connects a member that sent a message in lane 0 which only a connected member sends. The member must have received
  /// the handshake message with its number, although that is not acknowledged yet. So the application is notified of
  /// the member before the member's first message, and can answer that message.
  func connectAsTold(_ session: LocalSession, _ index: Int, _ now: Instant) {
    session.pairs[index].isTold = true
    connectIfMet(session, index, now)
  }

  func connectIfMet(_ session: LocalSession, _ index: Int, _ now: Instant) {
    let pair = session.pairs[index]
    guard pair.phase == .meeting, pair.isHeard, pair.isTold, pair.verdict == .accepted else { return }
    session.pairs[index].phase = .connected
    noteMember(pair.address.node)
    if pair.credit.isPausedHere { session.pairs[index].windowAt = now }
    tell(.member(session.handle, pair.address, state(of: session.pairs[index])))
    memberConnected(session, pair.address, now)
  }

  // MARK: Outputs

  func nextOutput(
    of session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    for index in session.pairs.indices {
      if let output = nextOutput(of: session, index, now, canSend) { return output }
    }
    return strangerOutput(session, now, canSend) ?? greeting(session, now, canSend)
  }

  /// The next table message to a non-member.
  private func strangerOutput(
    _ session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard
      let index = session.strangers.firstIndex(where: { stranger in
        stranger.at <= now && mayMeet(session.table.rules, stranger.address.node)
      })
    else { return nil }
    let stranger = session.strangers[index]
    var message = TableMessage(
      session: stranger.session, from: session.address.endpoint, to: stranger.address.endpoint,
      asks: stranger.wish == .ask, digest: session.table.digest)
    if stranger.wish == .news {
      message.entries = session.news(for: stranger.address)
    }
    let bytes = message.bytes
    guard canSend(stranger.address.node, .interactive, bytes.count) else { return nil }
    session.strangers.remove(at: index)
    return output(.table, bytes, to: stranger.address.node, .notice)
  }

  /// The next table message to a pending member (welcomed, not in the table yet). The first message has only the
  /// records of this member. These records suffice if the same inviter welcomed both addresses. Later messages are
  /// snapshots (complete tables).
  private func greeting(
    _ session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard session.isOpen,
      let index = session.newcomers.firstIndex(where: { newcomer in
        newcomer.at <= now && mayMeet(session.table.rules, newcomer.address.node)
      })
    else { return nil }
    let newcomer = session.newcomers[index]
    let message = TableMessage(
      session: session.table.id, from: session.address.endpoint, to: newcomer.address.endpoint, asks: false,
      digest: session.table.digest,
      entries: newcomer.greetings == 0 ? session.table.entries(about: session.address) : session.table.entries)
    let bytes = message.bytes
    guard canSend(newcomer.address.node, .interactive, bytes.count) else { return nil }
    session.newcomers[index].greetings += 1
    session.newcomers[index].at = now + SessionLimits.sweepTime
    if newcomer.greetings + 1 == SessionLimits.greetingsMax { session.newcomers.remove(at: index) }
    return output(.table, bytes, to: newcomer.address.node, .notice)
  }

  private func nextOutput(
    of session: LocalSession, _ index: Int, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard session.pairs[index].isDue(now) else { return nil }
    let pair = session.pairs[index]
    // A departure notice ends all streams at the member. It would overtake stream ends in the bulk lane.
    if !session.isOpen && pair.streams.areOwed { return nil }
    guard mayMeet(session.table.rules, pair.address.node), let known = session.session(knownTo: pair) else {
      return nil
    }
    // The delta (changed records) is sent before the handshake message, because a node ignores handshake messages of an
    // unknown member.
    if pair.isTableDue(now) {
      if let output = tableOutput(session, index, known, now, canSend) { return output }
      if session.pairs[index].isTableDue(now) { return nil }
    }
    if pair.meetAt <= now {
      guard canSend(pair.address.node, .interactive, 64) else { return nil }
      session.pairs[index].meetAt = now + sweepTime(session, pair)
      session.pairs[index].metAt = now
      let meet = MeetMessage(
        session: known, from: session.address.endpoint, to: pair.address.endpoint, number: pair.number,
        echo: pair.theirNumber, digest: session.table.digest, window: pair.credit.receiveLimit)
      return output(
        .meet, meet.bytes, to: pair.address.node,
        .meet(session.handle, pair.address, number: pair.number, echo: pair.theirNumber))
    }
    if pair.windowAt <= now, pair.phase == .connected {
      guard canSend(pair.address.node, .interactive, 20) else { return nil }
      session.pairs[index].windowAt = .never
      let window = WindowMessage(
        number: pair.theirNumber, isPaused: pair.credit.isPausedHere,
        limit: session.pairs[index].credit.widen(share(session, index)))
      return output(
        .window, window.bytes, to: pair.address.node, .member(session.handle, pair.address, number: pair.number))
    }
    return needOutput(session, index, canSend)
  }

  /// The next table message to a member: a snapshot (the complete table), a delta (the changed records), or only the
  /// digest.
  private func tableOutput(
    _ session: LocalSession, _ index: Int, _ known: SessionID, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    settleWhole(session, index, now)
    guard session.pairs[index].isTableDue(now) else { return nil }
    let pair = session.pairs[index]
    var message = TableMessage(
      session: known, from: session.address.endpoint, to: pair.address.endpoint, asks: false,
      digest: session.table.digest)
    let isWhole = pair.wholeAt <= now && pair.theirDigest != session.table.digest
    if isWhole {
      message.entries = session.table.entries
    } else if pair.newsAt <= now {
      // The application has left this session. The departure notice is repeated, because an earlier one may be lost.
      message.entries =
        session.isOpen || pair.toldUpTo < session.table.sequence
        ? session.table.entries(since: pair.toldUpTo) : session.farewell
    } else if pair.toldDigest == session.table.digest || pair.digestAt > now {
      session.pairs[index].wholeAt = .never
      session.pairs[index].digestAt = .never
      return nil
    }
    let bytes = message.bytes
    guard canSend(pair.address.node, .interactive, bytes.count) else { return nil }
    if isWhole {
      session.pairs[index].isAskedForWhole = false
      session.pairs[index].wholeSentAt = now
      session.pairs[index].wholeSequence = session.table.sequence
    }
    session.pairs[index].wholeAt = .never
    session.pairs[index].newsAt = .never
    session.pairs[index].digestAt = .never
    session.pairs[index].toldUpTo = session.table.sequence
    session.pairs[index].toldDigest = session.table.digest
    if isWhole {
      // The member may have ignored the snapshot. The digest is sent again later, and a member whose table still
      // differs answers with its own digest.
      session.pairs[index].toldDigest = nil
      session.pairs[index].digestAt = now + SessionLimits.sameTableTime
    }
    return output(
      .table, bytes, to: pair.address.node,
      session.isOpen
        ? .member(session.handle, pair.address, number: pair.number) : .farewell(session.handle, pair.address))
  }

  /// Postpones or cancels a due snapshot if the table has changed since the member reported another digest. While
  /// tables keep changing, e.g. when many members join, most of them become equal without a snapshot. So a snapshot
  /// waits until this table has been unchanged for `SessionLimits.quietTime`. Then the digest is sent instead, and only
  /// a member that still differs needs the snapshot.
  private func settleWhole(_ session: LocalSession, _ index: Int, _ now: Instant) {
    let pair = session.pairs[index]
    guard pair.wholeAt <= now, !pair.isAskedForWhole, pair.theirDigest != session.table.digest,
      pair.theirDigestAt <= session.changedAt, now - pair.unlikeSince < SessionLimits.unlikeTime
    else { return }
    let restsAt = session.changedAt + SessionLimits.quietTime
    if restsAt > now {
      session.pairs[index].wholeAt = restsAt
      return
    }
    session.pairs[index].wholeAt = .never
    session.pairs[index].digestAt = now
    // The digest was sent before. A member that received it and does not answer has the same table.
    if pair.toldDigest == session.table.digest { session.pairs[index].unlikeSince = .never }
  }

  /// The interval of handshake messages until a member is connected. It is shorter at the end with the lower address,
  /// which repeats first.
  private func sweepTime(_ session: LocalSession, _ pair: MemberPeer) -> TimeSpan {
    pair.address < session.address ? SessionLimits.sweepTime + SessionLimits.sweepYield : SessionLimits.sweepTime
  }

  // MARK: Signature offenders

  func isForger(_ node: NodeID, _ now: Instant) -> Bool {
    forgers.contains {
      $0.node == node && $0.count >= SessionLimits.forgeriesMax && now - $0.since < SessionLimits.forgerTime
    }
  }

  func countForgery(of node: NodeID, _ count: Int, _ now: Instant) {
    forgers.removeAll { now - $0.since >= SessionLimits.forgerTime }
    if let index = forgers.firstIndex(where: { $0.node == node }) {
      forgers[index].count += count
      forgers[index].since = now
    } else {
      if forgers.count == SessionLimits.forgersMax { forgers.removeFirst() }
      forgers.append((node, count, now))
    }
  }
}

extension LocalSession {
  /// The departure notice of a session that the application left: the records of its address, also sent to non-members.
  var farewell: TableEntries { table.entries(about: address) }

  /// The entries that show an address how its membership ended. For a joined address without a member slot that is the
  /// complete table.
  func news(for stranger: MemberAddress) -> TableEntries {
    if !isOpen { return farewell }
    return table.isJoined(stranger) ? table.entries : table.entries(about: stranger)
  }
}
