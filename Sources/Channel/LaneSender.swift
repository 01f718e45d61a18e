import Primitives

/// The sending half of one lane: keeps the bytes until they are acknowledged and decides which to send next.
///
/// Stream offsets: acknowledged ≤ next ≤ end, and `next` is the first byte never sent (but for a window probe).
/// Loss is found as in RFC 6675: bytes are missing when enough others above them have arrived. Without records
/// of single segments: everything unacknowledged below `lostEnd` counts as lost, everything of it below
/// `resentEnd` has been sent again, in pieces of whatever size the path carries by then.
final class LaneSender {
  enum Phase {
    /// Nothing is known to be lost.
    case open
    /// Holes are being filled until everything that was out at their discovery is acknowledged.
    case recovering(until: UInt64)
    /// Everything out is sent again, after silence or on a new route, from `startedAt` on. `before` is the window
    /// to return to when the silence was only delay.
    case resending(until: UInt64, startedAt: UInt32, before: CongestionWindow?)
  }

  let ring: ByteRing
  private(set) var acknowledged: UInt64 = 0
  private(set) var next: UInt64 = 0
  private(set) var end: UInt64 = 0
  /// Above every byte that was ever sent: `next`, or one more after a window probe.
  private var sentEnd: UInt64 = 0
  /// The end of the last message that has failed and was kept because it had been begun.
  private var keptEnd: UInt64 = 0
  private var windowLimit = ChannelLimits.initialWindowBytes
  private var unfinished = UnfinishedSends(capacity: ChannelLimits.unfinishedMessagesMax)

  private var phase = Phase.open
  private var selective = RangeSet()
  private var lostEnd: UInt64 = 0
  private var resentEnd: UInt64 = 0
  private var duplicates = 0
  /// The first missing byte must be sent again although it was sent again already.
  private var headIsLost = false
  /// When the first missing byte was last sent again, or later.
  private var headResentAt: UInt32 = 0
  private var lastResentAt: UInt32 = 0

  private var roundTrip = RoundTripEstimator()
  private var window: CongestionWindow
  private var segmentBytes: UInt64
  private var backoff: UInt64 = 0
  private var retransmissionDeadline = Instant.never
  private var probeDeadline = Instant.never
  private var probeDue = false
  private var lastSent = Instant.zero
  private var lastProgress = Instant.zero
  private let deliveryDeadline: TimeSpan

  var counters = LaneStatistics()

  init(ringBytes: Int, segmentBytes: Int, deliveryDeadline: TimeSpan) {
    ring = ByteRing(capacity: ringBytes)
    self.segmentBytes = UInt64(segmentBytes)
    self.deliveryDeadline = deliveryDeadline
    window = CongestionWindow(bytesMax: UInt64(ringBytes), segmentBytes: UInt64(segmentBytes))
  }

  // MARK: Messages

  func canSend(byteCount: Int) -> Bool {
    !unfinished.isFull && byteCount <= ChannelLimits.messageBytesMax
      && UInt64(byteCount + ChannelLimits.messageHeaderBytes) <= UInt64(ring.capacity) - (end - acknowledged)
  }

  func send(_ id: MessageID, kind: UInt8, _ message: RawSpan, now: Instant) throws(SendRefusal) {
    guard message.byteCount <= ChannelLimits.messageBytesMax else { throw .tooLong }
    guard canSend(byteCount: message.byteCount) else { throw .full }
    if !unfinished.hasPending(above: acknowledged) { lastProgress = now }
    let start = end
    ring.writeMessageHeader(length: UInt32(message.byteCount), kind: kind, at: start)
    ring.write(message, at: start + UInt64(ChannelLimits.messageHeaderBytes))
    end = start + UInt64(ChannelLimits.messageHeaderBytes + message.byteCount)
    unfinished.append(id, stream: ByteRange(start: start, end: end))
    watchWindow(now)
  }

  func nextCompletion() -> (id: MessageID, outcome: Completion.Outcome)? { unfinished.next(acknowledged: acknowledged) }

  func failPending(_ failure: SendFailure) { unfinished.failPending(failure, acknowledged: acknowledged) }

  /// Begins again at offset 0; pending sends have failed.
  func restart() {
    failPending(.peerRestarted)
    (acknowledged, next, end, sentEnd, keptEnd) = (0, 0, 0, 0, 0)
    windowLimit = ChannelLimits.initialWindowBytes
    phase = .open
    selective.removeAll()
    (lostEnd, resentEnd, duplicates, headIsLost) = (0, 0, 0, false)
    window = CongestionWindow(bytesMax: UInt64(ring.capacity), segmentBytes: segmentBytes)
    backoff = 0
    retransmissionDeadline = .never
    probeDeadline = .never
    probeDue = false
  }

  // MARK: Acknowledgements

