import Frame
import Primitives

/// End-to-end encryption with one peer: begins, confirms and renews sessions. A failed handshake never affects a
/// working session.
///
/// Sans-IO, like `Channel`. **Drain rule**: after every call that changes the seal the owner
/// 1. creates a session if `needsSession` is true, and passes it to `begin`;
/// 2. calls `nextFrame` until it returns nil, while there is a route;
/// 3. calls `nextEvent` until it returns nil;
/// 4. sets its timer to `nextDeadline`.
///
/// `localEpoch` and `peerEpoch` are the boot epochs in the two nodes' signed advertisements. If an advertisement has a
/// newer epoch, the owner creates a new seal.
///
/// The client, which is the node with the lower id, begins sessions. The server requests a session with a handshake
/// frame that contains no datagram. A session is confirmed, and carries data, after each end has sent a hello inside
/// it. The hello accepts the other end's key, and repeats the properties of both nodes that were exchanged in
/// unencrypted frames. A new session replaces the old one only when the new one is confirmed. So no relay can end a
/// working session by interfering with a handshake.
public final class Seal {
  public let name: (local: NodeID, peer: NodeID)
  public let localEpoch: UInt64
  public let peerEpoch: UInt64
  /// Why no data may flow, after one end has refused the other; nil without a refusal.
  public private(set) var refusal: SealRefusal?
  /// Why there is no session, and since when. The value is kept until a session is established, even during retries.
  /// Nil while a session exists, and before the first attempt has ended.
  public private(set) var obstacle: (reason: SealObstacle, since: Instant)?
  /// The time since which this end has begun or requested sessions without an answer, and the time of the last attempt.
  /// Nil if the peer has answered. The value is set even before a handshake has failed, because a server only sends
  /// requests.
  public private(set) var unanswered: (since: Instant, last: Instant)?
  /// Whether the owner has data for the peer.
  public var isWanted = false
  /// The epoch of this end's channel, which the hello states. The owner must keep this value up to date.
  public var channelEpoch: UInt64

  private let lifetime: SessionLifetime
  private let asksApplication: Bool
  private let ownFlags: TopologyFlags
  private let peerFlags: TopologyFlags

  private var attempt: SealedSession?
  private var current: SealedSession?
  private var previous: SealedSession?
  private var previousUntil = Instant.never
  private var refusedUntil = Instant.zero
  /// Whether the peer requested a session, or sent a record that no session here can open.
  private var isAsked = false
  /// The earliest time of the next attempt or session request.
  private var retryAt = Instant.zero
  private var backoff = Backoff(first: SealLimits.pauseMin, longest: SealLimits.pauseMax)
  private var openedAt: Instant?
  private var events: [SealEvent] = []

  /// Creates a seal without a session. `ownFlags` and `peerFlags` are from the two nodes' signed advertisements. With
  /// `asksApplication` the application decides on each certificate before data flows.
  public init(
    local: NodeID, peer: NodeID, localEpoch: UInt64, peerEpoch: UInt64, ownFlags: TopologyFlags,
    peerFlags: TopologyFlags, lifetime: SessionLifetime = SessionLifetime(), asksApplication: Bool = false
  ) {
    name = (local, peer)
    self.localEpoch = localEpoch
    self.peerEpoch = peerEpoch
    channelEpoch = localEpoch
    self.ownFlags = ownFlags
    self.peerFlags = peerFlags
    self.lifetime = lifetime
    self.asksApplication = asksApplication
  }

  // MARK: State

  /// The two ends of this seal's sessions.
  public var sessionName: SessionName {
    SessionName(local: name.local, peer: name.peer, localEpoch: localEpoch, peerEpoch: peerEpoch)
  }

  /// Whether there is a confirmed session, so that `seal` can be used.
  public var isOpen: Bool { current != nil }
  /// Whether the other end has proved its key in a session that this end has accepted, even if it is not confirmed.
  public var isAccepted: Bool { current != nil || attempt?.phase == .accepted }
  /// Whether the other end announced that it reads payloads of the type `FrameType.joined`.
  public var peerReadsJoined: Bool { current?.peerReadsJoined ?? false }
  /// The time of the last progress of the handshake in progress; nil without a handshake.
  public var progressAt: Instant? { attempt.flatMap { $0.phase == .handshaking ? $0.progressAt : nil } }
  /// Whether there is a handshake in progress that must give its slot to another handshake that needs one.
  public func isHandshakeOverdue(now: Instant) -> Bool { isHandshaking && attempt?.isOverdue(now: now) == true }
  /// Whether a handshake is in progress in which the other end has not yet proved its key.
  public var isHandshaking: Bool { attempt?.phase == .handshaking }
  /// Whether the application has to decide on a certificate.
  public var isDeciding: Bool { attempt?.phase == .deciding }

