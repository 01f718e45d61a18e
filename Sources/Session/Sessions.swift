import Channel
import Primitives

/// All sessions of a node, sans-IO. The node reports reachable nodes, received messages and delivery results.
/// Applications open sessions, invite, answer and send. Time is an argument, and all random values are derived from the
/// seed.
///
/// **Drain rule.** After any calls, before waiting, call `nextEvent` and `nextOutput` until both return nil. After the
/// drain, set a timer for `nextDeadline(now:)`, and call `handleTimeouts` no later than this deadline.
public final class Sessions {
  public let local: NodeID
  let point: PublicPoint
  let cryptography: any SessionCryptography
  private let signatures: VerifiedSignatures
  private var random: SeededRandom
  private var lastNumber: UInt32
  private var lastMessage: UInt64 = 0
  var nodes: ReachableNodes
  var sessions: [LocalSession] = []
  var services = Services()
  var outgoing = OutgoingInvitations()
  var incoming = IncomingInvitations()
  /// The time before which auto-join offers no merge (`SessionLimits.offerPause`).
  var offerAllowedAt = Instant.zero
  var introductions: [Introduction] = []
  var undelivered = UndeliveredMessages()
  /// The number of application messages among `undelivered`.
  var unsentMessages = 0
  var stale = StaleMemberships()
  var checks = TableChecks()
  var offenders = TableOffenders()
  private var events: [SessionEvent] = []
  /// The size of the common pool, in bytes: stream bytes of the node beyond the guaranteed windows.
  let streamPool: UInt64
  /// The rule by which users share `streamPool`.
  let streamRule: ShareRule
  var unreadOfEnded = EndedUnread()
  var creditRequests = CreditRequests()
  /// The index of the session that sent last.
  private var turn = 0
  /// Messages of this node to itself. Two applications on one node can be in the same session.
  var loop: [SessionOutput] = []

  /// Creates the sessions of a node. `seed` must differ at each start of the node; the boot epoch does.
  /// `streamBytesMax` limits the bytes of all streams that are in flight to this node or unread. A value below the sum
  /// of all guaranteed windows is raised to that sum.
  public init(
    local: NodeID, point: PublicPoint, _ cryptography: any SessionCryptography, seed: UInt64,
    streamBytesMax: UInt64 = SessionLimits.streamBytesMax
  ) {
    let sure = UInt64(SessionLimits.streamsMax) * SessionLimits.streamWindowSure
    streamPool = max(streamBytesMax, sure) - sure
    streamRule = ShareRule(
      capacity: Int(streamPool), reserve: Int(min(streamPool, SessionLimits.streamWindowFirst)),
      factor: SessionLimits.streamBytesFactor)
    self.local = local
    nodes = ReachableNodes(local: local)
    self.point = point
    signatures = VerifiedSignatures(cryptography)
    self.cryptography = signatures
    random = SeededRandom(seed: seed)
    lastNumber = UInt32(truncatingIfNeeded: random.next())
  }

  // MARK: Requests of applications

  /// Opens a session whose only member is `endpoint` of this node. If `decidesOnMembers` is true, the application
  /// decides on the certificate of each member. `owner` is the application to which the session's use of shared limits
  /// is charged. After `.ended`, the host calls `taken` for each message that the application still takes. The host
  /// calls `discard` when the application takes no more.
  public func open(
    _ endpoint: UInt32, _ rules: SessionRules, decidesOnMembers: Bool = false, owner: SessionOwner = SessionOwner(),
    now: Instant
  ) throws(SessionError) -> SessionHandle {
    guard endpoint != 0 else { throw .invalid }
    sessions.removeAll { $0.phase == .over }
    if sessions.count == SessionLimits.sessionsMax {
      // A session that its application has left gives way, preferably one without unconfirmed stream ends. A session
      // whose departure is not signed yet stays, because its members would not learn of the departure.
      func hasLeft(_ session: LocalSession) -> Bool { !session.isOpen && session.unsignedDeparture == nil }
      guard
        let leaving = sessions.firstIndex(where: { hasLeft($0) && !$0.owesStreams })
          ?? sessions.firstIndex(where: hasLeft)
      else { throw .full }
      sessions.remove(at: leaving)
    }
    let address = MemberAddress(node: local, endpoint: endpoint)
    let origin = SessionOrigin(
      founder: address, point: point, nonce: SessionID(high: random.next(), low: random.next()), rules: rules)
    var table = SessionTable(origin, cryptography)
    table.found()
    let session = LocalSession(
      SessionHandle(number: nextNumber()), address, owner: owner, decidesOnMembers: decidesOnMembers, table)
    sessions.append(session)
    return session.handle
  }

  /// Signatures that this node has made for sessions since its start.
  public var signaturesMade: UInt64 { signatures.signaturesMade }

  /// The current id of a session.
  public func id(of handle: SessionHandle) -> SessionID? { session(handle)?.table.id }

  /// The other members of a session, with their states.
  public func members(of handle: SessionHandle) -> [(address: MemberAddress, state: MemberState)] {
    (session(handle)?.peers ?? []).map { ($0.address, state(of: $0)) }
  }

  /// The table of a session, for status and tests.
  public func table(of handle: SessionHandle) -> SessionTable? { session(handle)?.table }

