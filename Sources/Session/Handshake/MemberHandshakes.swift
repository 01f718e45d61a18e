import Channel
import Primitives

/// Handshakes between members by meet messages (docs/protocol.md, 12.5), and the synchronisation of their tables.
extension Sessions {
  // MARK: Reachability

  /// Notes that a node is reachable, or that a reachable node has another boot epoch. `isSealed` is true if traffic
  /// with the node is sealed. Returns true if the boot epoch changed: the host then calls `reportServices`.
  @discardableResult
  public func peerFound(_ node: NodeID, epoch: UInt64, isSealed: Bool = true, now: Instant) -> Bool {
    if node == local { return false }
    var hasOtherEpoch = false
    switch nodes.found(node, epoch: epoch, isSealed: isSealed) {
    case .none: return false
    case .found: break
    case .restarted(let isNew):
      hasOtherEpoch = isNew
      peerRestarted(node)
    }
    restartGatherings(of: node, now)
    for session in sessions where session.isOpen && mayMeet(session.table.rules, node) {
      scheduleEjection(session, node, now)
      for index in session.peers.indices where session.peers[index].address.node == node {
        begin(session, index, now)
        emit(.member(session.handle, session.peers[index].address, state(of: session.peers[index])))
        ask(session, session.peers[index])
      }
    }
    return hasOtherEpoch
  }

  /// Notes that a node is unreachable.
  public func peerLost(_ node: NodeID) {
    nodes.lost(node)
    // A node that returns starts a new handshake, and is asked for its table then. Until then these requests must not
    // use slots.
    for session in sessions { session.strangers.removeAll { $0.wish == .ask && $0.address.node == node } }
    stale.remove(on: node)
    wakeGatherings()
    peerServices(node, nil)
    peerRestarted(node)
  }

  private func peerRestarted(_ node: NodeID) {
    for session in sessions where session.isOpen {
      for index in session.peers.indices
      where session.peers[index].address.node == node && session.peers[index].phase != .away {
        endStreams(session, index)
        session.peers[index].lose()
        creditRequests.roomAppeared()
        failMessages(session, to: session.peers[index].address)
        emit(.member(session.handle, session.peers[index].address, .away))
      }
    }
    for session in sessions where !session.isOpen {
      for index in session.peers.indices where session.peers[index].address.node == node {
        forgetOwedStreams(session, index)
      }
    }
  }

  /// Schedules the ejection of the node's addresses for a node that became reachable. Every member sends the ejection,
  /// because the founder may have left before the node was reachable.
  private func scheduleEjection(_ session: LocalSession, _ node: NodeID, _ now: Instant) {
    for record in session.table.records
    where record.address.node == node && record.departure?.isEjection == true && !session.table.isJoined(record.address)
    {
      note(LocalSession.Stranger(address: record.address, session: record.session, wish: .news, at: now), session, now)
    }
  }

  /// Starts or restarts the handshake with a member. Messages that were sent before and have not arrived are lost.
  func begin(_ session: LocalSession, _ index: Int, _ now: Instant, after pause: TimeSpan = .seconds(0)) {
    if session.peers[index].decision == .rejected { return }
    endStreams(session, index)
    session.peers[index].begin(nextNumber(), share: share(session, index), at: now + pause)
    creditRequests.roomAppeared()
  }

  /// Restarts the handshake with a member after a message was lost or violated the protocol. The pause of 1 s limits
  /// the rate if a node keeps refusing messages.
  func beginAnew(_ session: LocalSession, _ index: Int, _ now: Instant) {
    let wasConnected = session.peers[index].phase == .connected
    begin(session, index, now, after: .seconds(1))
    failMessages(session, to: session.peers[index].address)
    if wasConnected { emit(.member(session.handle, session.peers[index].address, .connecting)) }
  }

  // MARK: Received messages