  /// The certificate chain with which the other end proved its key, in DER, beginning with that end's own certificate.
  /// Nil while `isOpen` is false.
  public var peerChain: [[UInt8]]? { current?.session.peerChain }

  /// Removes and returns the next event; nil if there is none.
  public func nextEvent() -> SealEvent? { events.isEmpty ? nil : events.removeFirst() }

  // MARK: Sessions

  /// Whether the owner must create a session now, as the client.
  public func needsSession(now: Instant) -> Bool {
    guard sessionName.isClient, attempt == nil, retryAt <= now, refusedUntil <= now else { return false }
    guard let current else { return isWanted || isAsked }
    return isAsked || current.needsRekey(lifetime, now: now)
  }

  /// Starts the session that `needsSession` required. `session` is nil if the owner could not create a session; the
  /// seal then retries later.
  public func begin(_ session: (any PeerSession)?, now: Instant) {
    guard let session else { return waitForRetry(now) }
    refusal = nil
    noteAsked(now)
    attempt = SealedSession(session, peerEpoch: peerEpoch, now: now)
  }

  /// Postpones the session that `needsSession` required, because this node has no slot for it now. The seal retries
  /// after a pause of at most `SealLimits.busyPauseMax`.
  public func postpone(now: Instant) {
    if current == nil { obstacle = (.noSlotHere, now) }
    waitForRetry(now, pauseMax: SealLimits.busyPauseMax)
  }

  /// Evicts the handshake in progress in favour of another peer. Writes the payload of a handshake frame that reports
  /// the eviction to the peer to the start of `buffer`, which has 2048 bytes. Returns the length of the payload, 0 if
  /// there is none.
  public func displaceHandshake(into buffer: UnsafeMutableRawBufferPointer, now: Instant) -> Int {
    guard let attempt, attempt.phase == .handshaking else { return 0 }
    attempt.session.abandon()
    let frame = nextHandshake(of: attempt, into: buffer)
    fail(.displaced, now)
    return if case .handshake(let byteCount) = frame { byteCount } else { 0 }
  }

  /// Ends all sessions permanently. The reason `.busy` means that another peer gets the slot. Writes the payload of a
  /// frame that reports the end to the peer to the start of `buffer`, which has 2048 bytes. Returns nil if no
  /// frame is to be sent. The seal must not be used afterwards.
  public func end(
    _ reason: SealRefusal, into buffer: UnsafeMutableRawBufferPointer, now: Instant
  ) -> SealFrame? {
    guard let current else {
      let byteCount = displaceHandshake(into: buffer, now: now)
      return byteCount == 0 ? nil : .handshake(byteCount: byteCount)
    }
    // A peer that does not know the refusal `.busy` would pause for a minute. Without a refusal the peer begins again
    // as soon as it learns that its next record was not opened.
    if reason == .busy && !current.peerReadsBusy { return nil }
    return writeHello(of: current, refusal: reason, into: buffer)
  }

  /// Passes a repeated hello (the first datagram of a handshake) to the session that the same hello began. Returns
  /// false if the hello began none of the sessions.
  public func receiveAgain(_ hello: RawSpan, now: Instant) -> Bool {
    for session in [attempt, current] {
      if let session, session.session.began(with: hello) {
        session.receiveHandshake(hello, now: now)
        return true
      }
    }
    return false
  }

  /// Whether a hello that `SessionMaker.answerHello` accepted may start a session, with this node as the server. No
  /// session may start while the application decides on a certificate.
  public func mayAccept(now: Instant) -> Bool {
    guard !sessionName.isClient, refusedUntil <= now else { return false }
    guard let attempt else { return true }
    // A client that begins again has abandoned its earlier attempt. This also holds if this end has accepted the
    // earlier session and waits for its confirmation.
    return (attempt.phase == .handshaking || attempt.phase == .accepted)
      && attempt.startedAt + SealLimits.replaceTime <= now
  }

  /// Starts the server's end of a session that `mayAccept` allowed.
  public func accept(_ session: any PeerSession, now: Instant) {
    refusal = nil
    unanswered = nil
    attempt = SealedSession(session, peerEpoch: peerEpoch, now: now)
  }

