import Primitives

/// Detects a dead neighbour: one that was silent, was pinged, and did not answer in time.
///
/// A ping travels on a reliable stream, so one ping is enough. The timeout for the answer follows the measured
/// round-trip times, so a slow or lossy link is not mistaken for a dead one. It counts from when the ping was queued,
/// not from when it was due. A node that itself runs late sends another ping before it decides, because the answer may
/// have arrived unread.
public struct Liveness {
  /// A ping is sent at least this often, to measure the round-trip time.
  static let measureInterval = TimeSpan.seconds(15)
  /// The longest timeout for an answer. It also applies before a round-trip time is known.
  static let answerMax = TimeSpan.seconds(7)
  /// The timeout is at least this multiple of the slowest recent round-trip time.
  static let answerRoundTrips: UInt64 = 3
  /// A timeout that is handled later than this sends another ping instead of closing the link.
  static let latenessMax = TimeSpan.milliseconds(250)
  /// The most such pings in a row.
  static let latePingsMax: UInt8 = 3

  /// The action that is due.
  enum Due { case nothing, ping, death }

  private let bearer: BearerKind
  private var heardAt: Instant
  /// The time at which bytes of an incomplete frame arrived.
  private var arrivedAt = Instant.zero
  private var pingSentAt: Instant
  /// Whether nothing was received since the last ping.
  private var isAsking = false
  private var latePings: UInt8 = 0
  /// The neighbour is not considered dead before this time.
  private var excusedUntil = Instant.zero
  /// The last round-trip times, of which the slowest counts.
  private var roundTrips = FixedArray<4, TimeSpan>(repeating: TimeSpan(nanoseconds: 0))
  private var measured = 0

  init(_ bearer: BearerKind, now: Instant) {
    self.bearer = bearer
    heardAt = now
    pingSentAt = now
  }

  /// The silence after which a neighbour is pinged.
  public static func silenceMax(over bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .ethernet, .loopback: .milliseconds(2_200)
    case .wifi, .wifiDirect, .bluetoothLE, .bluetoothClassic: .seconds(3)
    }
  }

  /// The timeout for an answer on a link with short round trips.
  static func answerMin(over bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .ethernet, .loopback: .milliseconds(700)
    case .wifi, .wifiDirect, .bluetoothLE, .bluetoothClassic: .seconds(2)
    }
  }

  /// The longest time until a death is detected on a link with short round trips: 2.9 s on wired bearers, 5 s on
  /// others.
  public static func unnoticedMax(over bearer: BearerKind) -> TimeSpan {
    silenceMax(over: bearer) + answerMin(over: bearer)
  }

  /// Records that a whole frame arrived.
  mutating func heard(now: Instant) {
    heardAt = now
    isAsking = false
    latePings = 0
  }

  /// Records that bytes of a frame arrived. They postpone an unsent ping up to twice the silence limit, because a frame
  /// takes long on a slow link. They do not answer a ping: a neighbour that sends a byte now and then is not alive.
  mutating func arrived(now: Instant) { arrivedAt = now }

  mutating func pingSent(now: Instant) {
    pingSentAt = now
    isAsking = true
    excusedUntil = .zero
  }

  mutating func answered(after roundTrip: TimeSpan) {
    roundTrips[measured % roundTrips.indices.count] = roundTrip
    measured += 1
  }

  /// Extends the timeout to `instant`, for a ping that was not sent or was sent late.
  mutating func excuse(until instant: Instant) { excusedUntil = instant }

  /// The time at which `due` may change without another event.
  var deadline: Instant { isAsking ? answerDue : pingDue }

  /// The action due now. A ping that is due because this node was late is counted.
  mutating func due(now: Instant) -> Due {
    if !isAsking { return pingDue <= now ? .ping : .nothing }
    let end = answerDue
    if end > now { return .nothing }
    if now - end <= Self.latenessMax || latePings == Self.latePingsMax { return .death }
    latePings += 1
    return .ping
  }

  /// Whether a ping is due within `span`. Sent together with others, it needs no wake-up of its own.
  func isPingDue(within span: TimeSpan, now: Instant) -> Bool { !isAsking && pingDue <= now + span }

  private var answerDue: Instant { max(pingSentAt + answerTime, excusedUntil) }

  private var pingDue: Instant {
    let silence = Self.silenceMax(over: bearer)
    let aliveAt = max(heardAt, min(arrivedAt, heardAt + silence))
    return min(max(aliveAt, pingSentAt) + silence, pingSentAt + Self.measureInterval)
  }

  private var answerTime: TimeSpan {
    if measured == 0 { return Self.answerMax }
    var slowest = roundTrips[0]
    for index in roundTrips.indices { slowest = max(slowest, roundTrips[index]) }
    return min(max(Self.answerMin(over: bearer), slowest * Self.answerRoundTrips), Self.answerMax)
  }
}
