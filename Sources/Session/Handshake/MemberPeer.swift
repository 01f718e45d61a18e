import Primitives

/// Another member of a session, as seen by the local member.
struct MemberPeer {
  /// The decision of the application on the certificate of the member's node.
  enum Decision {
    case pending
    case accepted
    case rejected
  }

  let address: MemberAddress
  var decision: Decision
  var handshake = MemberHandshake()
  var tableSync = TableSync()
  /// The session id that the other end has most recently used in a handshake or table message.
  var named: SessionID?
  /// The time at which a window message is due; `.never` if none is.
  var windowAt = Instant.never
  var credit: Credit
  var streams = PairStreams()

  init(_ address: MemberAddress, mustBeDecided: Bool, unread: Unread = Unread()) {
    self.address = address
    credit = Credit(unread)
    decision = mustBeDecided ? .pending : .accepted
  }

  var phase: MemberHandshake.Phase { handshake.phase }
  /// The handshake numbers of this end and of the other end.
  var number: UInt32 { handshake.number }
  var theirNumber: UInt32 { handshake.theirNumber }

  /// Whether a message in the interactive lane is due, other than one of a stream.
  func isDue(_ now: Instant) -> Bool {
    tableSync.isDue(now) || handshake.isDue(now)
      || phase == .connected && (windowAt <= now || credit.isAskDue || credit.isGiveBackDue)
  }

  /// The earliest time after `now` at which a message is due, or at which an unused reservation is withdrawn.
  func nextDeadline(after now: Instant) -> Instant {
    let takeBackAt = credit.takeBackAt
    return min(
      handshake.nextDeadline(after: now), tableSync.nextDeadline(after: now), takeBackAt > now ? takeBackAt : .never)
  }

  /// Starts a handshake under a new number. The member gets `share` bytes of the share pool, or keeps the part of its
  /// former share that is still used.
  mutating func begin(_ number: UInt32, share: UInt64, at time: Instant) {
    handshake.begin(number, at: decision == .accepted ? time : .never)
    tableSync.begin()
    credit.beginReceiving(share)
    streams.lastTheirs = 0
    windowAt = .never
  }

  /// Notes that the member is unreachable.
  mutating func lose() {
    handshake.lose()
    tableSync.lose()
    named = nil
    // The member can no longer use the credit that this end granted.
    credit.beginReceiving(0)
    credit.endSending()
    windowAt = .never
  }

  /// Adopts a new handshake number of the other end, which grants `window` bytes with it.
  mutating func restartedByOther(_ number: UInt32, window: UInt64) {
    handshake.restartedByOther(number)
    credit.endSending()
    credit.sendLimit = window
    credit.isPausedThere = false
  }
}