  /// Notes that a route to the peer was found, or that the parked link of the route is up again. The next attempt may
  /// begin at once, and the pauses start again from the shortest one.
  public func routeFound() {
    retryAt = .zero
    backoff.reset()
  }

  /// Notes whether frames wait in the first link of the route because it is parked. While they do, the clock of a
  /// handshake is paused: a leaf in a crowded room is connected for seconds, and answers arrive in its next turn.
  public func setParked(_ isParked: Bool, now: Instant) {
    if let attempt, attempt.phase == .handshaking { attempt.setParked(isParked, now: now) }
  }

  /// Requests a session because the owner has unreliable data for the peer. The data itself is not queued.
  public func want() { isAsked = isAsked || current == nil }

  /// Whether `noteUndecryptable` would change anything now.
  public func mayBeAsked(now: Instant) -> Bool {
    guard !isAsked, attempt == nil, !(isWanted && current == nil) else { return false }
    guard let openedAt, current != nil else { return true }
    return openedAt + SealLimits.undecryptableTime <= now
  }

  /// Notes that the peer requested a session, or sent a record that no session here can open. The peer may have lost
  /// its session. The call is ignored if a record was opened within `SealLimits.undecryptableTime`, because any relay
  /// can forge a request or a record of the peer.
  public func noteUndecryptable(now: Instant) {
    if let openedAt, current != nil, openedAt + SealLimits.undecryptableTime > now { return }
    isAsked = true
  }

  /// Applies the application's decision on the certificate. The call is ignored if no decision is pending.
  public func decide(isAccepted: Bool, now: Instant) {
    guard let attempt, attempt.phase == .deciding else { return }
    if isAccepted { attempt.accept(now: now) } else { refuse(attempt, .rejected, now) }
    promote(now)
  }

  /// Repeats the decision on each chain that this end has accepted, after trust has changed. If `isRefused` returns
  /// true for a chain, all sessions end, and the peer receives the refusal.
  public func reconsider(now: Instant, isRefused: ([[UInt8]]) -> Bool) {
    let accepted = [current, attempt?.phase == .accepted ? attempt : nil].compactMap { $0 }
    if let session = accepted.first(where: { isRefused($0.session.peerChain) }) { refuse(session, .rejected, now) }
  }

  // MARK: Frames

  /// Handles the datagram of a handshake frame with valid epochs that does not begin a session. Returns whether the
  /// datagram advanced the handshake.
  public func receiveHandshake(_ datagram: RawSpan, now: Instant) -> Bool {
    guard let attempt else {
      // This end's last flight may have been lost, so that the peer repeats its own flight.
      current?.receiveHandshake(datagram, now: now)
      return false
    }
    let hasAdvanced = attempt.receiveHandshake(datagram, now: now)
    // A cookie is not treated as an answer, because a node that is going to refuse this node sends a cookie too.
    if hasAdvanced || attempt.session.state != .handshaking { unanswered = nil }
    // A failure takes effect only after the alert is sent.
    if attempt.session.state == .established { look(at: attempt, now) }
    return hasAdvanced
  }

  /// Writes the payload of the next frame to the start of `buffer`, which has 2048 bytes. Returns nil if there is no
  /// frame to send now.
  public func nextFrame(into buffer: UnsafeMutableRawBufferPointer, now: Instant) -> SealFrame? {
    if let frame = nextHandshake(of: attempt, into: buffer) ?? nextHandshake(of: current, into: buffer) { return frame }
    if let attempt { look(at: attempt, now) }
    if let frame = nextHello(of: attempt, into: buffer, now) ?? nextHello(of: current, into: buffer, now) {
      return frame
    }
    guard invitationDue <= now else { return nil }
    waitForRetry(now)
    isAsked = false
    noteAsked(now)
    writeEpochs(into: buffer)
    return .handshake(byteCount: SealLimits.handshakeHeaderBytes)
  }

  /// Seals a type byte and the payload of that type with the newest keys. Returns the number of bytes written, 0
  /// without a usable session.
  public func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int {
    guard let current else { return 0 }
    current.recordsSealed += 1
    return current.session.seal(plaintext, into: record)
  }

