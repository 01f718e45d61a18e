import Primitives

/// How many bytes of messages may go to a member and come from it, since the two met.
///
/// Whatever the other end may send has its room here: its share of a pool, and beyond that what was lent for one message
/// that it asked for. So no message that has arrived is ever dropped for lack of memory.
struct Credit {
  /// What a member may have of the pool at most.
  static let shareMax: UInt64 = 128 * 1024
  /// A smaller share is of no use.
  static let shareMin: UInt64 = 1024

  // MARK: What this end sends

  var sent: UInt64 = 0
  var sendLimit: UInt64 = 0
  /// How far the application would have sent when it was refused for lack of credit; 0: it was not.
  var wanted: UInt64 = 0
  /// How far the other end was asked for room in this meeting.
  private var askedUpTo: UInt64 = 0
  /// The other end's application reads nothing.
  var isPausedThere = false
  /// The other end is to be asked for what is wanted.
  var isAskDue = false
  /// The rest of what it may send is to be given back.
  var isGiveBackDue = false
  /// When what the application asked for and has not used is given back.
  var giveBackAt = Instant.never

  // MARK: What comes

  var received: UInt64 = 0
  var receiveLimit: UInt64 = 0
  /// What the application has taken, or the other end has given back.
  var taken: UInt64 = 0
  /// What came in former meetings and the application has not taken: it counts still.
  private var carried: UInt64 = 0
  /// What it has of the pool.
  private(set) var share: UInt64 = 0
  /// How far the other end would send; 0: it asks for nothing. Those that ask have their turns in the order of `askTurn`.
  var asked: UInt64 = 0
  var askTurn: UInt64 = 0
  /// What had come when it was last lent something, and since when that stands.
  private var receivedAtLoan: UInt64 = 0
  private(set) var lentAt = Instant.never
  /// Since when the application has not taken what is here; `.never` when nothing is.
  var unreadSince = Instant.never
  /// The other end was told, or is to be told, that the application here reads nothing.
  var isPausedHere = false

  init(_ unread: Unread) {
    carried = unread.bytes
    share = unread.share
  }

  static func cost(_ byteCount: Int) -> UInt64 { UInt64(byteCount + SessionLimits.messageOverheadBytes) }

  /// What the greatest message costs: as much is lent to one member at most.
  static let costMax = cost(SessionLimits.messageBytesMax)

  // MARK: Sending

  func maySend(_ byteCount: Int) -> Bool { sent + Self.cost(byteCount) <= sendLimit }

  /// The application was refused a message: the other end is asked for room.
  mutating func wants(_ byteCount: Int) {
    let limit = sent + Self.cost(byteCount)
    if limit == wanted { return }
    wanted = limit
    isAskDue = true
  }

  mutating func sends(_ byteCount: Int) {
    sent += Self.cost(byteCount)
    if sent < wanted { return }
    wanted = 0
    isAskDue = false
    // It may have been granted more, for a greater message that the application did not send.
    if sent >= askedUpTo { endAsking() }
  }

  /// The other end is asked now. Returns for how much.
  mutating func asks() -> UInt64 {
    isAskDue = false
    askedUpTo = max(askedUpTo, wanted)
    return wanted
  }

  /// A limit came. True when the application may try again.
  mutating func isGranted(_ limit: UInt64, _ now: Instant) -> Bool {
    guard limit > sendLimit else { return false }
    sendLimit = limit
    guard wanted <= limit else { return false }
    isAskDue = false
    if max(wanted, askedUpTo) > sent && giveBackAt == .never { giveBackAt = now + SessionLimits.giveBackTime }
    return true
  }

  /// Gives back what was not used, by counting it as sent. Returns how much.
  mutating func giveBack() -> UInt64 {
    let rest = sendLimit - sent, asked = askedUpTo
    sent = sendLimit
    endAsking()
    // That may still be granted.
    askedUpTo = asked
    return rest
  }

  private mutating func endAsking() {
    wanted = 0
    askedUpTo = 0
    isAskDue = false
    isGiveBackDue = false
    giveBackAt = .never
  }