  func receiveMeet(_ meet: MeetMessage, from node: NodeID, _ now: Instant) {
    let address = MemberAddress(node: node, endpoint: meet.from)
    let known = sessions.filter {
      $0.phase != .over && $0.address.endpoint == meet.to && $0.table.contains(meet.session)
    }
    // The application may have left the session and joined it again, in which case the open session is meant.
    guard let session = known.first(where: { $0.isOpen }) ?? known.first else {
      return noteStale(address, meet.to, meet.session, now)
    }
    if !session.isOpen { return scheduleFarewell(session, address, meet, now) }
    guard let index = session.position(of: address) else {
      return receiveFromStranger(session, address, meet.session, now)
    }
    if session.peers[index].decision == .rejected || !mayMeet(session.table.rules, node) { return }
    session.peers[index].named = meet.session
    if session.peers[index].phase == .away { begin(session, index, now) }
    var needsAnswer =
      meet.echo != session.peers[index].number || session.peers[index].handshake.answersConnected(now)
    if session.peers[index].theirNumber != meet.number {
      otherRestarted(session, index, meet, now)
      needsAnswer = true
    }
    if needsAnswer && session.peers[index].decision == .accepted { session.peers[index].handshake.schedule(at: now) }
    if session.peers[index].credit.isGranted(meet.window, now), session.peers[index].phase == .connected {
      // A later window message with the same limit widens nothing, so the application is notified now.
      emit(.room(session.handle, address))
    }
    if meet.echo == session.peers[index].number { session.peers[index].handshake.confirmNumber() }
    session.peers[index].tableSync.receive(meet.digest, session.tableState, now)
    connectIfMet(session, index, now)
  }

  /// Handles a new handshake number of the other end. Messages from before the new number in both directions may be
  /// lost.
  private func otherRestarted(_ session: LocalSession, _ index: Int, _ meet: MeetMessage, _ now: Instant) {
    let wasConnected = session.peers[index].phase == .connected
    endStreams(session, index)
    let lacksMyNumber = meet.echo != session.peers[index].number
    if session.peers[index].handshake.isNumberConfirmed && lacksMyNumber { begin(session, index, now) }
    session.peers[index].restartedByOther(meet.number, window: meet.window)
    guard wasConnected else { return }
    failMessages(session, to: session.peers[index].address)
    emit(.member(session.handle, session.peers[index].address, .connecting))
  }

  /// Handles a handshake message of a non-member.
  private func receiveFromStranger(
    _ session: LocalSession, _ address: MemberAddress, _ known: SessionID, _ now: Instant
  ) {
    let isKnown = !session.table.records(of: address).isEmpty
    // An address that was just admitted sends its own record to all members. The table of a new address is requested
    // only if its record does not arrive in time.
    note(
      LocalSession.Stranger(
        address: address, session: known, wish: isKnown ? .news : .ask,
        at: isKnown ? now : now + SessionLimits.askPause), session, now)
  }