  /// Whether some member does not know yet a stream end that an application here knows. Messages about these ends must
  /// arrive before the node stops.
  public var owesStreams: Bool { sessions.contains { $0.owesStreams } }

  /// Whether signatures for departures are left for `signDeparture`. The signed departures must be sent before the node
  /// stops.
  public var owesDepartures: Bool { sessions.contains { $0.unsignedDeparture != nil && $0.phase != .over } }

  // MARK: Outputs

  /// Removes and returns the next event for the applications; nil if there is none.
  public func nextEvent() -> SessionEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The next message to send; nil if none is due or can be sent. `canSend` returns whether the channel to a node has
  /// room for the given number of bytes in a lane. In the bulk lane `canSend` must permit at most
  /// `SessionLimits.streamLaneBytesMax` unsent bytes. After `canSend` has returned false, call `nextOutput` again when
  /// the channel may have room. Report the result of each message with `completed`, at once if the node refuses the
  /// message.
  public func nextOutput(now: Instant, canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    // A message of this node to itself needs no channel.
    while let output = takeOutput(now, { $0 == local || canSend($0, $1, $2) }) {
      if output.to != local { return output }
      receiveOwn(output, over: .interactive, now)
      if output.lane != nil { completed(output.tag, isDelivered: true, now: now) }
    }
    return nil
  }

  private func takeOutput(_ now: Instant, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    // A message of this node to itself needs no channel, so it can be sent at any time.
    func maySend(_ node: NodeID, _ lane: Lane, _ byteCount: Int) -> Bool {
      node == local || canSend(node, lane, byteCount)
    }
    tendGatherings(now)
    lend(now)
    if let output = nextInvitationOutput(now, maySend) ?? staleOutput(maySend) { return output }
    for _ in sessions.indices {
      turn = turn + 1 < sessions.count ? turn + 1 : 0
      if let output = nextOutput(of: sessions[turn], now, maySend) ?? nextStreamOutput(of: sessions[turn], maySend) {
        return output
      }
    }
    return nil
  }

  /// The time when `handleTimeouts` or a delayed message is due. Messages that wait for a channel or for a route are
  /// not included, because the host calls `nextOutput` when that changes.
  public func nextDeadline(now: Instant) -> Instant {
    var earliest = Instant.never
    // A deadline that has passed is included until `handleTimeouts` has handled it.
    func noteEnd(_ instant: Instant) { earliest = min(earliest, instant) }
    func note(_ instant: Instant) {
      if instant > now { earliest = min(earliest, instant) }
    }
    for session in sessions {
      note(session.autoJoin.checkAt)
      for peer in session.peers {
        note(peer.nextDeadline(after: now))
        if session.isOpen {
          noteEnd(peer.credit.pauseAt)
          noteEnd(peer.credit.giveBackAt)
        }
      }
      for stranger in session.strangers { note(stranger.at) }
      for newcomer in session.pendingMembers { note(newcomer.at) }
      if case .leaving(let owing, let until) = session.phase { noteEnd(session.owesStreams ? owing : until) }
    }
    noteEnd(outgoing.nextDeadline(now: now))
    noteEnd(incoming.nextDeadline(now: now))
    for introduction in introductions { noteEnd(introduction.deadline) }
    return earliest
  }

  public func handleTimeouts(now: Instant) {
    endInvitations(now)
    // A reservation of credit may have been unused so long that it is due for withdrawal.
    creditRequests.roomAppeared()
    for session in sessions {
      if case .leaving(let owing, let until) = session.phase {
        if owing <= now { for index in session.peers.indices { forgetOwedStreams(session, index) } }
        if until <= now { session.phase = .over }
      }
      if session.isOpen {
        notePauses(session, now)
        giveBack(session, now)
      }
    }
    sessions.removeAll { $0.phase == .over }
  }

  // MARK: Helpers

  func session(_ handle: SessionHandle) -> LocalSession? {
    sessions.first { $0.handle == handle && $0.isOpen }
  }

  func emit(_ event: SessionEvent) { events.append(event) }

  func isInReach(_ node: NodeID) -> Bool { nodes.contains(node) }

  /// Whether members of a session with these rules can connect with members on `node` now. The node must be reachable,
  /// and its traffic sealed if the rules demand sealing.
  func mayMeet(_ rules: SessionRules, _ node: NodeID) -> Bool {
    guard let isSealed = nodes.isSealed(node) else { return false }
    return isSealed || !rules.onlySealed
  }

  /// A new number: never 0, and different from the last four billion numbers.
  func nextNumber() -> UInt32 {
    lastNumber &+= 1
    if lastNumber == 0 { lastNumber = 1 }
    return lastNumber
  }

  func nextMessageID() -> SessionMessageID {
    lastMessage += 1
    return SessionMessageID(number: lastMessage)
  }

  func output(
    _ kind: SessionKind, _ bytes: [UInt8], to node: NodeID, lane: Lane = .interactive,
    _ purpose: UndeliveredMessages.Purpose
  ) -> SessionOutput {
    SessionOutput(to: node, kind: kind, bytes: bytes, lane: lane, tag: undelivered.add(purpose))
  }

  func datagram(_ bytes: [UInt8], to node: NodeID) -> SessionOutput {
    SessionOutput(to: node, kind: .message, bytes: bytes, lane: nil, tag: 0)
  }
}
