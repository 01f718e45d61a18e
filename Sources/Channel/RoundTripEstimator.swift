/// Round-trip time and the retransmission timeout that follows from it (RFC 6298), from echoed timestamps,
/// so that retransmissions measure too (RFC 7323). All in milliseconds.
struct RoundTripEstimator {
  private var smoothedTimes8: UInt64 = 0
  private var variationTimes4: UInt64 = 0
  /// The shortest since the route was chosen; nil before the first measurement.
  private(set) var shortest: UInt64?
  private(set) var latest: UInt64 = 0

  var smoothed: UInt64 { smoothedTimes8 / 8 }

  /// Time that the latest measured segment spent in queues, as far as anybody can tell.
  var queueing: UInt64 { latest - min(latest, shortest ?? latest) }

  /// Before back-off.
  var timeout: UInt64 {
    guard shortest != nil else { return ChannelLimits.retransmissionInitialMilliseconds }
    return min(
      max(smoothed + max(variationTimes4, 1), ChannelLimits.retransmissionMinMilliseconds),
      ChannelLimits.retransmissionMaxMilliseconds)
  }

  mutating func measured(_ milliseconds: UInt64) {
    let sample = max(milliseconds, 1)
    latest = sample
    guard let known = shortest else {
      shortest = sample
      smoothedTimes8 = sample * 8
      variationTimes4 = sample * 2
      return
    }
    shortest = min(known, sample)
    let deviation = sample > smoothed ? sample - smoothed : smoothed - sample
    variationTimes4 = variationTimes4 - variationTimes4 / 4 + deviation
    smoothedTimes8 = smoothedTimes8 - smoothedTimes8 / 8 + sample
  }
}
