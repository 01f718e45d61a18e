import Primitives

/// One other member of a session, seen from this one.
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
  /// The number under which this end takes messages, another one in each meeting; 0 before the first.
  var number: UInt32 = 0
  /// The other end's, 0 when it is not known.
  var theirNumber: UInt32 = 0
  /// The other end has repeated `number`: what comes under it was sent to this life of this end.
  var isHeard = false
  /// The other end has got a meet that repeats `theirNumber`.
  var isTold = false

  /// The session by which the other end has spoken to this one last.
  var named: SessionID?
  /// When this end last said a meet.
  var metAt = Instant.zero
  /// When each message is due; `.never` when it is not.
  var meetAt = Instant.never
  var newsAt = Instant.never
  var digestAt = Instant.never
  var wholeAt = Instant.never
  var windowAt = Instant.never

  /// The table's sequence that the other end has been told of.
  var toldUpTo: UInt64 = 0
  /// The digest that it was told last, and the one that it has said it has.
  var toldDigest: TableDigest?
  var theirDigest: TableDigest?
  var theirDigestAt = Instant.zero
  /// Since when the member has said other digests than this end's; `.never`: the last one was the same.
  var unlikeSince = Instant.never
  /// It has asked for the whole table.
  var isAskedForWhole = false
  /// When it was last sent the whole table, and which.
  var wholeSentAt = Instant.zero
  var wholeSequence = UInt64.max

  var credit: Credit
  var streams = PairStreams()

  init(_ address: MemberAddress, isAsked: Bool, unread: Unread = Unread()) {
    self.address = address
    credit = Credit(unread)
    verdict = isAsked ? .asked : .accepted
  }

  /// Whether anything is to be sent.
  func isDue(_ now: Instant) -> Bool {
    isTableDue(now) || meetAt <= now
      || phase == .connected && (windowAt <= now || credit.isAskDue || credit.isGiveBackDue)
  }

  func isTableDue(_ now: Instant) -> Bool { newsAt <= now || digestAt <= now || wholeAt <= now }

  /// When the whole table may go to the member: again after a while, and the same one after a longer one.
  func wholeMayGoAt(_ sequence: UInt64) -> Instant {
    wholeSentAt + (wholeSequence == sequence ? SessionLimits.sameTableTime : SessionLimits.tableTime)
  }

  /// Begins to meet, under a new number. Of the pool for messages it has `share`, or what it holds already.
  mutating func begin(_ number: UInt32, share: UInt64, at time: Instant) {
    phase = .meeting
    self.number = number
    isHeard = false
    isTold = false
    credit.beginReceiving(share)
    streams.lastTheirs = 0
    windowAt = .never
    // What it was told may be lost. Its meet says what it has.
    toldUpTo = 0
    toldDigest = nil
    wholeSequence = .max
    meetAt = verdict == .accepted ? time : .never
  }

  /// The member is out of reach.
  mutating func lose() {
    phase = .away
    named = nil
    number = 0
    theirNumber = 0
    isHeard = false
    isTold = false
    theirDigest = nil
    // What it was granted it cannot use any more.
    credit.beginReceiving(0)
    credit.endSending()
    meetAt = .never
    digestAt = .never
    wholeAt = .never
    windowAt = .never
  }

  /// The other end takes messages under another number now, and has got none of them.
  mutating func hears(_ number: UInt32, window: UInt64) {
    theirNumber = number
    isTold = false
    credit.endSending()
    credit.sendLimit = window
    credit.isPausedThere = false
  }
}
