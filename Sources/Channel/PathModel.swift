import Primitives

/// The congestion control of one lane: a model of the path, and the congestion window in bytes.
///
/// The model is BBR's (draft-ietf-ccwg-bbr). The bandwidth-delay product is the highest recent delivery rate times the
/// shortest round trip; the path holds that many bytes without a queue. Unlike in BBR, the sender does not pace its
/// segments. The sender sends when acknowledgements arrive and links pull frames.
///
/// A single loss is no sign of congestion. Links are reliable byte streams, so frames are lost only when a link breaks
/// or a relay's quota is used up. Only a loss rate above `ChannelLimits.lossToleratedPercent` reduces the window.
///
/// Time is counted in rounds. A round ends when a segment that was sent after the start of the round is acknowledged.
struct PathModel {
  private enum Phase: Equatable {
    /// The window doubles every round until the rate stops growing.
    case startup
    /// Steady state, in cycles of `ChannelLimits.cycleRounds` rounds. The first round of a cycle probes for more
    /// bandwidth. The second drains the queue that the probe built.
    case steady(round: Int)
    /// The window is small until the queue is empty, so that the shortest round trip can be measured again.
    case emptying(rounds: Int)
  }

  /// The congestion window: bytes that may be in flight.
  private(set) var bytes: UInt64
  private let bytesMax: UInt64
  private let segmentBytes: UInt64
  private var phase = Phase.startup

  // The highest delivery rate in bytes per second: `rateNow` in the rounds of this cycle, `rateBefore` in the previous
  // cycle. `ratesNow` is the number of rounds of this cycle that gave a rate.
  private var rateNow: UInt64 = 0
  private var rateBefore: UInt64 = 0
  private var ratesNow = 0
  /// The shortest round trip in microseconds, 0 before the first sample.
  private(set) var roundTrip: UInt64 = 0
  /// The last time when a sample was near `roundTrip`, or `roundTrip` was measured again.
  private var roundTripAt = Instant.zero
  /// The shortest round trip in the current phase `emptying`, in microseconds.
  private var roundTripWhileEmptying: UInt64 = 0

  private var delivered: UInt64 = 0
  private var roundStart: Instant
  private var roundDelivered: UInt64 = 0
  /// Whether the application or the receiver's window limited the sender during this round. If so, the round's delivery
  /// rate can be below that of the path.
  private var isRoundLimited = false
  /// In startup: the rate that a round must exceed by a quarter to show growth.
  private var rateToSurpass: UInt64 = 0
  /// In startup: the number of rounds in a row that showed no growth.
  private var roundsWithoutGrowth = 0

  // The bytes that a burst of acknowledgements covers beyond the delivery rate (extra_acked in the draft).
  private var burstStart: Instant
  private var burstDelivered: UInt64 = 0
  private var burstNow: UInt64 = 0
  private var burstBefore: UInt64 = 0

  private var episodeDelivered: UInt64 = 0
  private var episodeLost: UInt64 = 0
  /// The upper bound of the window after excessive loss.
  private var bound = UInt64.max

  init(bytesMax: UInt64, segmentBytes: UInt64, now: Instant) {
    self.bytesMax = bytesMax
    self.segmentBytes = segmentBytes
    bytes = min(bytesMax, Self.initialBytes(segmentBytes: segmentBytes))
    roundStart = now
    burstStart = now
  }

  /// The initial window, in bytes (RFC 6928 section 2).
  static func initialBytes(segmentBytes: UInt64) -> UInt64 { min(10 * segmentBytes, max(2 * segmentBytes, 14_600)) }

  // MARK: Events

  /// Records that the application or the receiver's window limited the sender, not the path.
  mutating func wasLimited() { isRoundLimited = true }

  /// Records `count` lost bytes.
  mutating func lost(_ count: UInt64) { episodeLost += count }

  /// Records `count` newly acknowledged bytes. `flight` is the number of bytes that were in flight before. `sample` is
  /// the round trip of the segment that caused the acknowledgement, in microseconds; nil if unknown.
  mutating func arrived(_ count: UInt64, flight: UInt64, sample: UInt64?, now: Instant) {
    delivered += count
    episodeDelivered += count
    if let sample { measured(sample, now) }
    measureBurst(count, now)
    if let sample, roundStart + .microseconds(sample) <= now { endRound(now) }
    let target = self.target
    if bytes >= target {
      // Startup never shrinks the window, so that a short first message leaves a full window to the second.
      if phase != .startup { bytes = target }
    } else if 2 * flight >= bytes {
      // A sender that does not fill its window has not shown that a larger one would fit (RFC 7661).
      bytes = min(bytes + count, target)
    }
  }

  /// Handles a retransmission timeout: the window is one segment until an acknowledgement arrives.
  mutating func timedOut() { bytes = segmentBytes }

  /// Restores the window from before a timeout that proved spurious.
  mutating func restore(_ window: UInt64) { bytes = max(bytes, window) }

  /// Handles the end of an idle period. The window begins small, so that the path is filled gradually and not in one
  /// burst (RFC 5681 section 4.1).
  mutating func idled(now: Instant) {
    bytes = min(bytes, Self.initialBytes(segmentBytes: segmentBytes))
    beginRound(now)
    isRoundLimited = true
    beginBurst(now)
  }

  // MARK: Measuring

