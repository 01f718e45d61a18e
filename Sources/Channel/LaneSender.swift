import Primitives

/// The sending half of one lane. The sender stores the bytes of messages until the bytes are acknowledged, and decides
/// which bytes to send next.
///
/// Stream offsets: acknowledged ≤ next ≤ end. `next` is the first byte that was never sent, except in a window probe.
final class LaneSender {
  private(set) var ring: ByteRing
  private(set) var acknowledged: UInt64 = 0
  private(set) var next: UInt64 = 0
  private(set) var end: UInt64 = 0
  /// The end of all bytes ever sent: `next`, or one byte more after a window probe.
  private var sentEnd: UInt64 = 0
  /// The end of the last message that failed after a part of it was sent. The rest of that message is still sent, so
  /// that the stream has no gap.
  private var keptEnd: UInt64 = 0
  private var windowLimit = ChannelLimits.initialWindowBytes
  private var unfinished = UnfinishedSends(countMax: ChannelLimits.unfinishedMessagesMax)

  private var recovery = LossRecovery()
  private var roundTrip = RoundTripEstimator()
  private var path: PathModel
  /// The time of the last route change. Segments sent before the change used another route, so their round trips are
  /// not samples of the current route.
  private var routeSince = Instant.zero
  private var segmentBytes: UInt64
  private var backoff: UInt64 = 0
  private var retransmissionDeadline = Instant.never
  private var probeDeadline = Instant.never
  private var probeDue = false
  private var lastSent = Instant.zero
  private var lastProgress = Instant.zero
  /// The time when a message of the other end last advanced a handshake.
  private var handshakeAdvancedAt = Instant.zero
  private var lastTaken = Instant.zero
  private let deliveryDeadline: TimeSpan

  var counters = LaneStatistics()

  init(ringBytes: Int, budget: RingBudget, segmentBytes: Int, deliveryDeadline: TimeSpan) {
    ring = ByteRing(capacityMax: ringBytes, budget: budget)
    self.segmentBytes = UInt64(segmentBytes)
    self.deliveryDeadline = deliveryDeadline
    path = PathModel(bytesMax: UInt64(ringBytes), segmentBytes: UInt64(segmentBytes), now: .zero)
  }

  // MARK: Messages

  func canSend(byteCount: Int) -> Bool {
    guard !unfinished.isFull, byteCount <= ChannelLimits.messageBytesMax else { return false }
    let needed = bytesHeld(with: byteCount)
    return needed <= roomBytes && ring.canReserve(needed)
  }

  func send(_ id: MessageID, kind: UInt8, _ message: RawSpan, now: Instant) throws(SendError) {
    guard message.byteCount <= ChannelLimits.messageBytesMax else { throw .tooLong }
    let needed = bytesHeld(with: message.byteCount)
    guard !unfinished.isFull, needed <= roomBytes, ring.reserve(needed, inUseFrom: acknowledged) else { throw .full }
    if !unfinished.hasPending(above: acknowledged) { lastProgress = now }
    lastTaken = now
    let start = end
    ring.writeMessageHeader(length: UInt32(message.byteCount), kind: kind, at: start)
    ring.write(message, at: start + UInt64(ChannelLimits.messageHeaderBytes))
    end = start + UInt64(ChannelLimits.messageHeaderBytes + message.byteCount)
    unfinished.append(id, stream: ByteRange(start: start, end: end))
    watchWindow(now)
  }

  var unsentBytes: Int { Int(end - next) }
  /// The congestion window, in bytes.
  var windowBytes: Int { Int(path.bytes) }

  private func bytesHeld(with byteCount: Int) -> Int {
    Int(end - acknowledged) + ChannelLimits.messageHeaderBytes + byteCount
  }

  /// The maximum number of bytes that the lane stores: four congestion windows and one message of the maximum length.
  /// The four windows are the bytes in flight, as many behind a lost segment, and twice as many that wait to be sent.
  /// The result is at least `ChannelLimits.bulkRoomBytes`, unless the ring is smaller.
  private var roomBytes: Int {
    let wanted = 4 * Int(path.bytes) + ChannelLimits.messageBytesMax
    return min(max(wanted, ChannelLimits.bulkRoomBytes), ring.capacityMax)
  }

  func nextCompletion() -> (id: MessageID, outcome: Completion.Outcome)? { unfinished.next(acknowledged: acknowledged) }

  /// Whether the completion of any send was not taken, or is still to come.
  var hasUntakenCompletions: Bool { !unfinished.isEmpty }

  func failPending(_ failure: SendFailure) { unfinished.failPending(failure, acknowledged: acknowledged) }

  /// Starts a new epoch at offset 0. Pending sends fail with `.peerRestarted`.
  func restart() {
    failPending(.peerRestarted)
    (acknowledged, next, end, sentEnd, keptEnd) = (0, 0, 0, 0, 0)
    windowLimit = ChannelLimits.initialWindowBytes
    recovery = LossRecovery()
    path = PathModel(bytesMax: UInt64(ring.capacityMax), segmentBytes: segmentBytes, now: lastProgress)
    backoff = 0
    retransmissionDeadline = .never
    probeDeadline = .never
    probeDue = false
  }

