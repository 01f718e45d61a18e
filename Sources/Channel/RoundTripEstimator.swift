import Primitives

/// The round-trip time and the retransmission timeout derived from it (RFC 6298). Samples come from echoed timestamps,
/// so retransmitted segments give valid samples too (RFC 7323). All values are in microseconds.
struct RoundTripEstimator {
  private var smoothedTimes8: UInt64 = 0
  private var variationTimes4: UInt64 = 0

  /// The smoothed round-trip time; 0 before the first measurement.
  var smoothed: UInt64 { smoothedTimes8 / 8 }

  /// The retransmission timeout without back-off. The timeout's variation term is at least half a round trip, because
  /// any hop may pause. The delay of acknowledgements is added, because the other end may delay an acknowledgement.
  var timeout: TimeSpan {
    guard smoothedTimes8 > 0 else { return ChannelLimits.retransmissionFirst }
    let delay = ChannelLimits.acknowledgementDelay.microseconds
    let timeout = TimeSpan.microseconds(smoothed + max(variationTimes4, smoothed / 2, delay) + delay)
    return min(timeout, ChannelLimits.retransmissionMax)
  }

  mutating func measured(_ microseconds: UInt64) {
    let sample = max(microseconds, 1)
    guard smoothedTimes8 > 0 else {
      smoothedTimes8 = sample * 8
      variationTimes4 = sample * 2
      return
    }
    let deviation = sample > smoothed ? sample - smoothed : smoothed - sample
    variationTimes4 = variationTimes4 - variationTimes4 / 4 + deviation
    smoothedTimes8 = smoothedTimes8 - smoothedTimes8 / 8 + sample
  }
}
