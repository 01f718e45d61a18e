import Primitives

/// The measured cost of a link, in the unit of `BearerKind.cost`: about the microseconds per KiB.
///
/// Two quantities are measured: the goodput of the stream while frames are queued all the time, and the round trip of
/// pings. The advertised cost follows the measured cost only after a clear difference for some time (less time when the
/// link got worse). All nodes route by advertised costs, so they must be stable.
public struct LinkMeter {
  /// The advertised cost follows when the measured one is at least 3/2 or at most 2/3 of it …
  static let worseRatio = (3, 2)
  static let betterRatio = (2, 3)
  /// … for this time.
  static let worseTime = TimeSpan.seconds(2)
  static let betterTime = TimeSpan.seconds(10)
  /// A measurement of goodput takes at least this time and this many bytes. The first after an idle period is
  /// discarded, because it only fills the buffers below.
  static let windowTime = TimeSpan.milliseconds(500)
  static let windowBytes: UInt64 = 16_384
  /// A goodput that was not measured for this time is discarded, so that a link that was slow and carries nothing can
  /// be used again.
  static let goodputLife = TimeSpan.seconds(60)
  /// Assumed bytes in flight of a sender. With them the round trip limits the throughput of a link.
  static let bytesUnderWay: UInt64 = 524_288
  /// The part of a round trip that the two ends may take: each may run up to 5 ms late.
  static let schedulingDelayMax = TimeSpan.milliseconds(10)
  /// The greatest measured cost. Costs above it are for links in quarantine.
  public static let costMax: UInt16 = 32_767

  private let bearer: BearerKind
  /// The cost that this node advertises for the link.
  public private(set) var cost: UInt16
  /// Bytes per second while frames were queued all the time; zero when not measured lately.
  public private(set) var goodput: UInt64 = 0
  private var goodputAt = Instant.zero
  /// The last three round trips. The shortest counts, so a single slow one has no effect.
  private var roundTrips = FixedArray<3, TimeSpan>(repeating: TimeSpan(nanoseconds: 0))
  private var windowStart: Instant?
  private var isFirstWindow = true
  private var bytes: UInt64 = 0
  private var differsSince: Instant?
  private var differsUpward = false

  public init(_ bearer: BearerKind) {
    self.bearer = bearer
    cost = bearer.cost
  }

  /// A ping that was sent with an empty queue was answered.
  mutating func measured(roundTrip: TimeSpan, now: Instant) {
    roundTrips[0] = roundTrips[1]
    roundTrips[1] = roundTrips[2]
    roundTrips[2] = roundTrip
    update(now)
  }

  /// The stream accepted frames; `isBusy` means that more are queued already. True when the advertised cost has
  /// changed.
  mutating func sent(_ byteCount: Int, isBusy: Bool, now: Instant) -> Bool {
    defer {
      if !isBusy {
        windowStart = nil
        isFirstWindow = true
      }
    }
    guard let start = windowStart else {
      windowStart = now
      bytes = 0
      return false
    }
    bytes += UInt64(byteCount)
    if now - start < Self.windowTime || bytes < Self.windowBytes { return false }
    defer {
      isFirstWindow = false
      windowStart = now
      bytes = 0
    }
    if isFirstWindow { return false }
    let sample = bytes * 1_000_000 / ((now - start).nanoseconds / 1000)
    goodput = goodput == 0 ? sample : (goodput * 3 + sample) / 4
    goodputAt = now
    let before = cost
    update(now)
    return cost != before
  }

  /// The measured cost, rounded down to steps of an eighth.
  public var measuredCost: UInt16 {
    var micros = goodput == 0 ? UInt64(bearer.cost) : 1_024_000_000 / goodput
    micros = max(micros, UInt64(bearer.cost) / 4)
    let least = min(roundTrips[0], min(roundTrips[1], roundTrips[2])).microseconds
    let underWay = least - min(least, Self.schedulingDelayMax.microseconds)
    micros = max(micros, underWay * 1024 / Self.bytesUnderWay)
    if micros == UInt64(bearer.cost) { return bearer.cost }
    return UInt16(min(max(Self.quantised(micros), 1), UInt64(Self.costMax)))
  }

  /// Keeps the four highest bits: steps of an eighth.
  static func quantised(_ value: UInt64) -> UInt64 {
    let shift = UInt64(max(64 - value.leadingZeroBitCount - 4, 0))
    return (value >> shift) << shift
  }

  private mutating func update(_ now: Instant) {
    if goodputAt + Self.goodputLife <= now { goodput = 0 }
    let measured = Int(measuredCost)
    let isWorse = measured * Self.worseRatio.1 >= Int(cost) * Self.worseRatio.0
    let isBetter = measured * Self.betterRatio.1 <= Int(cost) * Self.betterRatio.0
    guard isWorse || isBetter else { return differsSince = nil }
    if differsSince == nil || differsUpward != isWorse {
      differsSince = now
      differsUpward = isWorse
    }
    guard let since = differsSince, now - since >= (isWorse ? Self.worseTime : Self.betterTime) else { return }
    cost = UInt16(measured)
    differsSince = nil
  }
}