  /// Opens a record with the first session that can decrypt it. Writes the plaintext to the start of `buffer`, which is
  /// as long as the record. Returns nil if no session can decrypt the record, or if it contains data and that session
  /// is not confirmed.
  public func open(_ record: RawSpan, into buffer: UnsafeMutableRawBufferPointer, now: Instant) -> Opened? {
    if let current, let count = current.session.open(record, into: buffer) {
      current.recordsOpened += 1
      return opened(current, buffer, count, now)
    }
    if let attempt, attempt.phase != .handshaking, let count = attempt.session.open(record, into: buffer) {
      return opened(attempt, buffer, count, now)
    }
    if let previous, let count = previous.session.open(record, into: buffer) {
      return opened(previous, buffer, count, now)
    }
    return nil
  }

  // MARK: Time

  /// The time when `handleTimeout` is due, followed by the steps of the drain rule. Without a route, actions that need
  /// a route set no deadline.
  public func nextDeadline(hasRoute: Bool) -> Instant {
    var earliest = Instant.never
    if let attempt {
      earliest = min(attempt.deadline, attempt.retransmissionDue)
      if hasRoute { earliest = min(earliest, attempt.helloDue) }
    }
    if let current {
      earliest = min(earliest, current.retransmissionDue)
      if hasRoute { earliest = min(earliest, current.helloDue) }
      if hasRoute && attempt == nil && sessionName.isClient {
        earliest = min(earliest, max(current.establishedAt + lifetime.age, retryAt))
      }
    }
    if previous != nil { earliest = min(earliest, previousUntil) }
    if refusal != nil { earliest = min(earliest, refusedUntil) }
    if hasRoute { earliest = min(earliest, sessionName.isClient ? beginningDue : invitationDue) }
    return earliest
  }

  public func handleTimeout(now: Instant) {
    if let attempt {
      attempt.handleTimeout(now: now)
      if attempt.deadline <= now {
        if attempt.phase == .deciding { refuse(attempt, .undecided, now) } else { fail(.timedOut, now) }
      }
    }
    current?.handleTimeout(now: now)
    if refusedUntil <= now { refusal = nil }
    if previousUntil <= now {
      previous = nil
      previousUntil = .never
    }
  }

  // MARK: Internals

  private var isDue: Bool { attempt == nil && (isAsked || (isWanted && current == nil)) }
  private var beginningDue: Instant { isDue ? max(retryAt, refusedUntil) : .never }
  private var invitationDue: Instant {
    isDue && !sessionName.isClient ? max(retryAt, refusedUntil) : .never
  }

  private func noteAsked(_ now: Instant) {
    if current == nil { unanswered = (unanswered?.since ?? now, now) }
  }

  private func waitForRetry(_ now: Instant, pauseMax: TimeSpan = SealLimits.pauseMax) {
    retryAt = now + min(backoff.take(), pauseMax)
  }

  /// Acts on the result of a handshake.
  private func look(at attempt: SealedSession, _ now: Instant) {
    guard attempt.phase == .handshaking else { return }
    switch attempt.session.state {
    case .handshaking: return
    case .failed(let reason): fail(reason, now)
    case .established:
      attempt.establishedAt = now
      attempt.setParked(false, now: now)
      if asksApplication && current?.session.peerChain != attempt.session.peerChain {
        attempt.phase = .deciding
        events.append(.decisionWanted(chain: attempt.session.peerChain))
      } else {
        attempt.accept(now: now)
      }
    }
  }

  private func fail(_ reason: SessionFailure, _ now: Instant) {
    attempt = nil
    isAsked = false
    if current == nil { obstacle = (.failed(reason), now) }
    switch reason {
    case .busy, .displaced: waitForRetry(now, pauseMax: SealLimits.busyPauseMax)
    case .wrongIdentity, .noIdentity, .timedOut, .endedByPeer, .broken, .noMemory: waitForRetry(now)
    }
    events.append(.failed(reason))
  }

  /// Refuses a session. The session ends after the hello with the refusal was sent.
  private func refuse(_ session: SealedSession, _ reason: SealRefusal, _ now: Instant) {
    session.refuse(reason, now: now)
    if session !== attempt { attempt = session }
    close(reason, byPeer: false, now)
  }

  private func close(_ reason: SealRefusal, byPeer: Bool, _ now: Instant) {
    current = nil
    previous = nil
    isAsked = false
    refusal = reason
    obstacle = (.refused(reason, byPeer: byPeer), now)
    refusedUntil = now + SealLimits.refusedTime
    events.append(.refused(reason, byPeer: byPeer))
  }

