import Primitives

/// The flow control of messages with one member since the handshake, in bytes.
///
/// Memory is reserved for everything that the other end may send: its share of a pool, and a reservation for one
/// message that it requested. So no message that has arrived is ever dropped for lack of memory.
struct Credit {
  /// The maximum share of one member.
  static let shareMax: UInt64 = 128 * 1024
  /// The minimum share; a smaller one is useless.
  static let shareMin: UInt64 = 1024

  // MARK: Sent messages

  var sent: UInt64 = 0
  var sendLimit: UInt64 = 0
  /// The limit that the application needs for a message that was refused for lack of credit; 0 if none was.
  var wanted: UInt64 = 0
  /// The highest limit that was requested since the handshake.
  private var askedUpTo: UInt64 = 0
  /// Whether the other end's application does not read.
  var isPausedThere = false
  /// Whether `wanted` is still to be requested from the other end.
  var isAskDue = false
  /// Whether the unused credit is still to be returned.
  var isGiveBackDue = false
  /// The time when credit that the application requested and has not used is returned.
  var giveBackAt = Instant.never

  // MARK: Received messages

  var received: UInt64 = 0
  var receiveLimit: UInt64 = 0
  /// Bytes that the application has taken, or that the other end has returned.
  var taken: UInt64 = 0
  /// Bytes from before the handshake that the application has not taken. They still count.
  private var carried: UInt64 = 0
  /// Bytes of the share pool that the member has.
  private(set) var share: UInt64 = 0
  /// The limit that the other end requests; 0 if it requests none. Requests are granted in the order of `askTurn`.
  var asked: UInt64 = 0
  var askTurn: UInt64 = 0
  /// The received bytes at the last reservation, and the time since which nothing of it was used.
  private var receivedAtLoan: UInt64 = 0
  private(set) var lentAt = Instant.never
  /// The time since which the application reads nothing although bytes wait; `.never` if none wait.
  var unreadSince = Instant.never
  /// Whether the other end was notified, or is to be notified, that the application here does not read.
  var isPausedHere = false

  init(_ unread: Unread) {
    carried = unread.bytes
    share = unread.share
  }

  /// The credit that a message of this size costs.
  static func cost(_ byteCount: Int) -> UInt64 { UInt64(byteCount + SessionLimits.messageOverheadBytes) }

  /// The cost of the longest message: the maximum reservation of one member.
  static let costMax = cost(SessionLimits.messageBytesMax)

  // MARK: Sending

  func maySend(_ byteCount: Int) -> Bool { sent + Self.cost(byteCount) <= sendLimit }

  /// Notes a message that was refused for lack of credit. The credit is then requested from the other end.
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
    // The other end may have granted more, for a longer message that the application did not send.
    if sent >= askedUpTo { endAsking() }
  }

  /// Returns the limit to request from the other end, and counts it as requested.
  mutating func asks() -> UInt64 {
    isAskDue = false
    askedUpTo = max(askedUpTo, wanted)
    return wanted
  }

  /// Applies a limit of the other end. Returns true if the application may try again.
  mutating func isGranted(_ limit: UInt64, _ now: Instant) -> Bool {
    guard limit > sendLimit else { return false }
    sendLimit = limit
    guard wanted <= limit else { return false }
    isAskDue = false
    if max(wanted, askedUpTo) > sent && giveBackAt == .never { giveBackAt = now + SessionLimits.giveBackTime }
    return true
  }

  /// Counts the unused credit as sent, which returns it to the other end. Returns the number of bytes.
  mutating func giveBack() -> UInt64 {
    let rest = sendLimit - sent, asked = askedUpTo
    sent = sendLimit
    endAsking()
    // A request that was sent may still be granted.
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

  /// Resets the sending direction, because the other end has a new handshake number or none.
  mutating func endSending() {
    sent = 0
    sendLimit = 0
    endAsking()
  }

  // MARK: Receiving

  /// Bytes that wait for the application.
  var unread: UInt64 { carried + received - taken }
  /// Bytes that wait or may still arrive. Memory is reserved for them.
  var held: UInt64 { carried + receiveLimit - taken }
  /// The reservation: the part of `held` beyond the share.
  var lent: UInt64 { held - min(held, share) }
  /// The part of the reservation that has not arrived.
  var unused: UInt64 { min(lent, receiveLimit - received) }

  /// Resets the receiving direction for a new handshake number. Credit that was granted under the former one is void.
  mutating func beginReceiving(_ share: UInt64) {
    carried = unread
    received = 0
    taken = 0
    receiveLimit = 0
    asked = 0
    lentAt = .never
    _ = widen(share)
  }

  /// Counts a received message. Returns false, and counts nothing, if it exceeds the credit.
  mutating func receives(_ byteCount: Int, _ now: Instant) -> Bool {
    guard received + Self.cost(byteCount) <= receiveLimit else { return false }
    received += Self.cost(byteCount)
    if unreadSince == .never { unreadSince = now }
    return true
  }

  /// Counts credit that the other end returned. Returns false if it returned more than it has.
  mutating func isGivenBack(_ byteCount: UInt64) -> Bool {
    guard byteCount <= receiveLimit - received else { return false }
    received += byteCount
    taken += byteCount
    return true
  }

  /// Counts a message that the application took. Returns true if the other end should be notified, because this share
  /// widens its window or because the application reads again.
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

  /// Whether this share would widen the window by at least a quarter of the share.
  func isWindowDue(_ share: UInt64) -> Bool {
    var wider = self
    let former = receiveLimit
    return wider.widen(share) >= former + max(wider.share / 4, 1)
  }

  /// Grants the free share, or the part of the former share that is still held. Returns the limit.
  mutating func widen(_ free: UInt64) -> UInt64 {
    share = max(free, min(share, held))
    receiveLimit = max(receiveLimit, taken + share - min(carried, share))
    return receiveLimit
  }

  /// The reservation that the request needs; nil if it is more than one message.
  var loan: UInt64? {
    let held = carried + asked - taken
    let loan = held - min(held, share)
    return loan <= Self.costMax ? loan : nil
  }

  /// Grants the request.
  mutating func lend(_ now: Instant) {
    // Repeated requests without any use do not prolong a reservation.
    if unused == 0 || received > receivedAtLoan { lentAt = now }
    receivedAtLoan = received
    receiveLimit = asked
    asked = 0
  }

  /// The time when the application counts as paused.
  var pauseAt: Instant { isPausedHere ? .never : unreadSince + SessionLimits.pauseTime }

  /// The time when an unused reservation is withdrawn, by a new handshake.
  var takeBackAt: Instant { lentAt == .never || unused == 0 ? .never : lentAt + SessionLimits.takeBackTime }

  /// The messages that the application still has to take after the member has left.
  var rest: Unread {
    var rest = Unread()
    rest.bytes = unread
    rest.share = min(share, unread)
    return rest
  }
}

/// Messages that wait for an application although their sender or the session is gone. They keep their memory.
struct Unread {
  var bytes: UInt64 = 0
  /// The part of `bytes` that belongs to the share pool.
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