  /// The other end takes messages under another number now, or none.
  mutating func endSending() {
    sent = 0
    sendLimit = 0
    endAsking()
  }

  // MARK: Receiving

  /// Bytes that wait for the application.
  var unread: UInt64 { carried + received - taken }
  /// What waits, or may come at any time: it has its room.
  var held: UInt64 { carried + receiveLimit - taken }
  /// That beyond the share.
  var lent: UInt64 { held - min(held, share) }
  /// Of that what has not come.
  var unused: UInt64 { min(lent, receiveLimit - received) }

  /// Under a new number nothing has come yet, and what was granted under the former one is void.
  mutating func beginReceiving(_ share: UInt64) {
    carried = unread
    received = 0
    taken = 0
    receiveLimit = 0
    asked = 0
    lentAt = .never
    _ = widen(share)
  }

  /// Whether the other end was allowed to send this. Counts it.
  mutating func receives(_ byteCount: Int, _ now: Instant) -> Bool {
    guard received + Self.cost(byteCount) <= receiveLimit else { return false }
    received += Self.cost(byteCount)
    if unreadSince == .never { unreadSince = now }
    return true
  }

  /// The other end gave back so much. False when it does not have it.
  mutating func isGivenBack(_ byteCount: UInt64) -> Bool {
    guard byteCount <= receiveLimit - received else { return false }
    received += byteCount
    taken += byteCount
    return true
  }

  /// The application took a message. True when the other end should learn that it may send more, with this share, or that
  /// the application reads again.
  mutating func takes(_ byteCount: Int, share: UInt64, _ now: Instant) -> Bool {
    let cost = Self.cost(byteCount), former = min(cost, carried)
    carried -= former
    taken = min(taken + cost - former, received)
    unreadSince = unread > 0 ? now : .never
    if isPausedHere {
      isPausedHere = false
      return true
    }
    return isWindowDue(share)
  }

  /// Whether a window with this share would be wider by a quarter of it.
  func isWindowDue(_ share: UInt64) -> Bool {
    var wider = self
    let former = receiveLimit
    return wider.widen(share) >= former + max(wider.share / 4, 1)
  }

  /// Grants its share of what is free, or as much of the former one as it holds. Returns the limit.
  mutating func widen(_ free: UInt64) -> UInt64 {
    share = max(free, min(share, held))
    receiveLimit = max(receiveLimit, taken + share - min(carried, share))
    return receiveLimit
  }

  /// What it would have been lent after the grant of what it asks for; nil when that is more than one message.
  var loan: UInt64? {
    let held = carried + asked - taken
    let loan = held - min(held, share)
    return loan <= Self.costMax ? loan : nil
  }

  /// Grants what it asks for.
  mutating func lend(_ now: Instant) {
    // Who asks again and again without using anything does not keep it longer.
    if unused == 0 || received > receivedAtLoan { lentAt = now }
    receivedAtLoan = received
    receiveLimit = asked
    asked = 0
  }

  /// When the application counts as paused.
  var pauseAt: Instant { isPausedHere ? .never : unreadSince + SessionLimits.pauseTime }

  /// When what was lent and never used is taken back, by a new meeting.
  var takeBackAt: Instant { lentAt == .never || unused == 0 ? .never : lentAt + SessionLimits.takeBackTime }

  /// What the application still has to take when the member is none any more.
  var rest: Unread {
    var rest = Unread()
    rest.bytes = unread
    rest.share = min(share, unread)
    return rest
  }
}

/// Messages that wait for an application although their sender, or the session, is gone: they keep their room.
struct Unread {
  var bytes: UInt64 = 0
  /// Those that are of the pool of shares.
  var share: UInt64 = 0

  var lent: UInt64 { bytes - share }

  mutating func takes(_ byteCount: Int) {
    bytes -= min(bytes, Credit.cost(byteCount))
    share = min(share, bytes)
  }

  static func += (sum: inout Unread, other: Unread) {
    sum.bytes += other.bytes
    sum.share += other.share
  }
}
