import Primitives

/// Another member of a session, as the local member sees it, and the state of the handshake between the two.
struct MemberPeer {
  enum Phase: Equatable {
    case away
    case meeting
    case connected
  }

  enum Verdict {
    case asked
    case accepted
    case rejected
  }

  let address: MemberAddress
  var phase = Phase.away
  var verdict: Verdict
  /// The handshake number of this end, a new one in each handshake; 0 before the first. This end accepts only messages
  /// that carry this number.
  var number: UInt32 = 0
  /// The handshake number of the other end; 0 if it is not known.
  var theirNumber: UInt32 = 0
  /// Whether the other end has repeated `number` in a handshake message. From then on this end accepts messages with
  /// `number`.
  var isHeard = false
  /// Whether the other end has received a handshake message of this end that repeats `theirNumber`.
  var isTold = false

  /// The session id that the other end used last in a handshake or table message.
  var named: SessionID?
  /// The time at which this end sent its last handshake message.
  var metAt = Instant.zero
  /// The times at which the next messages are due: handshake, delta (changed records), digest, snapshot (complete
  /// table) and window. A message with `.never` is not due.
  var meetAt = Instant.never
  var newsAt = Instant.never
  var digestAt = Instant.never
  var wholeAt = Instant.never
  var windowAt = Instant.never

  /// The other end was sent all records that changed up to this sequence number of the table.
  var toldUpTo: UInt64 = 0
  /// The digest that was sent last to the other end, and the digest that the other end reported last.
  var toldDigest: TableDigest?
  var theirDigest: TableDigest?
  var theirDigestAt = Instant.zero
  /// The time since which the member's digest has differed from this end's; `.never` if the last report was equal.
  var unlikeSince = Instant.never
  /// Whether the member has requested a snapshot.
  var isAskedForWhole = false
  /// The time of the last snapshot to the member, and the sequence number of the table at that time.
  var wholeSentAt = Instant.zero
  var wholeSequence = UInt64.max

  var credit: Credit
  var streams = PairStreams()

  init(_ address: MemberAddress, isAsked: Bool, unread: Unread = Unread()) {
    self.address = address
    credit = Credit(unread)
    verdict = isAsked ? .asked : .accepted
  }

  /// Whether a message in the interactive lane is due, other than one of a stream.
  func isDue(_ now: Instant) -> Bool {
    isTableDue(now) || meetAt <= now
      || phase == .connected && (windowAt <= now || credit.isAskDue || credit.isGiveBackDue)
  }

  func isTableDue(_ now: Instant) -> Bool { newsAt <= now || digestAt <= now || wholeAt <= now }

  /// The earliest time of the next snapshot to the member. After the last snapshot an interval must pass, and a longer
  /// one if the table is unchanged.
  func wholeMayGoAt(_ sequence: UInt64) -> Instant {
    wholeSentAt + (wholeSequence == sequence ? SessionLimits.sameTableTime : SessionLimits.tableTime)
  }

  /// Starts a handshake under a new number. The member gets `share` bytes of the share pool, or keeps the part of its
  /// former share that is still used.
  mutating func begin(_ number: UInt32, share: UInt64, at time: Instant) {
    phase = .meeting
    self.number = number
    isHeard = false
    isTold = false
    credit.beginReceiving(share)
    streams.lastTheirs = 0
    windowAt = .never
    // Earlier table messages may be lost. The member's handshake message will report the digest of its table.
    toldUpTo = 0
    toldDigest = nil
    wholeSequence = .max
    meetAt = verdict == .accepted ? time : .never
  }

  /// Notes that the member is unreachable.
  mutating func lose() {
    phase = .away
    named = nil
    number = 0
    theirNumber = 0
    isHeard = false
    isTold = false
    theirDigest = nil
    // The member can no longer use the credit that this end granted.
    credit.beginReceiving(0)
    credit.endSending()
    meetAt = .never
    digestAt = .never
    wholeAt = .never
    windowAt = .never
  }

  /// Adopts a new handshake number of the other end. The other end has received no handshake message that repeats the
  /// new number.
  mutating func hears(_ number: UInt32, window: UInt64) {
    theirNumber = number
    isTold = false
    credit.endSending()
    credit.sendLimit = window
    credit.isPausedThere = false
  }
}
