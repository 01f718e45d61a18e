import Primitives

/// The flow control of messages between this end and one member, in bytes since the last handshake.
///
/// Buffer space is set aside for everything that the other end has credit to send. The credit consists of a share of
/// the share pool, and a reservation for one message that the other end requested. So no message that has arrived is
/// ever dropped for lack of buffer space.
struct Credit {
  /// The maximum share of one member, in bytes.
  static let shareMax: UInt64 = 128 * 1024
  /// The minimum share, in bytes. A smaller share is not granted, because hardly a message would fit.
  static let shareMin: UInt64 = 1024

  // MARK: Sent messages

  var sent: UInt64 = 0
  var sendLimit: UInt64 = 0
  /// The send limit that is needed for a message that was refused for lack of credit; 0 if none was refused.
  var wanted: UInt64 = 0
  /// The highest send limit that was requested from the other end and is not used up; 0 without a request.
  private var askedUpTo: UInt64 = 0
  /// Whether the other end has reported that its application does not read.
  var isPausedThere = false
  /// Whether a request for `wanted` must still be sent to the other end.
  var isAskDue = false
  /// Whether the unused credit must still be returned to the other end.
  var isGiveBackDue = false
  /// The time when credit that the application requested and has not used is returned.
  var giveBackAt = Instant.never

  // MARK: Received messages

  var received: UInt64 = 0
  var receiveLimit: UInt64 = 0
  /// The bytes that the application has taken, or that the other end has returned.
  var taken: UInt64 = 0
  /// The bytes from before the last handshake that the application has not taken, and whose buffer space is still used.
  private var carried: UInt64 = 0
  /// Bytes of the share pool that are assigned to the member.
  private(set) var share: UInt64 = 0
  /// The receive limit that the other end requests; 0 without a request. Requests are granted in the order of
  /// `askTurn`.
  var asked: UInt64 = 0
  var askTurn: UInt64 = 0
  /// `received` at the last reservation, and the time since which the reservation has not been used.
  private var receivedAtLoan: UInt64 = 0
  private(set) var lentAt = Instant.never
  /// The time since which the application has read nothing although bytes wait; `.never` if no bytes wait.
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

  /// Notes that a message was refused for lack of credit, which is then requested from the other end.
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
    // Below `askedUpTo`, credit for a longer message, which the application did not send, is still unused.
    if sent >= askedUpTo { endAsking() }
  }

  /// Returns the send limit to request from the other end, and notes it as requested.
  mutating func asks() -> UInt64 {
    isAskDue = false
    askedUpTo = max(askedUpTo, wanted)
    return wanted
  }

  /// Applies a send limit that the other end granted. Returns true if the application can try a refused message again.
  mutating func isGranted(_ limit: UInt64, _ now: Instant) -> Bool {
    guard limit > sendLimit else { return false }
    sendLimit = limit
    guard wanted <= limit else { return false }
    isAskDue = false
    if max(wanted, askedUpTo) > sent && giveBackAt == .never { giveBackAt = now + SessionLimits.giveBackTime }
    return true
  }

  /// Counts the unused credit as sent, which returns it to the other end. Returns the number of bytes given back.
  mutating func giveBack() -> UInt64 {
    let rest = sendLimit - sent, asked = askedUpTo
    sent = sendLimit
    endAsking()
    // The other end may still grant a request that was sent to it before.
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

  /// Resets the sending direction, because the other end has a new handshake number or is unreachable.
  mutating func endSending() {
    sent = 0
    sendLimit = 0
    endAsking()
  }

  // MARK: Receiving

  /// Bytes that have arrived and wait for the application.
  var unread: UInt64 { carried + received - taken }
  /// The bytes that wait for the application, and the bytes that the other end has credit to send. Buffer space is set
  /// aside for all these bytes.
  var held: UInt64 { carried + receiveLimit - taken }
  /// The reservation: the part of `held` beyond the share.
  var lent: UInt64 { held - min(held, share) }
  /// The part of the reservation that has not arrived.
  var unused: UInt64 { min(lent, receiveLimit - received) }

  /// Resets the receiving direction for a new handshake number. Credit that was granted under the former number is
  /// void.
  mutating func beginReceiving(_ share: UInt64) {
    carried = unread
    received = 0
    taken = 0
    receiveLimit = 0
    asked = 0
    lentAt = .never
    _ = widen(share)
  }

  /// Counts a received message. Returns false, and counts nothing, if the message exceeds the credit of the other end.
  mutating func receives(_ byteCount: Int, _ now: Instant) -> Bool {
    guard received + Self.cost(byteCount) <= receiveLimit else { return false }
    received += Self.cost(byteCount)
    if unreadSince == .never { unreadSince = now }
    return true
  }

  /// Counts credit that the other end returned. Returns false if the other end returned more than its credit.
  mutating func isGivenBack(_ byteCount: UInt64) -> Bool {
    guard byteCount <= receiveLimit - received else { return false }
    received += byteCount
    taken += byteCount
    return true
  }

  /// Counts a message that the application took. `share` is the part of the share pool that the member can have now.
  /// Returns true if a window message is due, because the window is wider or because the application reads again.
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

  /// Whether `share` bytes of the share pool would widen the window by at least a quarter of the resulting share.
  func isWindowDue(_ share: UInt64) -> Bool {
    var wider = self
    let former = receiveLimit
    return wider.widen(share) >= former + max(wider.share / 4, 1)
  }

  /// Grants `free` bytes of the share pool, or the part of the former share that is still used, if that is more.
  /// Returns the receive limit.
  mutating func widen(_ free: UInt64) -> UInt64 {
    share = max(free, min(share, held))
    receiveLimit = max(receiveLimit, taken + share - min(carried, share))
    return receiveLimit
  }

  /// The reservation that the pending request needs, in bytes; nil if the reservation would be more than the longest
  /// message costs.
  var loan: UInt64? {
    let held = carried + asked - taken
    let loan = held - min(held, share)
    return loan <= Self.costMax ? loan : nil
  }

  /// Grants the pending request by a reservation.
  mutating func lend(_ now: Instant) {
    // Repeated requests without any use of the reservation do not prolong it.
    if unused == 0 || received > receivedAtLoan { lentAt = now }
    receivedAtLoan = received
    receiveLimit = asked
    asked = 0
  }

  /// The time at which the application is regarded as paused, if the application reads nothing until then.
  var pauseAt: Instant { isPausedHere ? .never : unreadSince + SessionLimits.pauseTime }

  /// The time when an unused reservation is withdrawn, by a new handshake.
  var takeBackAt: Instant { lentAt == .never || unused == 0 ? .never : lentAt + SessionLimits.takeBackTime }

  /// The bytes of messages that the application still has to take after the member has left.
  var rest: Unread {
    var rest = Unread()
    rest.bytes = unread
    rest.share = min(share, unread)
    return rest
  }
}

/// The bytes of messages that wait for an application after their sender has left or their session has ended. The
/// buffer space of these bytes is still used.
struct Unread {
  var bytes: UInt64 = 0
  /// The part of `bytes` that is charged to the share pool. The remainder is charged to the borrow pool.
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