  // MARK: Acknowledgements

  func receive(_ acknowledgement: Acknowledgement, now: Instant) throws(ChannelError) {
    let ranges = acknowledgement.rangeCount
    guard acknowledgement.cumulative <= sentEnd,
      ranges == 0 || acknowledgement.range(ranges - 1).end <= sentEnd
    else { throw .acknowledgesUnsent }
    let flight = bytesInFlight
    let hadArrived = recovery.bytesArrived(acknowledged: acknowledged, below: acknowledgement.cumulative)
    let advance = acknowledgement.cumulative - min(acknowledgement.cumulative, acknowledged)
    if advance > 0 { acknowledge(to: acknowledgement.cumulative, now: now) }
    var filled: UInt64 = 0
    for index in 0..<ranges where acknowledgement.range(index).end > acknowledged + 1 {
      let range = acknowledgement.range(index)
      filled += recovery.arrive(ByteRange(start: max(range.start, acknowledged + 1), end: range.end))
    }
    if acknowledgement.windowLimit > windowLimit {
      windowLimit = acknowledgement.windowLimit
      // With nothing in flight, the back-off came from window probes and says nothing about the path.
      if next == acknowledged { backoff = 0 }
    }
    if advance == 0, filled > 0 { recovery.countDuplicate() }
    let judgement = recovery.judge(
      acknowledged: acknowledged, next: next, echo: acknowledgement.echo, hasAdvanced: advance > 0,
      segmentBytes: segmentBytes, roundTrip: roundTrip.smoothed, now: now)
    if let restored = judgement.restored {
      path.restore(restored)
      counters.spuriousTimeouts += 1
    }
    if judgement.isNewLoss { counters.fastRecoveries += 1 }
    path.lost(judgement.lost)
    if advance > 0 || filled > 0 {
      let sample = roundTripSample(echo: acknowledgement.echo, now: now)
      if let sample { roundTrip.measured(sample) }
      path.arrived(advance - min(hadArrived, advance) + filled, flight: flight, sample: sample, now: now)
    }
    if advance > 0 { retransmissionDeadline = next > acknowledged ? now + timeout : .never }
    watchWindow(now)
  }

  private func acknowledge(to offset: UInt64, now: Instant) {
    acknowledged = offset
    next = max(next, offset)
    recovery.acknowledge(to: offset)
    backoff = 0
    lastProgress = now
  }

  /// The round-trip time in microseconds; nil if the echoed timestamp is not a sample of the current route.
  private func roundTripSample(echo: UInt32, now: Instant) -> UInt64? {
    guard echo != 0 else { return nil }
    let sample = now.timestamp.elapsed(since: echo)
    // Timestamps are rounded down, so a sample may exceed the age of the route by a microsecond.
    let longest = min(ChannelLimits.roundTripMax.microseconds, (now - routeSince).microseconds + 1)
    guard sample >= 0, UInt64(sample) <= longest else { return nil }
    return UInt64(sample)
  }

  // MARK: Sending

  /// The next lost range to retransmit; nil if no range is lost, or if the congestion window does not allow it.
  func nextRetransmission(dataMax: UInt64, now: Instant) -> ByteRange? {
    if let head = recovery.takeLostHead(acknowledged: acknowledged, next: next) { return resend(head, dataMax, now) }
    guard let hole = recovery.hole(acknowledged: acknowledged, next: next) else { return nil }
    // The first lost segment ignores the congestion window: until that segment arrives, the cumulative acknowledgement
    // cannot advance.
    guard hole.start == acknowledged || mayFly(min(hole.byteCount, dataMax)) else { return nil }
    return resend(hole, dataMax, now)
  }

  /// The next range of new data, or a window probe. With `wholeOnly`, a range shorter than `dataMax` is not returned.
  func nextNew(dataMax: UInt64, wholeOnly: Bool, now: Instant) -> ByteRange? {
    guard recovery.hole(acknowledged: acknowledged, next: next) == nil else { return nil }
    guard next < end, !wholeOnly || end - next >= dataMax else {
      path.wasLimited()
      return nil
    }
    let room = windowLimit - min(windowLimit, next)
    guard room > 0 else {
      path.wasLimited()
      guard probeDue else { return nil }
      probeDue = false
      sentEnd = max(sentEnd, next + 1)
      backoff = min(backoff + 1, 6)
      probeDeadline = now + timeout
      counters.windowProbes += 1
      return ByteRange(start: next, end: next + 1)
    }
    if next == acknowledged, lastSent + timeout < now { path.idled(now: now) }
    let length = min(dataMax, end - next, room)
    // Silly window avoidance (RFC 9293 section 3.8.6.2.1): delay a segment that only the window makes short.
    if length < dataMax, length < end - next, next > acknowledged {
      path.wasLimited()
      return nil
    }
    guard mayFly(length) else { return nil }
    let range = ByteRange(start: next, end: next + length)
    next = range.end
    sentEnd = max(sentEnd, next)
    lastSent = now
    if retransmissionDeadline == .never { retransmissionDeadline = now + timeout }
    probeDeadline = .never
    return range
  }

