import Primitives

/// What a link costs, by measurement, in the unit of `BearerKind.cost`: about the microseconds that one KiB takes.
///
/// Two things are measured: how fast the stream takes frames while some wait all the time, and the round trip of
/// pings. The cost that is stated follows the measured one only when it has differed clearly for a while, sooner when
/// the link got worse: what a node states is what everybody routes by, so it must not tremble.
public struct LinkMeter {
  /// The stated cost follows when the measured one is half as much again, or two thirds of it …
  static let worseRatio = (3, 2)
  static let betterRatio = (2, 3)
  /// … for as long as this.
  static let worseTime = TimeSpan.seconds(2)
  static let betterTime = TimeSpan.seconds(10)
  /// A measurement of goodput takes this long and this many bytes. The first after a rest is discarded: it fills the
  /// buffers below.
  static let windowTime = TimeSpan.milliseconds(500)
  static let windowBytes: UInt64 = 16_384
  /// Goodput not measured for this long is forgotten: a link that was bad and carries no more gets its chance.
  static let goodputLife = TimeSpan.seconds(60)
  /// A sender has about this much under way, so a round trip limits what a link is good for.
  static let bytesUnderWay: UInt64 = 524_288
  /// Part of a round trip that is not the link's: each end may run up to 5 ms late.
  static let schedulingDelayMax = TimeSpan.milliseconds(10)
  /// Above every measured cost there is room for links in quarantine.
  public static let costMax: UInt16 = 32_767

  private let bearer: BearerKind
  /// The cost that this node states for the link.
  public private(set) var cost: UInt16
  /// Bytes in a second, while frames waited all the time; zero when not measured lately.
  public private(set) var goodput: UInt64 = 0
  private var goodputAt = Instant.zero
  /// The last round trips; one that was late alone does not count.
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

  /// A ping that waited behind nothing came back.
  mutating func measured(roundTrip: TimeSpan, now: Instant) {
    roundTrips[0] = roundTrips[1]
    roundTrips[1] = roundTrips[2]
    roundTrips[2] = roundTrip
    update(now)
  }

  /// The stream took frames; `isBusy` says that more wait already. True when the stated cost is another now.
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

  /// The cost by measurement, in steps of an eighth.
  public var measuredCost: UInt16 {
    var micros = goodput == 0 ? UInt64(bearer.cost) : 1_024_000_000 / goodput
    micros = max(micros, UInt64(bearer.cost) / 4)
    let least = min(roundTrips[0], min(roundTrips[1], roundTrips[2])).microseconds
    let underWay = least - min(least, Self.schedulingDelayMax.microseconds)
    micros = max(micros, underWay * 1024 / Self.bytesUnderWay)
    if micros == UInt64(bearer.cost) { return bearer.cost }
    return UInt16(min(max(Self.quantised(micros), 1), UInt64(Self.costMax)))
  }

  /// The three highest bits behind the first: steps of an eighth.
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