  private func promote(_ now: Instant) {
    guard let attempt, attempt.isConfirmed else { return }
    if current != nil {
      previous = current
      previousUntil = now + SealLimits.previousTime
    }
    current = attempt
    obstacle = nil
    self.attempt = nil
    isAsked = false
    backoff.reset()
    retryAt = now + SealLimits.undecryptableTime
    events.append(.opened(milliseconds: (now - attempt.startedAt).milliseconds))
  }

  private func opened(
    _ session: SealedSession, _ buffer: UnsafeMutableRawBufferPointer, _ count: Int, _ now: Instant
  ) -> Opened? {
    guard count > 0 else { return nil }
    openedAt = now
    if buffer[0] == Self.helloType {
      return .hello(
        channelEpoch: receiveHello(UnsafeRawBufferPointer(rebasing: buffer[1..<count]).bytes, session, now))
    }
    // Data is not accepted before the peer's hello has arrived.
    guard session.isConfirmed else { return nil }
    session.peerShowedThatItHasOurs()
    return .payload(type: buffer[0], byteCount: count - 1)
  }

  /// Handles a hello. Returns the other end's channel epoch if this hello is accepted.
  private func receiveHello(_ payload: RawSpan, _ session: SealedSession, _ now: Instant) -> UInt64? {
    // Hellos of a replaced or refused session are ignored.
    guard session === attempt || session === current else { return nil }
    guard let hello = try? SealHello(payload) else {
      refuse(session, .version, now)
      return nil
    }
    if hello.refusal == .busy {
      current = nil
      previous = nil
      fail(.busy, now)
      return nil
    }
    if let refusal = hello.refusal {
      attempt = nil
      close(refusal, byPeer: true, now)
      return nil
    }
    guard hello.ownFlags == peerFlags, hello.yourFlags == ownFlags, hello.ownEpoch == session.peerEpoch,
      hello.yourEpoch == localEpoch
    else {
      refuse(session, .contradiction, now)
      return nil
    }
    session.hasPeerHello = true
    session.peerReadsJoined = hello.readsJoined
    session.peerReadsBusy = hello.readsBusy
    if hello.hasYours { session.peerShowedThatItHasOurs() }
    if hello.wantsAnswer && session.phase == .accepted { session.helloDue = now }
    promote(now)
    return hello.channelEpoch
  }

  private static let helloType: UInt8 = 1

  private func nextHandshake(of session: SealedSession?, into buffer: UnsafeMutableRawBufferPointer) -> SealFrame? {
    guard let session else { return nil }
    let room = UnsafeMutableRawBufferPointer(rebasing: buffer[SealLimits.handshakeHeaderBytes...])
    let count = session.session.nextHandshake(into: room)
    if count == 0 { return nil }
    writeEpochs(into: buffer)
    return .handshake(byteCount: SealLimits.handshakeHeaderBytes + count)
  }

  private func writeEpochs(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(bigEndian: peerEpoch)
      output.append(bigEndian: localEpoch)
    }
  }

  private func nextHello(
    of session: SealedSession?, into buffer: UnsafeMutableRawBufferPointer, _ now: Instant
  ) -> SealFrame? {
    guard let session, session.helloDue <= now else { return nil }
    var refusal: SealRefusal?
    if case .refusing(let reason) = session.phase { refusal = reason }
    session.helloSent(now: now)
    let frame = writeHello(of: session, refusal: refusal, into: buffer)
    if refusal != nil { attempt = nil }
    return frame
  }

  private func writeHello(
    of session: SealedSession, refusal: SealRefusal?, into buffer: UnsafeMutableRawBufferPointer
  ) -> SealFrame? {
    let hello = SealHello(
      hasYours: session.hasPeerHello, wantsAnswer: !session.peerHasOurs && refusal == nil, refusal: refusal,
      ownFlags: ownFlags, yourFlags: peerFlags, ownEpoch: localEpoch, yourEpoch: session.peerEpoch,
      channelEpoch: channelEpoch)
    session.recordsSealed += 1
    let count = withUnsafeTemporaryAllocation(byteCount: 1 + SealHello.byteCount, alignment: 1) { plaintext in
      plaintext[0] = Self.helloType
      hello.encode(into: UnsafeMutableRawBufferPointer(rebasing: plaintext[1...]))
      return session.session.seal(UnsafeRawBufferPointer(plaintext), into: buffer)
    }
    return count == 0 ? nil : .sealed(byteCount: count)
  }
}
