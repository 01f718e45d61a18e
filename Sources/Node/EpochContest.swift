import Primitives

/// Decides when this node takes a later epoch because an advertisement with its key is newer than its own (RFC 2328,
/// 13.4, for sequence numbers).
///
/// Usually the stored epoch counter was lost, and others still hold advertisements of a former start: the first time
/// the node answers at once. If a newer one comes again, another node uses the key. Two such nodes must not race, so
/// from then on each answers after a pause that doubles.
struct EpochContest {
  static let pauseMin = TimeSpan.seconds(60)
  static let pauseMax = TimeSpan.seconds(3_600)

  /// The latest epoch that another advertisement claims; zero for none.
  private(set) var rival: UInt64 = 0
  private var answeredAt: Instant?
  private var pause = Self.pauseMin

  /// An advertisement with this node's key and a later epoch was heard. True when another node must be using the key.
  mutating func heard(_ epoch: UInt64) -> Bool {
    rival = max(rival, epoch)
    return answeredAt != nil
  }

  /// When the node takes an epoch later than `rival`.
  var deadline: Instant {
    if rival == 0 { return .never }
    return answeredAt.map { $0 + pause } ?? .zero
  }

  /// The epoch to take now: the counter in the upper half one higher, the random lower half of `current`. Nil when it is
  /// not due, or when there is no higher counter.
  mutating func next(current: UInt64, now: Instant) -> UInt64? {
    guard deadline <= now else { return nil }
    let counter = rival >> 32
    rival = 0
    guard counter < UInt64(UInt32.max) else { return nil }
    if answeredAt != nil { pause = min(pause * 2, Self.pauseMax) }
    answeredAt = now
    return (counter + 1) << 32 | current & UInt64(UInt32.max)
  }
}
