import Primitives

/// The state of the handshake with another member, sans-IO (docs/protocol.md, 12.5).
///
/// Each end chooses a number and sends it in its handshake messages, together with the number of the other end. An end
/// that has received its own number back, and whose repetition of the other end's number has arrived, is connected.
struct MemberHandshake {
  enum Phase: Equatable {
    case away
    case connecting
    case connected
  }

  private(set) var phase = Phase.away
  /// The number of this end, a new one in each handshake; 0 before the first. This end accepts only messages that carry
  /// this number.
  private(set) var number: UInt32 = 0
  /// The number of the other end; 0 if it is not known.
  private(set) var theirNumber: UInt32 = 0
  /// Whether the other end has repeated `number` in a handshake message. From then on this end accepts messages with
  /// `number`.
  private(set) var isNumberConfirmed = false
  /// Whether the other end has received a handshake message of this end that repeats `theirNumber`.
  private var isTheirNumberConfirmed = false
  /// The time at which the next handshake message is due; `.never` if none is.
  private var dueAt = Instant.never
  /// The time at which the last handshake message was sent.
  private var sentAt = Instant.zero

  /// Starts the handshake under a new number. The first message is due at `time`, which may be `.never`.
  mutating func begin(_ number: UInt32, at time: Instant) {
    phase = .connecting
    self.number = number
    isNumberConfirmed = false
    isTheirNumberConfirmed = false
    dueAt = time
  }

  /// Handles that the other end became unreachable.
  mutating func lose() {
    phase = .away
    number = 0
    theirNumber = 0
    isNumberConfirmed = false
    isTheirNumberConfirmed = false
    dueAt = .never
  }

  /// Handles a new number of the other end in a handshake message.
  mutating func restartedByOther(_ number: UInt32) {
    phase = .connecting
    theirNumber = number
    isTheirNumberConfirmed = false
  }

  mutating func confirmNumber() { isNumberConfirmed = true }
  mutating func confirmTheirNumber() { isTheirNumberConfirmed = true }

  /// Connects if both numbers are confirmed. Returns true if the phase has changed.
  mutating func connect() -> Bool {
    guard phase == .connecting, isNumberConfirmed, isTheirNumberConfirmed else { return false }
    phase = .connected
    return true
  }

  // MARK: Messages

  /// Schedules a message, unless an earlier one is scheduled.
  mutating func schedule(at time: Instant) { dueAt = min(dueAt, time) }
  mutating func cancelMessage() { dueAt = .never }

  func isDue(_ now: Instant) -> Bool { dueAt <= now }

  /// The time at which a message is due, if that is after `now`; `.never` otherwise.
  func nextDeadline(after now: Instant) -> Instant { dueAt > now ? dueAt : .never }

  /// Notes that a message was sent, and schedules the next one.
  mutating func sent(_ now: Instant, next: Instant) {
    sentAt = now
    dueAt = next
  }

  /// Whether a handshake message of a connected member needs an answer. The member repeats the message after ignoring
  /// this end's message, because that member did not know the session that this end named. A message that answers a
  /// recent message of this end is not answered. If answers were answered, two connected members would answer each
  /// other forever.
  func answersConnected(_ now: Instant) -> Bool {
    phase == .connected && now - sentAt >= SessionLimits.sweepTime / 2
  }
}
