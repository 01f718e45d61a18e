import Primitives

/// Another member of a session, as this one sees it.
struct Pair {
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
  /// The number under which this end accepts messages, a new one in each handshake; 0 before the first.
  var number: UInt32 = 0
  /// The number of the other end; 0 if it is not known.
  var theirNumber: UInt32 = 0
  /// Whether the other end has repeated `number`. Then messages with this number belong to this handshake.
  var isHeard = false
  /// Whether the other end has received a handshake message that repeats `theirNumber`.
  var isTold = false

  /// The session that the other end named last.
  var named: SessionID?
  /// The time of the last handshake message of this end.
  var metAt = Instant.zero
  /// The time when each message is due; `.never` if it is not.
  var meetAt = Instant.never
  var newsAt = Instant.never
  var digestAt = Instant.never
  var wholeAt = Instant.never
  var windowAt = Instant.never

  /// The sequence number of the table up to which the other end was sent records.
  var toldUpTo: UInt64 = 0
  /// The digest that was sent last to the other end, and the one that it reported last.
  var toldDigest: TableDigest?
  var theirDigest: TableDigest?
  var theirDigestAt = Instant.zero
  /// The time since which the member's digest has differed from this end's; `.never` if the last one was equal.
  var unlikeSince = Instant.never
  /// Whether the member has requested a snapshot.
  var isAskedForWhole = false
  /// The time of the last snapshot to the member, and the sequence number of its table.
  var wholeSentAt = Instant.zero
  var wholeSequence = UInt64.max

  var credit: Credit
  var streams = PairStreams()

  init(_ address: MemberAddress, isAsked: Bool, unread: Unread = Unread()) {
    self.address = address
    credit = Credit(unread)
    verdict = isAsked ? .asked : .accepted
  }

  /// Whether a message is due.
  func isDue(_ now: Instant) -> Bool {
    isTableDue(now) || meetAt <= now
      || phase == .connected && (windowAt <= now || credit.isAskDue || credit.isGiveBackDue)
  }

  func isTableDue(_ now: Instant) -> Bool { newsAt <= now || digestAt <= now || wholeAt <= now }

  /// The earliest time of the next snapshot to the member: after an interval, and after a longer one if the table is
  /// unchanged.
  func wholeMayGoAt(_ sequence: UInt64) -> Instant {
    wholeSentAt + (wholeSequence == sequence ? SessionLimits.sameTableTime : SessionLimits.tableTime)
  }

  /// Starts a handshake under a new number. The pair gets `share` of the share pool, or keeps what it still holds.
  mutating func begin(_ number: UInt32, share: UInt64, at time: Instant) {
    phase = .meeting
    self.number = number
    isHeard = false
    isTold = false
    credit.beginReceiving(share)
    streams.lastTheirs = 0
    windowAt = .never
    // Earlier table messages may be lost. The member's handshake message reports what it has.
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
    // The member can no longer use its credit.
    credit.beginReceiving(0)
    credit.endSending()
    meetAt = .never
    digestAt = .never
    wholeAt = .never
    windowAt = .never
  }

  /// Adopts a new handshake number of the other end, which has received no handshake message that repeats it.
  mutating func hears(_ number: UInt32, window: UInt64) {
    theirNumber = number
    isTold = false
    credit.endSending()
    credit.sendLimit = window
    credit.isPausedThere = false
  }
}
