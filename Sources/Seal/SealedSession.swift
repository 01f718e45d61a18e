import Primitives

/// A cryptographic session, with the state of the hellos that both ends exchange inside it.
final class SealedSession {
  enum Phase: Equatable {
    case handshaking
    /// Waiting for the application's decision on the certificate.
    case deciding
    /// This node accepts the session and confirms it in its hello. Data flows after the peer's hello has arrived.
    case accepted
    /// This node refuses the session. The hello with the refusal was not sent yet.
    case refusing(SealRefusal)
  }

  let session: any PeerSession
  let peerEpoch: UInt64
  let startedAt: Instant
  var establishedAt = Instant.zero
  var phase = Phase.handshaking
  /// Whether the peer's hello has arrived in this session.
  var hasPeerHello = false
  /// Whether a message of the peer has shown that this node's hello arrived.
  var peerHasOurs = false
  var peerReadsJoined = false
  var peerReadsBusy = false
  /// The time when the handshake last made progress.
  private(set) var progressAt: Instant
  private var progress: UInt32
  /// Since when the clock of the handshake is paused, because frames wait in a parked link; nil if the clock runs.
  private var parkedSince: Instant?
  /// The total of all earlier pauses of the clock.
  private var parkedSpan = TimeSpan(nanoseconds: 0)
  /// `progressAt` as a time of the clock. `session` gets and returns times of the clock too.
  private var progressOnClock: Instant
  /// The time when the hello is sent next.
  var helloDue = Instant.never
  /// The number of records that this end sealed in the session. The keys are renewed when the number of sealed or of
  /// opened records reaches `SessionLifetime.recordsMax`.
  var recordsSealed: UInt64 = 0
  /// The number of records that this end opened in the session.
  var recordsOpened: UInt64 = 0
  private var helloBackoff = Backoff(first: SealLimits.pauseMin, longest: SealLimits.pauseMax)

  init(_ session: any PeerSession, peerEpoch: UInt64, now: Instant) {
    self.session = session
    self.peerEpoch = peerEpoch
    startedAt = now
    progressAt = now
    progressOnClock = now
    progress = session.progress
  }

  // MARK: Handshake

  private func clock(_ now: Instant) -> Instant { .zero + ((parkedSince ?? now) - (.zero + parkedSpan)) }
  private func time(ofClock instant: Instant) -> Instant {
    instant == .never || parkedSince != nil ? .never : instant + parkedSpan
  }

  /// Pauses the clock of the handshake, or lets it continue.
  func setParked(_ isParked: Bool, now: Instant) {
    if let since = parkedSince, !isParked { parkedSpan = parkedSpan + (now - since) }
    parkedSince = isParked ? parkedSince ?? now : nil
  }

  /// Passes a handshake datagram to the session. Returns whether the datagram advanced the handshake.
  @discardableResult
  func receiveHandshake(_ datagram: RawSpan, now: Instant) -> Bool {
    session.receiveHandshake(datagram, now: clock(now))
    guard session.progress > progress else { return false }
    progress = session.progress
    progressAt = now
    progressOnClock = clock(now)
    return true
  }

  /// Retransmits if a retransmission is due.
  func handleTimeout(now: Instant) {
    if retransmissionDue <= now { session.handleTimeout(now: clock(now)) }
  }

  /// The time when the session's next retransmission is due.
  var retransmissionDue: Instant { time(ofClock: session.nextDeadline) }

  /// The time when the session fails unless it is confirmed.
  var deadline: Instant {
    switch phase {
    case .handshaking:
      min(
        time(ofClock: min(startedAt + SealLimits.handshakeTime, progressOnClock + SealLimits.stallTime)),
        progressAt + SealLimits.parkedTime)
    case .deciding: establishedAt + SealLimits.decisionTime
    // The application at the other end may still be deciding.
    case .accepted, .refusing: establishedAt + SealLimits.decisionTime + SealLimits.pauseMax
    }
  }

  /// Whether the handshake has made no progress for `SealLimits.claimTime`, or is older than `SealLimits.wholeTime`.
  func isOverdue(now: Instant) -> Bool {
    progressAt + SealLimits.claimTime <= now || startedAt + SealLimits.wholeTime <= now
  }

  /// Whether both ends have accepted the session.
  var isConfirmed: Bool { phase == .accepted && hasPeerHello }

  func accept(now: Instant) {
    phase = .accepted
    helloDue = now
  }

  func refuse(_ reason: SealRefusal, now: Instant) {
    phase = .refusing(reason)
    helloDue = now
  }

  /// Notes that a hello was sent. The hello is repeated until a message of the peer shows that it has arrived.
  func helloSent(now: Instant) {
    let pause = helloBackoff.take()
    helloDue = peerHasOurs ? .never : now + pause
  }

  /// Notes a message that the peer sends only after the arrival of this node's hello.
  func peerShowedThatItHasOurs() {
    if peerHasOurs { return }
    peerHasOurs = true
    helloDue = .never
  }

  func needsRekey(_ lifetime: SessionLifetime, now: Instant) -> Bool {
    max(recordsSealed, recordsOpened) >= lifetime.recordsMax || establishedAt + lifetime.age <= now
  }
}
