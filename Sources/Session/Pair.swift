import Channel
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
  /// When it was last sent the whole table, and which.
  var wholeSentAt = Instant.zero
  var wholeSequence = UInt64.max

  var credit = Credit()
  var streams = PairStreams()

  init(_ address: MemberAddress, isAsked: Bool) {
    self.address = address
    verdict = isAsked ? .asked : .accepted
  }

  /// When the whole table may go to the member: again after a while, and the same one after a longer one.
  func wholeMayGoAt(_ sequence: UInt64) -> Instant {
    wholeSentAt + (wholeSequence == sequence ? SessionLimits.sameTableTime : SessionLimits.tableTime)
  }

  /// Begins to meet, under a new number.
  mutating func begin(_ number: UInt32, at time: Instant) {
    phase = .meeting
    self.number = number
    isHeard = false
    isTold = false
    credit.beginReceiving()
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
    number = 0
    theirNumber = 0
    isHeard = false
    isTold = false
    theirDigest = nil
    meetAt = .never
    digestAt = .never
    wholeAt = .never
    windowAt = .never
  }

  /// The other end takes messages under another number now, and has got none of them.
  mutating func hears(_ number: UInt32, window: UInt64) {
    theirNumber = number
    isTold = false
    credit.sent = 0
    credit.sendLimit = window
    credit.isPausedThere = false
  }
}

/// How many bytes of messages may go to a member and come from it, since the two met.
struct Credit {
  /// What a member may send before the application has taken anything.
  static let window: UInt64 = 128 * 1024

  var sent: UInt64 = 0
  var sendLimit: UInt64 = 0
  /// The other end's application reads nothing.
  var isPausedThere = false
  var received: UInt64 = 0
  var receiveLimit = Credit.window
  /// What the application has taken.
  var taken: UInt64 = 0
  /// What came in former meetings and the application has not taken: it counts still.
  private var carried: UInt64 = 0
  /// Since when the application has not taken what is here; `.never` when nothing is.
  var unreadSince = Instant.never
  /// The other end was told, or is to be told, that the application here reads nothing.
  var isPausedHere = false

  /// Under a new number nothing has come yet.
  mutating func beginReceiving() {
    carried += received - taken
    received = 0
    taken = 0
    receiveLimit = Self.window - min(carried, Self.window)
  }

  static func cost(_ byteCount: Int) -> UInt64 { UInt64(byteCount + SessionLimits.messageOverheadBytes) }

  func maySend(_ byteCount: Int) -> Bool { sent + Self.cost(byteCount) <= sendLimit }

  /// Whether the other end was allowed to send this. Counts it.
  mutating func receives(_ byteCount: Int, _ now: Instant) -> Bool {
    guard received + Self.cost(byteCount) <= receiveLimit else { return false }
    received += Self.cost(byteCount)
    if unreadSince == .never { unreadSince = now }
    return true
  }

  /// The application took a message. True when the other end should learn that it may send more, or that it reads again.
  mutating func takes(_ byteCount: Int, _ now: Instant) -> Bool {
    let cost = Self.cost(byteCount), former = min(cost, carried)
    carried -= former
    taken = min(taken + cost - former, received)
    unreadSince = carried + received > taken ? now : .never
    if isPausedHere {
      isPausedHere = false
      return true
    }
    return widest >= receiveLimit + Self.window / 4
  }

  /// How far the limit could go.
  private var widest: UInt64 { taken + Self.window - min(carried, Self.window) }

  /// When the application counts as paused.
  var pauseAt: Instant { isPausedHere ? .never : unreadSince + SessionLimits.pauseTime }

  /// Grants what the application has made room for. Returns the limit.
  mutating func grant() -> UInt64 {
    receiveLimit = max(receiveLimit, widest)
    return receiveLimit
  }
}
