import Primitives

/// Detects that a neighbour is dead: it was silent, was pinged, and did not answer in time.
///
/// A ping travels on a stream that repeats what is lost, so one ping is enough. How long the answer may take follows
/// the round trips that were measured: a slow or lossy link is not taken for a dead one. The time counts from the moment
/// when the ping was queued, not from when it was due, and a node that runs late itself pings once more before it
/// judges: the answer may be there, unread.
public struct Liveness {
  /// A ping is sent at least this often, so that the round trip is known.
  static let measureInterval = TimeSpan.seconds(15)
  /// The time for an answer before a round trip is known, and the longest ever.
  static let answerMax = TimeSpan.seconds(7)
  /// The time for an answer is at least this many times the slowest of the last round trips.
  static let answerRoundTrips: UInt64 = 3
  /// A timeout that is handled later than this after it was due judges nobody …
  static let latenessMax = TimeSpan.milliseconds(250)
  /// … at most so many times in a row.
  static let latePingsMax: UInt8 = 3

  /// What is due.
  enum Due { case nothing, ping, death }

  private let bearer: BearerKind
  private var heardAt: Instant
  /// When bytes of a frame that is not whole arrived.
  private var arrivedAt = Instant.zero
  private var pingSentAt: Instant
  /// Nothing was heard since the last ping.
  private var isAsking = false
  private var latePings: UInt8 = 0
  /// Nobody is judged before.
  private var excusedUntil = Instant.zero
  /// The last round trips; the slowest counts.
  private var roundTrips = FixedArray<4, TimeSpan>(repeating: TimeSpan(nanoseconds: 0))
  private var measured = 0

  init(_ bearer: BearerKind, now: Instant) {
    self.bearer = bearer
    heardAt = now
    pingSentAt = now
  }

  /// A neighbour that was silent for this time is pinged.
  public static func silenceMax(over bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .ethernet, .loopback: .milliseconds(2_200)
    case .wifi, .wifiDirect, .bluetoothLE, .bluetoothClassic: .seconds(3)
    }
  }

  /// The time for an answer on a link whose round trips are short.
  static func answerMin(over bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .ethernet, .loopback: .milliseconds(700)
    case .wifi, .wifiDirect, .bluetoothLE, .bluetoothClassic: .seconds(2)
    }
  }

  /// How long a death goes unnoticed on a link whose round trips are short: 2.9 s on wired bearers, 5 s on others.
  public static func unnoticedMax(over bearer: BearerKind) -> TimeSpan {
    silenceMax(over: bearer) + answerMin(over: bearer)
  }

  /// A whole frame arrived.
  mutating func heard(now: Instant) {
    heardAt = now
    isAsking = false
    latePings = 0
  }

  /// Bytes of a frame arrived. They postpone a ping that is not sent yet, up to twice the silence: on a slow link a frame takes
  /// its time. They answer none: a neighbour that sends a byte now and then is not alive.
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

  /// The ping could not leave, or left late: the answer has time until then.
  mutating func excuse(until instant: Instant) { excusedUntil = instant }

  /// When `due` may change without another event.
  var deadline: Instant { isAsking ? answerDue : pingDue }

  /// What is due now. A ping that is due because this node was late is counted as one.
  mutating func due(now: Instant) -> Due {
    if !isAsking { return pingDue <= now ? .ping : .nothing }
    let end = answerDue
    if end > now { return .nothing }
    if now - end <= Self.latenessMax || latePings == Self.latePingsMax { return .death }
    latePings += 1
    return .ping
  }

  /// Whether a ping is due within `span`: sent together with others, it costs no wake-up of its own.
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
