import Primitives

/// The sender's record of bytes in flight: which arrived above the cumulative acknowledgement, which are lost, and which
/// lost ones were retransmitted.
///
/// Loss is found as in RFC 6675: bytes are missing when enough others above them have arrived. There are no records
/// of single segments: everything missing below `lostEnd` counts as lost, everything of it below `resentEnd` has
/// been sent again, in pieces of whatever size the path carried by then.
struct LossRecovery {
  private enum Phase {
    /// Nothing is known to be lost.
    case open
    /// Holes are being filled until everything that was out at their discovery is acknowledged.
    case recovering(until: UInt64)
    /// Everything out is sent again, after silence or on a new route, from `startedAt` on. `before` is the window
    /// to return to when the silence was only delay; nil on a new route.
    case resending(until: UInt64, startedAt: UInt32, before: UInt64?)
  }

  /// What an acknowledgement showed.
  struct Judgement {
    /// Holes, for the first time since the last ones were filled.
    var isNewLoss = false
    /// Bytes that count as lost since this acknowledgement.
    var lost: UInt64 = 0
    /// A timeout was only delay: the window from before it.
    var restored: UInt64?
  }

  private var phase = Phase.open
  private var arrived = RangeSet()
  private var lostEnd: UInt64 = 0
  private var resentEnd: UInt64 = 0
  /// Acknowledgements since the last advance that told of something else that arrived.
  private var duplicates = 0
  /// The first missing byte must be sent again although it was sent again already.
  private var headIsLost = false
  /// When the first missing byte was last sent again, or later.
  private var headResentAt: UInt32 = 0
  private var lastResentAt: UInt32 = 0
  /// Until then two paths deliver at once, and a missing byte may only be late (reordering).
  private var patientUntil = Instant.zero

  /// Everything below `offset` has arrived; more than before.
  mutating func acknowledge(to offset: UInt64) {
    arrived.removeBelow(offset)
    duplicates = 0
    headIsLost = false
    // When this byte was sent again is not recorded; certainly not after the last one that was.
    headResentAt = lastResentAt
  }

  /// A range above the acknowledged bytes has arrived; answers how many of its bytes are news.
  mutating func arrive(_ range: ByteRange) -> UInt64 { arrived.insert(range) ?? 0 }

  /// An acknowledgement that did not advance told of something new.
  mutating func countDuplicate() { duplicates += 1 }

  /// Bytes that arrived beyond `acknowledged` and lie below `end`.
  func bytesArrived(acknowledged: UInt64, below end: UInt64) -> UInt64 { arrived.bytes(from: acknowledged, to: end) }

  /// Decides what is lost, and which phase follows. `echo`: when the segment was sent that caused the
  /// acknowledgement, 0 if unknown. `roundTrip` in microseconds.
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
        // What was sent before the silence arrives after all (Eifel, RFC 3522): it is not sent again.
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
    // The first missing byte was retransmitted, and a segment sent well after it arrived: the retransmission is lost.
    if resentEnd > acknowledged, echo != 0, echo.elapsed(since: headResentAt) > Int64(max(roundTrip / 4, 500)) {
      headIsLost = true
    }
    return result
  }

  /// Nothing arrives: everything out counts as lost. `window` is what a mere delay will give back.
  mutating func timedOut(acknowledged: UInt64, next: UInt64, at timestamp: UInt32, window: UInt64) {
    if case .resending(_, let startedAt, let before) = phase {
      phase = .resending(until: next, startedAt: startedAt, before: before)
    } else {
      phase = .resending(until: next, startedAt: timestamp, before: window)
    }
    loseAll(acknowledged, next)
  }

  /// Everything out may be gone with the old route.
  mutating func rerouted(acknowledged: UInt64, next: UInt64, at timestamp: UInt32) {
    phase = .resending(until: next, startedAt: timestamp, before: nil)
    loseAll(acknowledged, next)
  }

  /// A new route was chosen while the old one still delivers.
  mutating func handedOver(patientUntil end: Instant) { patientUntil = end }

  /// The first lost bytes that were not sent again yet.
  func hole(acknowledged: UInt64, next: UInt64) -> ByteRange? {
    let edge = min(lostEnd, next)
    guard edge > acknowledged else { return nil }
    let gap = arrived.gap(from: max(resentEnd, acknowledged))
    guard gap.start < edge else { return nil }
    return ByteRange(start: gap.start, end: min(gap.end ?? edge, edge))
  }

  /// The first missing bytes when their retransmission was lost too. Answered once.
  mutating func takeLostHead(acknowledged: UInt64, next: UInt64) -> ByteRange? {
    guard headIsLost else { return nil }
    headIsLost = false
    return ByteRange(start: acknowledged, end: arrived.gap(from: acknowledged).end ?? next)
  }

  /// `range`, which begins with what `hole` or `takeLostHead` answered, is sent again.
  mutating func resent(_ range: ByteRange, acknowledged: UInt64, at timestamp: UInt32) {
    resentEnd = max(resentEnd, range.end)
    lastResentAt = timestamp
    if range.start == acknowledged { headResentAt = timestamp }
  }

  /// Bytes that are believed to be on their way: RFC 6675's pipe.
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

  /// RFC 6675 IsLost: bytes are lost when three separate ranges, or more than two segments' bytes, have arrived
  /// above them; and the first hole after the third acknowledgement that told of something above it.
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