  private mutating func measured(_ sample: UInt64, _ now: Instant) {
    let sample = max(sample, 1)
    if case .emptying = phase {
      roundTripWhileEmptying = min(roundTripWhileEmptying, sample)
    }
    if roundTrip == 0 || sample <= roundTrip + roundTrip / 16 {
      roundTrip = roundTrip == 0 ? sample : min(roundTrip, sample)
      roundTripAt = now
    }
  }

  private mutating func measureBurst(_ count: UInt64, _ now: Instant) {
    guard rate > 0 else { return }
    let expected = Self.bytes(at: rate, in: now - burstStart)
    if burstDelivered <= expected { beginBurst(now) }
    burstDelivered += count
    let excess = burstDelivered - min(burstDelivered, Self.bytes(at: rate, in: now - burstStart))
    burstNow = max(burstNow, min(excess, bytes))
  }

  private mutating func beginBurst(_ now: Instant) {
    burstStart = now
    burstDelivered = 0
  }

  private mutating func beginRound(_ now: Instant) {
    roundStart = now
    roundDelivered = delivered
    isRoundLimited = false
  }

  private mutating func endRound(_ now: Instant) {
    let elapsed = max((now - roundStart).microseconds, 1)
    let sample = (delivered - roundDelivered) * 1_000_000 / elapsed
    let before = rate
    if !isRoundLimited || sample > rate { remember(sample) }
    let isLossy = judgeLosses()
    nextPhase(sample, before: before, isLossy: isLossy, now)
    beginRound(now)
  }

  private mutating func remember(_ sample: UInt64) {
    if ratesNow == ChannelLimits.cycleRounds {
      (rateBefore, rateNow, ratesNow) = (rateNow, 0, 0)
      (burstBefore, burstNow) = (burstNow, 0)
    }
    rateNow = max(rateNow, sample)
    ratesNow += 1
  }

  /// Ends the loss episode if it has enough segments. Returns whether the episode has ended with a loss rate above the
  /// tolerated rate.
  private mutating func judgeLosses() -> Bool {
    let all = episodeDelivered + episodeLost
    guard all >= ChannelLimits.lossEpisodeSegments * segmentBytes else { return false }
    let isExcessive = episodeLost * 100 > all * ChannelLimits.lossToleratedPercent
    if isExcessive {
      // A timeout reduces the window to one segment, so the window alone does not show the capacity of the path.
      bound = max(min(bound, max(bytes, pathBytes)) / 10 * 7, bytesMin)
    } else if bound < bytesMax {
      bound += bound / 4
    } else {
      bound = .max
    }
    episodeDelivered = 0
    episodeLost = 0
    return isExcessive
  }

  private mutating func nextPhase(_ sample: UInt64, before: UInt64, isLossy: Bool, _ now: Instant) {
    switch phase {
    case .startup:
      if isLossy { return enterSteady() }
      if isRoundLimited { return }
      if sample > rateToSurpass + rateToSurpass / 4 {
        rateToSurpass = sample
        roundsWithoutGrowth = 0
      } else {
        roundsWithoutGrowth += 1
        if roundsWithoutGrowth >= 3 { enterSteady() }
      }
    case .steady(let round):
      if !isRoundLimited, roundTripAt + ChannelLimits.roundTripAge <= now {
        roundTripWhileEmptying = .max
        phase = .emptying(rounds: 0)
      } else if round == 0, !isLossy, sample > before + before / 8 {
        // The path delivered more than before, so the probe continues.
      } else {
        phase = .steady(round: (round + 1) % ChannelLimits.cycleRounds)
      }
    case .emptying(let rounds):
      guard rounds >= 1 else { return phase = .emptying(rounds: rounds + 1) }
      if roundTripWhileEmptying != .max { roundTrip = roundTripWhileEmptying }
      roundTripAt = now
      enterSteady()
    }
  }

  private mutating func enterSteady() { phase = .steady(round: 1) }

  // MARK: The window

  /// The delivery rate of the path in bytes per second; 0 before it is known.
  var rate: UInt64 { max(rateNow, rateBefore) }

  /// The bandwidth-delay product in bytes; 0 before the rate is known.
  private var pathBytes: UInt64 { Self.bytes(at: rate, in: .microseconds(roundTrip)) }

  private var bytesMin: UInt64 { 2 * segmentBytes }

  /// The part of the window beyond the bandwidth-delay product, in bytes. This part covers two segments that wait for a
  /// delayed acknowledgement, one segment that is being sent, and a burst of acknowledged bytes.
  private var ahead: UInt64 { 3 * segmentBytes + max(burstNow, burstBefore) }

  private var target: UInt64 {
    let path = pathBytes
    let wanted: UInt64
    switch phase {
    case .startup: wanted = path == 0 ? bytesMax : 3 * path + ahead
    case .steady(0): wanted = path + path / 4 + ahead
    case .steady(1): wanted = path - path / 4 + ahead
    case .steady: wanted = path + ahead
    case .emptying: wanted = path - path / 4
    }
    return max(min(wanted, bound, bytesMax), bytesMin)
  }

  private static func bytes(at rate: UInt64, in span: TimeSpan) -> UInt64 {
    let (product, overflow) = rate.multipliedReportingOverflow(by: span.microseconds)
    return overflow ? .max / 16 : product / 1_000_000
  }
}
