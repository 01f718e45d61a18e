import Primitives

/// Round-trip time and the retransmission timeout that follows from it (RFC 6298), from echoed timestamps,
/// so that retransmissions measure too (RFC 7323). All in microseconds.
struct RoundTripEstimator {
  private var smoothedTimes8: UInt64 = 0
  private var variationTimes4: UInt64 = 0

  /// 0 before the first measurement.
  var smoothed: UInt64 { smoothedTimes8 / 8 }

  /// Before back-off. The variation counts as half a round trip at least, because every hop of a path may have its
  /// pauses, and the other end may hold an acknowledgement back.
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
