import Primitives

/// The sender's scoreboard of the bytes above the cumulative acknowledgement: those that arrived, those that are lost,
/// and those that were retransmitted.
///
/// Loss is detected as in RFC 6675: bytes are lost when enough bytes above them have arrived. There are no records of
/// single segments. A byte is missing if it was sent and is not known to have arrived. Every missing byte below
/// `lostEnd` is treated as lost. Every missing byte below `resentEnd` was retransmitted.
struct LossRecovery {
  private enum Phase {
    /// No loss is known.
    case open
    /// Lost ranges are being retransmitted, until every byte below `until` is acknowledged. The bytes below `until`
    /// were sent before the loss was detected.
    case recovering(until: UInt64)
    /// All missing bytes below `until` are being retransmitted since `startedAt`, because of a timeout or a new route.
    /// `before` is the congestion window to restore if the timeout was spurious; nil for a new route.
    case resending(until: UInt64, startedAt: UInt32, before: UInt64?)
  }

  /// The conclusions from one acknowledgement.
  struct Judgement {
    /// Whether a loss was detected while no recovery was in progress.
    var isNewLoss = false
    /// The number of bytes that this acknowledgement showed to be lost.
    var lost: UInt64 = 0
    /// The congestion window before the timeout, if the timeout proved spurious.
    var restored: UInt64?
  }

  private var phase = Phase.open
  private var arrived = RangeSet()
  private var lostEnd: UInt64 = 0
  private var resentEnd: UInt64 = 0
  /// Acknowledgements that reported new ranges without an advance (duplicate acknowledgements).
  private var duplicates = 0
  /// Whether the retransmission of the first missing byte was lost too and must be repeated.
  private var headIsLost = false
  /// An upper bound of the time when the first missing byte was last retransmitted.
  private var headResentAt: UInt32 = 0
  private var lastResentAt: UInt32 = 0
  /// The time until which the old and the new path both deliver. Before this time a missing byte can be late rather
  /// than lost, so no byte is judged lost.
  private var patientUntil = Instant.zero

  /// Records that every byte below `offset` has arrived. `offset` must be greater than in the previous call.
  mutating func acknowledge(to offset: UInt64) {
    arrived.removeBelow(offset)
    duplicates = 0
    headIsLost = false
    // The retransmission time of the new first missing byte is not recorded, but is not later than the last
    // retransmission.
    headResentAt = lastResentAt
  }

  /// Records a range above the acknowledged bytes as arrived. Returns the number of its bytes that are new.
  mutating func arrive(_ range: ByteRange) -> UInt64 { arrived.insert(range) ?? 0 }

  /// Counts an acknowledgement that did not advance but reported new ranges.
  mutating func countDuplicate() { duplicates += 1 }

  /// The number of bytes between `acknowledged` and `end` that have arrived.
  func bytesArrived(acknowledged: UInt64, below end: UInt64) -> UInt64 { arrived.bytes(from: acknowledged, to: end) }

  /// Decides which bytes are lost and which phase follows. `echo` is the send time of the segment that caused the
  /// acknowledgement, 0 if unknown. `roundTrip` is in microseconds.
  mutating func judge(
    acknowledged: UInt64, next: UInt64, echo: UInt32, hasAdvanced: Bool, segmentBytes: UInt64, roundTrip: UInt64,
    now: Instant
  ) -> Judgement {
    var result = Judgement()
    switch phase {
    case .open: break
    case .recovering(let until):
      if acknowledged >= until { close(acknowledged, next) }
    case .resending(let until, let startedAt, let before):
      if acknowledged >= until {
        close(acknowledged, next)
      } else if hasAdvanced, echo != 0, startedAt.elapsed(since: echo) > 0 {
        // A segment sent before the timeout arrived after all (Eifel, RFC 3522): the timeout was spurious.
        result.restored = before
        close(acknowledged, next)
      }
    }
    let edge = now < patientUntil ? 0 : lossEdge(segmentBytes)
    if edge > lostEnd {
      let start = max(lostEnd, acknowledged)
      result.lost = edge - min(start, edge) - arrived.bytes(from: start, to: edge)
      lostEnd = edge
    }
    guard lostEnd > acknowledged else { return result }
    if case .open = phase {
      phase = .recovering(until: next)
      resentEnd = max(resentEnd, acknowledged)
      result.isNewLoss = true
    }
    // The first missing byte was retransmitted, and a segment sent well after that has arrived: the retransmission was
    // lost.
    if resentEnd > acknowledged, echo != 0, echo.elapsed(since: headResentAt) > Int64(max(roundTrip / 4, 500)) {
      headIsLost = true
    }
    return result
  }