  func receive(_ acknowledgement: Acknowledgement, now: Instant) throws(ChannelRefusal) {
    let ranges = acknowledgement.rangeCount
    guard acknowledgement.cumulative <= sentEnd,
      ranges == 0 || acknowledgement.range(ranges - 1).end <= sentEnd
    else { throw .acknowledgesUnsent }
    let flight = next - acknowledged
    let advance = acknowledgement.cumulative - min(acknowledgement.cumulative, acknowledged)
    if advance > 0 { acknowledge(to: acknowledgement.cumulative, now: now) }
    var filled: UInt64 = 0
    for index in 0..<ranges where acknowledgement.range(index).end > acknowledged {
      filled += selective.insert(acknowledgement.range(index)) ?? 0
    }
    selective.removeBelow(acknowledged)
    if acknowledgement.windowLimit > windowLimit {
      windowLimit = acknowledgement.windowLimit
      // Probes of a closed window wait longer and longer; that says nothing about the path.
      if next == acknowledged { backoff = 0 }
    }

    if advance > 0 || filled > 0 { measure(echo: acknowledgement.echo, now: now) }
    if advance > 0 { retransmissionDeadline = next > acknowledged ? now + timeout : .never }
    if advance == 0, filled > 0 { duplicates += 1 }
    judge(echo: acknowledgement.echo, advanced: advance > 0, flight: flight)
    if advance > 0 {
      switch phase {
      case .open, .resending:
        window.acknowledged(
          advance, flight: flight, segmentBytes: segmentBytes, queueing: roundTrip.queueing)
      case .recovering: break
      }
    }
    watchWindow(now)
  }

  private func acknowledge(to offset: UInt64, now: Instant) {
    acknowledged = offset
    next = max(next, offset)
    duplicates = 0
    headIsLost = false
    // When this byte was sent again is not recorded; certainly not after the last one that was.
    headResentAt = lastResentAt
    backoff = 0
    lastProgress = now
  }

  private func measure(echo: UInt32, now: Instant) {
    guard echo != 0 else { return }
    let sample = now.timestamp.elapsed(since: echo)
    guard sample >= 0, sample <= Int64(ChannelLimits.roundTripMillisecondsMax) else { return }
    roundTrip.measured(UInt64(sample))
  }

  /// Decides what is lost, and which phase follows.
  private func judge(echo: UInt32, advanced: Bool, flight: UInt64) {
    switch phase {
    case .open: break
    case .recovering(let until):
      if acknowledged >= until { close() }
    case .resending(let until, let startedAt, let before):
      if acknowledged >= until {
        close()
      } else if advanced, echo != 0, startedAt.elapsed(since: echo) > 0 {
        // What was sent before the silence arrives after all (Eifel, RFC 3522): it is not sent again.
        if let before {
          window = before
          counters.spuriousTimeouts += 1
        }
        close()
      }
    }
    lostEnd = max(lostEnd, lossEdge())
    guard lostEnd > acknowledged else { return }
    if case .open = phase {
      phase = .recovering(until: next)
      resentEnd = max(resentEnd, acknowledged)
      window.lost(flight: flight, segmentBytes: segmentBytes)
      counters.fastRecoveries += 1
    }
    // The first missing byte was sent again, and something sent a good while after it has arrived: lost again.
    if resentEnd > acknowledged, !headIsLost, echo != 0,
      echo.elapsed(since: headResentAt) > Int64(max(roundTrip.smoothed / 4, 2))
    {
      headIsLost = true
    }
  }

  private func close() {
    phase = .open
    lostEnd = acknowledged
    resentEnd = max(min(resentEnd, next), acknowledged)
  }

  /// RFC 6675 IsLost: bytes are lost when three separate ranges, or more than two segments' bytes, have arrived
  /// above them; and the first hole after the third acknowledgement that filled something else.
  private func lossEdge() -> UInt64 {
    guard !selective.isEmpty else { return 0 }
    var above: UInt64 = 0
    var index = selective.count
    while index > 0 {
      index -= 1
      above += selective[index].byteCount
      if selective.count - index >= 3 || above > 2 * segmentBytes { return selective[index].start }
    }
    return duplicates >= 3 ? selective[0].start : 0
  }

  // MARK: What to send

  /// Something lost, if the congestion window allows it.
  func nextRetransmission(dataMax: UInt64, now: Instant) -> ByteRange? {
    if headIsLost {
      headIsLost = false
      return resend(from: acknowledged, to: selective.gap(from: acknowledged).end ?? next, dataMax, now)
    }
    guard let hole = unsentHole() else { return nil }
    let length = min(hole.byteCount, dataMax)
    guard hole.start == acknowledged || mayFly(length) else { return nil }
    resentEnd = hole.start + length
    return resend(from: hole.start, to: hole.end, dataMax, now)
  }

  /// Something new, or the probe of a closed window.
  func nextNew(dataMax: UInt64, now: Instant) -> ByteRange? {
    guard unsentHole() == nil, next < end else { return nil }
    let room = windowLimit - min(windowLimit, next)
    guard room > 0 else {
      guard probeDue else { return nil }
      probeDue = false
      sentEnd = max(sentEnd, next + 1)
      backoff = min(backoff + 1, 6)
      probeDeadline = now + timeout
      counters.windowProbes += 1
      return ByteRange(start: next, end: next + 1)
    }
    if next == acknowledged, lastSent + timeout < now { window.idled(segmentBytes: segmentBytes) }
    let length = min(dataMax, end - next, room)
    // A crumb that only the window cuts off waits for the window (RFC 9293 section 3.8.6.2.1).
    if length < dataMax, length < end - next, next > acknowledged { return nil }
    guard mayFly(length) else { return nil }
    let range = ByteRange(start: next, end: next + length)
    next = range.end
    sentEnd = max(sentEnd, next)
    lastSent = now
    if retransmissionDeadline == .never { retransmissionDeadline = now + timeout }
    probeDeadline = .never
    return range
  }