  /// Schedules the departure notice of a session that the application left, for a member that sent a handshake message.
  private func scheduleFarewell(
    _ session: LocalSession, _ address: MemberAddress, _ meet: MeetMessage, _ now: Instant
  ) {
    if let index = session.position(of: address) {
      // The member has restarted the handshake and no longer knows the streams, so their ends need not be sent.
      if meet.number != session.peers[index].theirNumber { forgetOwedStreams(session, index) }
      session.peers[index].tableSync.scheduleDelta(at: now)
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
    let slots = FairSlots(capacity: SessionLimits.strangersMax, standTime: SessionLimits.sweepTime)
    let entries = session.strangers.map { FairSlots.Entry(holder: holder($0.address.node), since: $0.at) }
    switch slots.choose(for: holder(stranger.address.node), among: entries, now: now) {
    case .free: break
    case .instead(let index): session.strangers.remove(at: index)
    case .none: return
    }
    session.strangers.append(stranger)
  }

  func receiveTable(
    _ message: TableMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    if offenders.isRefused(node, now) { return }
    let candidates = sessions.filter { $0.isOpen && $0.address.endpoint == message.to }
    // Two sessions of the endpoint may have been merged elsewhere. The sender regards this end as a member of the one
    // that it names, and sends what that session lacks.
    let known =
      candidates.first { $0.table.contains(message.session) }
      ?? candidates.first { session in message.entries?.origins.contains { session.table.contains($0.id) } == true }
    guard let session = known else { return takeStale(message, from: node, &allowance, now) }
    guard let entries = message.entries else {
      return handleTable(message, hadEntries: false, session, from: node, now)
    }
    var head = message
    head.entries = nil
    begin(.table(head), entries, of: session.handle, from: node, &allowance, now)
  }

  /// Handles the fields of a table message other than its entries. The entries are merged before this call.
  func handleTable(
    _ message: TableMessage, hadEntries: Bool, _ session: LocalSession, from node: NodeID, _ now: Instant
  ) {
    let address = MemberAddress(node: node, endpoint: message.from)
    if session.isOpen, session.position(of: address) == nil, !message.asks, message.digest != session.table.digest {
      // The sender regards this end as a member, by a table that this end does not have. If the sender's entries do not
      // change that, the sender does not know how its membership ended: another node may have its key.
      let hasEnded = !session.table.records(of: address).isEmpty
      if !hadEntries || hasEnded { receiveFromStranger(session, address, message.session, now) }
    }
    guard session.isOpen, let index = session.position(of: address) else { return }
    if session.table.contains(message.session) { session.peers[index].named = message.session }
    if message.asks {
      session.peers[index].tableSync.receiveRequest(session.tableState, now)
    }
    session.peers[index].tableSync.receive(message.digest, session.tableState, now)
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
    if session.table.id != former { emit(.identified(session.handle, session.table.id)) }
    tableChanged(session, now)
    announce(session, now)
  }

  /// Schedules the new digest for the reachable members. A member whose table differs then sends its own digest or
  /// table. Members to which a handshake message is in flight are included, because that message has the former digest.
  private func announce(_ session: LocalSession, _ now: Instant) {
    for index in session.peers.indices where session.peers[index].phase != .away {
      session.peers[index].tableSync.scheduleDigest(at: now + SessionLimits.sweepTime)
    }
  }

  /// Connects a member that sent a message in lane 0 which only a connected member sends. The member must have received
  /// the handshake message with its number, although that is not acknowledged yet. So the application is notified of
  /// the member before the member's first message, and can answer that message.
  func connectByMessage(_ session: LocalSession, _ index: Int, _ now: Instant) {
    session.peers[index].handshake.confirmTheirNumber()
    connectIfMet(session, index, now)
  }

  func connectIfMet(_ session: LocalSession, _ index: Int, _ now: Instant) {
    guard session.peers[index].decision == .accepted, session.peers[index].handshake.connect() else { return }
    let peer = session.peers[index]
    nodes.memberConnected(on: peer.address.node)
    if peer.credit.isPausedHere { session.peers[index].windowAt = now }
    emit(.member(session.handle, peer.address, state(of: session.peers[index])))
    memberConnected(session, peer.address, now)
  }

  // MARK: Outputs

  func nextOutput(
    of session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    for index in session.peers.indices {
      if let output = nextOutput(of: session, index, now, canSend) { return output }
    }
    return strangerOutput(session, now, canSend) ?? greeting(session, now, canSend)
  }

  /// The next table message to a non-member.
  private func strangerOutput(
    _ session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard session.unsignedDeparture == nil,
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
    guard canSend(stranger.address.node, .interactive, message.byteCount) else { return nil }
    session.strangers.remove(at: index)
    return output(.table, message.bytes, to: stranger.address.node, .notice)
  }

  /// The next table message to a pending member (welcomed, not in the table yet). The first message has only the
  /// records of this member. The records of this member suffice if the same inviter welcomed both addresses. Later
  /// messages are snapshots (complete tables).
  private func greeting(
    _ session: LocalSession, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard session.isOpen,
      let index = session.pendingMembers.firstIndex(where: { newcomer in
        newcomer.at <= now && mayMeet(session.table.rules, newcomer.address.node)
      })
    else { return nil }
    let newcomer = session.pendingMembers[index]
    let message = TableMessage(
      session: session.table.id, from: session.address.endpoint, to: newcomer.address.endpoint, asks: false,
      digest: session.table.digest,
      entries: newcomer.greetings == 0 ? session.table.entries(about: session.address) : session.table.entries)
    guard canSend(newcomer.address.node, .interactive, message.byteCount) else { return nil }
    session.pendingMembers[index].greetings += 1
    session.pendingMembers[index].at = now + SessionLimits.sweepTime
    if newcomer.greetings + 1 == SessionLimits.greetingsMax { session.pendingMembers.remove(at: index) }
    return output(.table, message.bytes, to: newcomer.address.node, .notice)
  }

  private func nextOutput(
    of session: LocalSession, _ index: Int, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    guard session.peers[index].isDue(now) else { return nil }
    let peer = session.peers[index]
    // A departure notice ends all streams at the member, and would overtake stream ends in the bulk lane.
    if !session.isOpen && peer.streams.areOwed || session.unsignedDeparture != nil { return nil }
    guard mayMeet(session.table.rules, peer.address.node), let known = session.session(knownTo: peer) else {
      return nil
    }
    // The delta (changed records) is sent before the handshake message, because a node ignores handshake messages of an
    // unknown member.
    if peer.tableSync.isDue(now) {
      if let output = tableOutput(session, index, known, now, canSend) { return output }
      if session.peers[index].tableSync.isDue(now) { return nil }
    }
    if peer.handshake.isDue(now) {
      guard canSend(peer.address.node, .interactive, 64) else { return nil }
      session.peers[index].handshake.sent(now, next: now + sweepTime(session, peer))
      let meet = MeetMessage(
        session: known, from: session.address.endpoint, to: peer.address.endpoint, number: peer.number,
        echo: peer.theirNumber, digest: session.table.digest, window: peer.credit.receiveLimit)
      return output(
        .meet, meet.bytes, to: peer.address.node,
        .meet(session.handle, peer.address, number: peer.number, echo: peer.theirNumber))
    }
    if peer.windowAt <= now, peer.phase == .connected {
      guard canSend(peer.address.node, .interactive, 20) else { return nil }
      session.peers[index].windowAt = .never
      let window = WindowMessage(
        number: peer.theirNumber, isPaused: peer.credit.isPausedHere,
        limit: session.peers[index].credit.widen(share(session, index)))
      return output(
        .window, window.bytes, to: peer.address.node, .member(session.handle, peer.address, number: peer.number))
    }
    return needOutput(session, index, canSend)
  }

  /// The next table message to a member: a snapshot (the complete table), a delta (the changed records), or only the
  /// digest.
  private func tableOutput(
    _ session: LocalSession, _ index: Int, _ known: SessionID, _ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool
  ) -> SessionOutput? {
    let own = session.tableState
    guard let due = session.peers[index].tableSync.nextMessage(own, now) else { return nil }
    let peer = session.peers[index]
    var message = TableMessage(
      session: known, from: session.address.endpoint, to: peer.address.endpoint, asks: false,
      digest: own.digest)
    switch due {
    case .snapshot: message.entries = session.table.entries
    case .delta(let sequence):
      // The application has left this session. The departure notice is repeated, because an earlier one may be lost.
      message.entries =
        session.isOpen || sequence < own.sequence ? session.table.entries(since: sequence) : session.farewell
    case .digest: break
    }
    guard canSend(peer.address.node, .interactive, message.byteCount) else { return nil }
    session.peers[index].tableSync.sent(due, own, now)
    return output(
      .table, message.bytes, to: peer.address.node,
      session.isOpen
        ? .member(session.handle, peer.address, number: peer.number) : .farewell(session.handle, peer.address))
  }

  /// The interval of handshake messages until a member is connected. This interval is shorter at the end with the lower
  /// address, which repeats first.
  private func sweepTime(_ session: LocalSession, _ peer: MemberPeer) -> TimeSpan {
    peer.address < session.address ? SessionLimits.sweepTime + SessionLimits.sweepYield : SessionLimits.sweepTime
  }
}

extension LocalSession {
  var tableState: TableSync.State {
    TableSync.State(digest: table.digest, sequence: table.sequence, changedAt: changedAt)
  }

  /// The departure notice of a session that the application left: the records of its address, also sent to non-members.
  var farewell: TableEntries { table.entries(about: address) }

  /// The entries that show an address how its membership ended. For a joined address without a place that is the
  /// complete table.
  func news(for stranger: MemberAddress) -> TableEntries {
    if !isOpen { return farewell }
    return table.isJoined(stranger) ? table.entries : table.entries(about: stranger)
  }
}
