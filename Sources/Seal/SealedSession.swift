import Primitives

/// A cryptographic session and the state of the hellos that both ends exchange inside it.
final class SealedSession {
  enum Phase: Equatable {
    case handshaking
    /// Waiting for the application's decision on the certificate.
    case deciding
    /// This node accepts the session and says so in its hello. Data flows when the peer's hello has arrived.
    case accepted
    /// The hello with the refusal is not sent yet.
    case refusing(SealRefusal)
  }

  let session: any PeerSession
  let peerEpoch: UInt64
  let startedAt: Instant
  var establishedAt = Instant.zero
  var phase = Phase.handshaking
  var hasPeerHello = false
  var peerHasOurs = false
  var peerReadsJoined = false
  var peerReadsBusy = false
  /// When the handshake last made progress.
  private(set) var progressAt: Instant
  private var progress: UInt32
  var helloDue = Instant.never
  /// Records in each direction; the greater number triggers a rekey.
  var recordsSealed: UInt64 = 0
  var recordsOpened: UInt64 = 0
  private var helloPause = SealLimits.pauseMin

  init(_ session: any PeerSession, peerEpoch: UInt64, now: Instant) {
    self.session = session
    self.peerEpoch = peerEpoch
    startedAt = now
    progressAt = now
    progress = session.progress
  }

  /// A handshake datagram was passed to the session. False: the handshake stands where it stood.
  func noteProgress(now: Instant) -> Bool {
    guard session.progress > progress else { return false }
    progress = session.progress
    progressAt = now
    return true
  }

  /// The handshake stands still, or takes long although it does not.
  func isOverdue(now: Instant) -> Bool {
    progressAt + SealLimits.claimTime <= now || startedAt + SealLimits.wholeTime <= now
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

  /// A hello was sent. It is repeated until the peer shows that it arrived.
  func helloSent(now: Instant) {
    helloDue = peerHasOurs ? .never : now + helloPause
    helloPause = min(helloPause * 2, SealLimits.pauseMax)
  }

  /// The peer sent a message that it sends only after it received our hello.
  func peerShowedThatItHasOurs() {
    if peerHasOurs { return }
    peerHasOurs = true
    helloDue = .never
  }

  func needsRekey(_ lifetime: SessionLifetime, now: Instant) -> Bool {
    max(recordsSealed, recordsOpened) >= lifetime.recordsMax || establishedAt + lifetime.age <= now
  }
}
