import Primitives

/// Detects a dead neighbour: a neighbour that was silent, was pinged, and then sent no frame in time.
///
/// A ping travels on a reliable stream, so one ping is enough. The timeout for the answer follows the measured
/// round-trip times, so a slow or lossy link is not mistaken for a dead link. The timeout begins when the ping is
/// queued, not when it was due. A node that itself runs late sends another ping before the decision, because an answer
/// may have arrived that the node has not read.
public struct Liveness {
  /// The maximum time between two pings. A ping is sent even to an active neighbour, to measure the round-trip time.
  static let measureInterval = TimeSpan.seconds(15)
  /// The longest timeout for an answer. The longest timeout also applies before a round-trip time is known.
  static let answerMax = TimeSpan.seconds(7)
  /// The timeout is at least this multiple of the slowest recent round-trip time, up to `answerMax`.
  static let answerRoundTrips: UInt64 = 3
  /// If a timeout is handled this much later than due, another ping is sent instead of closing the link.
  static let latenessMax = TimeSpan.milliseconds(250)
  /// The maximum number of pings in a row that are sent because a timeout was handled late.
  static let latePingsMax: UInt8 = 3

  /// The action that is due: nothing, a ping, or closing the link of a dead neighbour.
  enum Due { case nothing, ping, death }

  private let bearer: BearerKind
  /// The time at which the last complete frame arrived.
  private var heardAt: Instant
  /// The time at which bytes last arrived, even of an incomplete frame.
  private var arrivedAt = Instant.zero
  private var pingSentAt: Instant
  /// Whether no complete frame was received since the last ping.
  private var isAsking = false
  private var latePings: UInt8 = 0
  /// The neighbour is not considered dead before this time.
  private var excusedUntil = Instant.zero
  /// The last four round-trip times. The slowest of these times determines the timeout.
  private var roundTrips = FixedArray<4, TimeSpan>(repeating: TimeSpan(nanoseconds: 0))
  private var measured = 0

  init(_ bearer: BearerKind, now: Instant) {
    self.bearer = bearer
    heardAt = now
    pingSentAt = now
  }

  /// The time without a complete frame after which a neighbour is pinged.
  public static func silenceMax(over bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .ethernet, .loopback: .milliseconds(2_200)
    case .wifi, .wifiDirect, .bluetoothLE, .bluetoothClassic: .seconds(3)
    }
  }

  /// The minimum timeout for an answer. This minimum applies on a link with short round trips.
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

  /// Records that a complete frame arrived.
  mutating func noteReceived(now: Instant) {
    heardAt = now
    isAsking = false
    latePings = 0
  }

  /// Records that bytes of a frame arrived. The bytes postpone the next ping, at most to twice `silenceMax`, because a
  /// frame takes long on a slow link. These bytes do not count as the answer to a ping: a neighbour that never
  /// completes a frame is not considered alive.
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

  /// Extends the timeout of the current ping to `instant`, because the ping was not sent or was sent late.
  mutating func excuse(until instant: Instant) { excusedUntil = instant }

  /// The time at which `due` may change without another event.
  var deadline: Instant { isAsking ? answerDue : pingDue }

  /// The action that is due at `now`. A ping that is due because this node handled a timeout late is counted in
  /// `latePings`.
  mutating func due(now: Instant) -> Due {
    if !isAsking { return pingDue <= now ? .ping : .nothing }
    let end = answerDue
    if end > now { return .nothing }
    if now - end <= Self.latenessMax || latePings == Self.latePingsMax { return .death }
    latePings += 1
    return .ping
  }

  /// Whether a ping is due within `span`. A ping that is sent together with the pings of other links needs no timer of
  /// its own.
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
