import Primitives

/// A cryptographic session and what the two ends have told each other inside it.
final class SealedSession {
  enum Phase: Equatable {
    case handshaking
    /// The application looks at the certificate.
    case deciding
    /// This node's hello says so; data flows when the other's has come.
    case accepted
    /// The hello that says so has still to leave.
    case refusing(SealRefusal)
  }

  let session: any PeerSession
  let peerEpoch: UInt64
  let startedAt: Instant
  var establishedAt = Instant.zero
  var phase = Phase.handshaking
  var hasPeerHello = false
  var peerHasOurs = false
  var helloDue = Instant.never
  /// What either direction has carried, whichever more.
  var recordsSealed: UInt64 = 0
  var recordsOpened: UInt64 = 0
  private var helloPause = SealLimits.pauseMin

  init(_ session: any PeerSession, peerEpoch: UInt64, now: Instant) {
    self.session = session
    self.peerEpoch = peerEpoch
    startedAt = now
  }

  /// Both ends have accepted.
  var isConfirmed: Bool { phase == .accepted && hasPeerHello }

  func accept(now: Instant) {
    phase = .accepted
    helloDue = now
  }

  func refuse(_ reason: SealRefusal, now: Instant) {
    phase = .refusing(reason)
    helloDue = now
  }

  /// A hello has left; it is sent again until something of the other end shows that one has arrived.
  func helloSent(now: Instant) {
    helloDue = peerHasOurs ? .never : now + helloPause
    helloPause = min(helloPause * 2, SealLimits.pauseMax)
  }

  /// Something came that the other end only says when it has our hello.
  func peerShowedThatItHasOurs() {
    if peerHasOurs { return }
    peerHasOurs = true
    helloDue = .never
  }

  func needsRekey(_ lifetime: SessionLifetime, now: Instant) -> Bool {
    max(recordsSealed, recordsOpened) >= lifetime.recordsMax || establishedAt + lifetime.age <= now
  }
}
