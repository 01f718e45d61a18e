import Primitives

/// Measures the cost of a link, in the unit of `BearerKind.cost`: roughly microseconds per KiB.
///
/// A link has its bearer's usual cost unless measurements show that the link is much slower. Goodput is measured only
/// while frames wait for the stream. Round-trip times are ignored, because they grow with load. Costs that follow the
/// load would move the load to other links, which would change the costs again. For the same reason only the best of
/// the last measurements is used, costs change in powers of two, and moderate deviations have no effect.
public struct LinkMeter {
  /// A link is slow if one KiB takes at least this many times as long as usual for its bearer. The factor is so high
  /// that a processor that is busy with several links does not make a link look slow.
  static let slowFactor: UInt64 = 8
  /// The minimum duration of a measurement. The first measurement after an idle period is discarded, because its bytes
  /// only fill the buffers below the link.
  static let windowTime = TimeSpan.milliseconds(500)
  /// The minimum number of bytes of a measurement.
  static let windowBytes: UInt64 = 16_384
  /// The number of consecutive measurements of which the best one decides whether a link is slow.
  static let windows = 8
  /// The time without new measurements after which a slow link has its usual cost again. This time begins at
  /// `memoryMin` and doubles with each return to the usual cost, up to `memoryMax`.
  static let memoryMin = TimeSpan.seconds(300)
  static let memoryMax = TimeSpan.seconds(4_800)
  /// The greatest measured cost. Links in quarantine have greater costs, so that other links are used first.
  public static let costMax: UInt16 = 32_767

  private let bearer: BearerKind
  /// The multiple of the usual cost: 1, or a power of two of at least `slowFactor`.
  private var factor: UInt64 = 1
  /// A ring of measured rates, in bytes per second.
  private var rates = FixedArray<8, UInt64>(repeating: 0)
  private var measurements = 0
  private var measuredAt = Instant.zero
  private var memory = Backoff(first: Self.memoryMin, longest: Self.memoryMax)
  private var windowStart: Instant?
  private var isFirstWindow = true
  private var bytes: UInt64 = 0

  public init(_ bearer: BearerKind) { self.bearer = bearer }

  /// The cost that this node advertises for the link.
  public var cost: UInt16 { UInt16(min(UInt64(bearer.cost) * factor, UInt64(Self.costMax))) }

  /// Records that the stream accepted `byteCount` bytes of frames. `isBusy` means that more frames are queued. Returns
  /// true if the cost changed.
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
    rates[measurements % Self.windows] = bytes * 1_000_000 / (now - start).microseconds
    measurements += 1
    measuredAt = now
    let before = factor
    judge()
    return factor != before
  }

  /// Discards the measurements if the last one is older than `memory`. A slow link then has its usual cost again.
  mutating func review(now: Instant) {
    guard measurements > 0, now - measuredAt >= memory.pause else { return }
    measurements = 0
    if factor == 1 { return }
    factor = 1
    memory.double()
  }

  private mutating func judge() {
    var best: UInt64 = 1
    for index in 0..<min(measurements, Self.windows) { best = max(best, rates[index]) }
    let ratio = max(1_024_000_000 / best / UInt64(bearer.cost), 1)
    let measured = ratio < Self.slowFactor ? 1 : UInt64(1) << UInt64(63 - ratio.leadingZeroBitCount)
    if measurements >= Self.windows && measured > factor {
      factor = measured
    } else if factor > 1 && 2 * ratio <= factor {
      factor = measured
      if factor == 1 { memory.reset() }
    }
  }
}