  private func resend(_ hole: ByteRange, _ dataMax: UInt64, _ now: Instant) -> ByteRange {
    let range = ByteRange(start: hole.start, end: min(hole.end, hole.start + dataMax))
    recovery.resent(range, acknowledged: acknowledged, at: now.timestamp)
    if range.start == acknowledged || retransmissionDeadline == .never { retransmissionDeadline = now + timeout }
    lastSent = now
    counters.segmentsRetransmitted += 1
    counters.bytesRetransmitted += range.byteCount
    return range
  }

  private func mayFly(_ length: UInt64) -> Bool {
    let flight = bytesInFlight
    return flight == 0 || flight + length <= path.bytes
  }

  private var bytesInFlight: UInt64 { recovery.bytesInFlight(acknowledged: acknowledged, next: next) }

  // MARK: Time and route

  private var timeout: TimeSpan {
    max(roundTrip.timeout, min(roundTrip.timeout * (1 << backoff), ChannelLimits.backoffMax))
  }

  /// The time of the next retransmission timeout or window probe. This time is valid only while there is a route.
  var pathDeadline: Instant { min(retransmissionDeadline, probeDeadline) }

  /// The time when unfinished sends fail. An advancing handshake postpones that time, but only once.
  var failureDeadline: Instant {
    guard unfinished.hasPending(above: acknowledged) else { return .never }
    return min(max(lastProgress, handshakeAdvancedAt), lastProgress + deliveryDeadline) + deliveryDeadline
  }

  func handshakeAdvanced(now: Instant) { handshakeAdvancedAt = now }

  func handlePathTimeout(now: Instant) {
    if probeDeadline <= now {
      probeDeadline = .never
      probeDue = true
    }
    guard retransmissionDeadline <= now else { return }
    // The timer starts again when a link accepts the retransmission, because waiting for a blocked link is no sign of
    // loss.
    retransmissionDeadline = .never
    guard next > acknowledged else { return }
    counters.timeouts += 1
    backoff = min(backoff + 1, 6)
    recovery.timedOut(acknowledged: acknowledged, next: next, at: now.timestamp, window: path.bytes)
    path.timedOut()
  }

  func handleFailureTimeout(now: Instant) {
    guard failureDeadline <= now else { return }
    // A message that was sent in part must be sent to its end, because the stream would otherwise have a gap. An unsent
    // message can be dropped.
    end = max(unfinished.messageEnd(at: sentEnd), keptEnd)
    keptEnd = end
    failPending(.timedOut)
  }

  /// Handles a new next hop, and discards all measurements of the path. If `oldPathLives` is true, the old path still
  /// delivers the segments in flight; if it is false, these segments are treated as lost.
  func routeChanged(segmentBytes: Int, oldPathLives: Bool, now: Instant) {
    let retransmitAfter = timeout
    self.segmentBytes = UInt64(segmentBytes)
    roundTrip = RoundTripEstimator()
    path = PathModel(bytesMax: UInt64(ring.capacityMax), segmentBytes: self.segmentBytes, now: now)
    routeSince = now
    backoff = 0
    retransmissionDeadline = .never
    if next > acknowledged {
      if oldPathLives {
        recovery.handedOver(patientUntil: now + retransmitAfter)
        retransmissionDeadline = now + timeout
      } else {
        recovery.rerouted(acknowledged: acknowledged, next: next, at: now.timestamp)
      }
    }
    if probeDeadline != .never {
      probeDeadline = .never
      probeDue = true
    }
    watchWindow(now)
  }

  /// Handles a change of the path beyond the next hop, which stays the same. After back-off, retransmits now instead of
  /// at the timeout.
  func pathChanged(now: Instant) {
    guard backoff > 0 else { return }
    backoff = 0
    if retransmissionDeadline != .never { retransmissionDeadline = now }
    if probeDeadline != .never { probeDeadline = now }
    handlePathTimeout(now: now)
  }

  /// Frees the ring if it was unused for `ChannelLimits.ringRest`.
  func rest(now: Instant) {
    if acknowledged == end, ring.capacity > 0, lastTaken + ChannelLimits.ringRest <= now { ring.release() }
  }

  /// Starts the timer of window probes if data waits for a closed receive window and nothing is in flight; otherwise
  /// stops the timer. If a window update was lost, only a probe can detect that the window has opened.
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
    result.roundTripMicroseconds = roundTrip.smoothed
    result.bytesPerSecond = path.rate
    result.windowBytes = path.bytes
    result.bytesInFlight = bytesInFlight
    result.ringBytes = ring.capacity
    return result
  }
}