  /// Handles a retransmission timeout: all missing bytes are treated as lost. `window` is the congestion window to
  /// restore if the timeout proves spurious.
  mutating func timedOut(acknowledged: UInt64, next: UInt64, at timestamp: UInt32, window: UInt64) {
    if case .resending(_, let startedAt, let before) = phase {
      phase = .resending(until: next, startedAt: startedAt, before: before)
    } else {
      phase = .resending(until: next, startedAt: timestamp, before: window)
    }
    loseAll(acknowledged, next)
  }

  /// Handles a new route: all missing bytes are treated as lost with the old route.
  mutating func rerouted(acknowledged: UInt64, next: UInt64, at timestamp: UInt32) {
    phase = .resending(until: next, startedAt: timestamp, before: nil)
    loseAll(acknowledged, next)
  }

  /// Handles a new route while the old one still delivers. No byte is judged lost before `end`.
  mutating func handedOver(patientUntil end: Instant) { patientUntil = end }

  /// The first lost range that was not retransmitted yet.
  func hole(acknowledged: UInt64, next: UInt64) -> ByteRange? {
    let edge = min(lostEnd, next)
    guard edge > acknowledged else { return nil }
    let gap = arrived.gap(from: max(resentEnd, acknowledged))
    guard gap.start < edge else { return nil }
    return ByteRange(start: gap.start, end: min(gap.end ?? edge, edge))
  }

  /// Returns the first missing range if its retransmission was lost too, once for each such loss; otherwise nil.
  mutating func takeLostHead(acknowledged: UInt64, next: UInt64) -> ByteRange? {
    guard headIsLost else { return nil }
    headIsLost = false
    return ByteRange(start: acknowledged, end: arrived.gap(from: acknowledged).end ?? next)
  }

  /// Records that `range` is retransmitted. The range must begin where the result of `hole` or `takeLostHead` began.
  mutating func resent(_ range: ByteRange, acknowledged: UInt64, at timestamp: UInt32) {
    resentEnd = max(resentEnd, range.end)
    lastResentAt = timestamp
    if range.start == acknowledged { headResentAt = timestamp }
  }

  /// The number of bytes believed to be in flight ("pipe" in RFC 6675).
  func bytesInFlight(acknowledged: UInt64, next: UInt64) -> UInt64 {
    let out = next - acknowledged - arrived.bytes(from: acknowledged, to: next)
    let from = max(resentEnd, acknowledged)
    let edge = min(lostEnd, next)
    guard from < edge else { return out }
    return out - (edge - from - arrived.bytes(from: from, to: edge))
  }

  private mutating func loseAll(_ acknowledged: UInt64, _ next: UInt64) {
    lostEnd = next
    resentEnd = acknowledged
    headIsLost = false
  }

  private mutating func close(_ acknowledged: UInt64, _ next: UInt64) {
    phase = .open
    lostEnd = acknowledged
    resentEnd = max(min(resentEnd, next), acknowledged)
  }

  /// The offset below which every missing byte is lost (IsLost in RFC 6675); 0 if no byte is lost. Bytes are lost when
  /// three separate ranges, or more than two segments' bytes, have arrived above them. The first missing range is also
  /// lost after three duplicate acknowledgements.
  private func lossEdge(_ segmentBytes: UInt64) -> UInt64 {
    guard !arrived.isEmpty else { return 0 }
    var above: UInt64 = 0
    var index = arrived.count
    while index > 0 {
      index -= 1
      above += arrived[index].byteCount
      if arrived.count - index >= 3 || above > 2 * segmentBytes { return arrived[index].start }
    }
    return duplicates >= 3 ? arrived[0].start : 0
  }
}