  private func resend(from start: UInt64, to limit: UInt64, _ dataMax: UInt64, _ now: Instant) -> ByteRange {
    let range = ByteRange(start: start, end: min(limit, start + dataMax))
    lastResentAt = now.timestamp
    if start == acknowledged {
      headResentAt = lastResentAt
      retransmissionDeadline = now + timeout
    } else if retransmissionDeadline == .never {
      retransmissionDeadline = now + timeout
    }
    lastSent = now
    counters.segmentsRetransmitted += 1
    counters.bytesRetransmitted += range.byteCount
    return range
  }

  /// The first lost bytes that were not sent again yet.
  private func unsentHole() -> ByteRange? {
    guard case let edge = min(lostEnd, next), edge > acknowledged else { return nil }
    let hole = selective.gap(from: max(resentEnd, acknowledged))
    guard hole.start < edge else { return nil }
    return ByteRange(start: hole.start, end: min(hole.end ?? edge, edge))
  }

  private func mayFly(_ length: UInt64) -> Bool {
    let flight = bytesInFlight
    return flight == 0 || flight + length <= window.bytes
  }

  /// Bytes that are believed to be on their way: RFC 6675's pipe.
  private var bytesInFlight: UInt64 {
    let out = next - acknowledged - selective.bytes(from: acknowledged, to: next)
    let from = max(resentEnd, acknowledged)
    let edge = min(lostEnd, next)
    guard from < edge else { return out }
    return out - (edge - from - selective.bytes(from: from, to: edge))
  }

  // MARK: Time and route

  private var timeout: TimeSpan {
    .milliseconds(min(roundTrip.timeout << backoff, ChannelLimits.retransmissionMaxMilliseconds))
  }

  /// When the lane is due for retransmission or a probe, provided there is a route.
  var pathDeadline: Instant { min(retransmissionDeadline, probeDeadline) }

  /// When unfinished sends fail.
  var failureDeadline: Instant {
    unfinished.hasPending(above: acknowledged) ? lastProgress + deliveryDeadline : .never
  }

  func handlePathTimeout(now: Instant) {
    if probeDeadline <= now {
      probeDeadline = .never
      probeDue = true
    }
    guard retransmissionDeadline <= now else { return }
    // Armed again when the retransmission is taken: a link that takes nothing is not a path that loses all.
    retransmissionDeadline = .never
    guard next > acknowledged else { return }
    counters.timeouts += 1
    backoff = min(backoff + 1, 6)
    var startedAt = now.timestamp
    var before: CongestionWindow? = window
    if case .resending(_, let firstStart, let firstBefore) = phase { (startedAt, before) = (firstStart, firstBefore) }
    window.timedOut(flight: next - acknowledged, segmentBytes: segmentBytes)
    resendAll(.resending(until: next, startedAt: startedAt, before: before))
  }

  func handleFailureTimeout(now: Instant) {
    guard failureDeadline <= now else { return }
    // What was begun must be finished, or the stream would have a hole; what was never sent need not be.
    end = max(unfinished.messageEnd(at: sentEnd), keptEnd)
    keptEnd = end
    failPending(.timedOut)
  }

  /// The next hop changed: whatever is out may be gone, and nothing measured before holds any more.
  func routeChanged(segmentBytes: Int, now: Instant) {
    self.segmentBytes = UInt64(segmentBytes)
    roundTrip = RoundTripEstimator()
    window = CongestionWindow(bytesMax: UInt64(ring.capacity), segmentBytes: self.segmentBytes)
    backoff = 0
    retransmissionDeadline = .never
    if next > acknowledged { resendAll(.resending(until: next, startedAt: now.timestamp, before: nil)) }
    if probeDeadline != .never {
      probeDeadline = .never
      probeDue = true
    }
    watchWindow(now)
  }

  private func resendAll(_ phase: Phase) {
    self.phase = phase
    lostEnd = next
    resentEnd = acknowledged
    headIsLost = false
  }

  /// With nothing in flight and the window closed only a probe finds out that it opened.
  private func watchWindow(_ now: Instant) {
    if next < end, next == acknowledged, windowLimit <= next {
      if probeDeadline == .never, !probeDue { probeDeadline = now + timeout }
    } else {
      probeDeadline = .never
      probeDue = false
    }
  }

  var statistics: LaneStatistics {
    var result = counters
    result.roundTripMilliseconds = roundTrip.smoothed
    result.congestionWindowBytes = window.bytes
    result.bytesInFlight = bytesInFlight
    return result
  }
}
