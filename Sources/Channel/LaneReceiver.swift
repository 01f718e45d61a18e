import Primitives

/// The receiving half of one lane. It reassembles the stream, delivers complete messages, and sends acknowledgements
/// with the window.
///
/// Positions count from the creation of the channel; offset 0 of the other end's current epoch is at `base`. Invariant:
/// readPosition ≤ completeEnd ≤ cumulative ≤ readPosition + capacity.
///
/// Receive window tuning: the window doubles when the application has read one whole window and keeps up, because the
/// path may carry more. Memory is allocated when bytes arrive, not when the window is advertised.
final class LaneReceiver {
  private var ring: ByteRing
  /// Bytes advertised beyond `readPosition`.
  private var window: UInt64
  /// The value of `readPosition` when the window got its current size.
  private var widenedAt: UInt64 = 0
  private var base: UInt64 = 0
  /// The start of the next message for the application.
  private var readPosition: UInt64 = 0
  /// The end of the last complete message that was found.
  private var completeEnd: UInt64 = 0
  /// The position below which all bytes have arrived.
  private var cumulative: UInt64 = 0
  private var ranges = RangeSet()

  private(set) var acknowledgementDue = false
  private var acknowledgementDeadline = Instant.never
  private var segmentsUnacknowledged = 0
  private var bytesUnacknowledged: UInt64 = 0
  /// The timestamp to echo; 0 after it was echoed.
  private var echo: UInt32 = 0
  /// The position of the newest segment above `cumulative`. Its range is always reported.
  private var newest: UInt64 = 0
  private var advertisedLimit: UInt64
  private var lastArrival = Instant.zero

  var statistics = LaneStatistics()

  init(ringBytes: Int, budget: RingBudget) {
    ring = ByteRing(capacityMax: ringBytes, budget: budget)
    window = UInt64(min(ringBytes, ChannelLimits.bulkRoomBytes))
    advertisedLimit = min(UInt64(ringBytes), ChannelLimits.initialWindowBytes)
  }

  // MARK: Segments

  func receive(_ segment: Segment, _ data: RawSpan, now: Instant) throws(ChannelRefusal) {
    statistics.segmentsReceived += 1
    lastArrival = now
    echo = segment.timestamp
    let start = base + segment.offset
    let low = max(start, cumulative)
    let end = min(start + UInt64(data.byteCount), limit)
    let high = low < end ? place(upTo: end) : end
    guard low < high else {
      // An old segment, or a probe of a closed window: the sender missed an acknowledgement.
      if low < end || start >= limit { statistics.unplacedReceived += 1 } else { statistics.duplicatesReceived += 1 }
      acknowledgementDue = true
      return
    }
    let part = data.extracting(Int(low - start)..<Int(high - start))
    if low > cumulative || !ranges.isEmpty { acknowledgementDue = true }
    if low == cumulative {
      ring.write(part, at: low)
      advance(to: high)
    } else {
      guard let fresh = ranges.insert(ByteRange(start: low, end: high)) else {
        statistics.unplacedReceived += 1
        return
      }
      if fresh > 0 { ring.write(part, at: low) } else { statistics.duplicatesReceived += 1 }
      newest = low
    }
    guard findMessages() else { throw .messageTooLong(segment.epochs.destination) }
    widen()
    segmentsUnacknowledged += 1
    bytesUnacknowledged += high - low
    // A segment that ends a message may be the last for a long time: acknowledge it at once.
    if segmentsUnacknowledged >= 2 || bytesUnacknowledged >= ChannelLimits.acknowledgementBytes
      || completeEnd == cumulative
    {
      acknowledgementDue = true
    }
    if !acknowledgementDue, acknowledgementDeadline == .never {
      acknowledgementDeadline = now + ChannelLimits.acknowledgementDelay
    }
  }

  /// The window's right edge never moves back.
  private var limit: UInt64 { max(readPosition + window, advertisedLimit) }

  /// Ensures memory up to `high`. Returns the position up to which there is memory.
  private func place(upTo high: UInt64) -> UInt64 {
    guard high > readPosition, !ring.reserve(Int(high - readPosition), inUseFrom: readPosition) else { return high }
    // The node's ring budget is used up: advertise no more than the memory that exists.
    if !ring.reserve(ChannelLimits.ringBytesMin, inUseFrom: readPosition) {
      preconditionFailure("every ring is sure of as much")
    }
    window = min(window, UInt64(ring.capacity))
    return min(high, readPosition + UInt64(ring.capacity))
  }

  private func widen() {
    guard window < UInt64(ring.capacityMax), readPosition - widenedAt >= window,
      completeEnd - readPosition < window / 4
    else { return }
    let wider = min(2 * window, UInt64(ring.capacityMax))
    guard ring.canReserve(Int(wider)) else { return }
    window = wider
    widenedAt = readPosition
    acknowledgementDue = true
  }

  private func advance(to position: UInt64) {
    let before = cumulative
    cumulative = position
    while !ranges.isEmpty, ranges[0].start <= cumulative {
      cumulative = max(cumulative, ranges[0].end)
      ranges.removeBelow(cumulative)
    }
    statistics.bytesReceived += cumulative - before
  }

  /// The number of messages found in one call. One segment may complete a whole window of empty messages. The rest is
  /// found when these are taken.
  private static let foundAtOnce = 1_024

  /// Finds the next complete messages. Returns false if an announced message is longer than the limit.
  private func findMessages() -> Bool {
    for _ in 0..<Self.foundAtOnce {
      guard cumulative - completeEnd >= UInt64(ChannelLimits.messageHeaderBytes) else { return true }
      let length = ring.messageHeader(at: completeEnd).length
      guard length <= UInt32(ChannelLimits.messageBytesMax) else { return false }
      let end = completeEnd + UInt64(ChannelLimits.messageHeaderBytes) + UInt64(length)
      guard end <= cumulative else { return true }
      completeEnd = end
    }
    return true
  }

  /// Starts a new epoch of the other end at offset 0. Complete messages can still be read.
  func restart() {
    var found: UInt64
    repeat {
      found = completeEnd
      _ = findMessages()
    } while completeEnd > found
    base = completeEnd
    cumulative = completeEnd
    ranges.removeAll()
    acknowledgementDue = false
    acknowledgementDeadline = .never
    segmentsUnacknowledged = 0
    bytesUnacknowledged = 0
    echo = 0
    advertisedLimit = min(readPosition + window, base + ChannelLimits.initialWindowBytes)
  }

  // MARK: Messages

  var pending: (kind: UInt8, byteCount: Int)? {
    guard readPosition < completeEnd else { return nil }
    let header = ring.messageHeader(at: readPosition)
    return (header.kind, Int(header.length))
  }

  /// Copies the pending message into `target`, which must have exactly its size, and frees its room in the ring.
  func take(into target: UnsafeMutableRawBufferPointer) {
    precondition(readPosition < completeEnd)
    ring.read(at: readPosition + UInt64(ChannelLimits.messageHeaderBytes), into: target)
    readPosition += UInt64(ChannelLimits.messageHeaderBytes + target.count)
    // A message that is too long is refused with the next segment.
    if readPosition == completeEnd { _ = findMessages() }
    let gain = limit - advertisedLimit
    // The other end may have reached the limit with an incomplete message. Then a sixteenth of the window is worth an
    // update: the smallest ring has that much left beside a message of the maximum length.
    let isNarrow = advertisedLimit - min(advertisedLimit, cumulative) < window / 4
    if gain >= window / 2 || (isNarrow && gain >= window / 16) { acknowledgementDue = true }
  }

  /// Frees the ring if it was unused for `ChannelLimits.ringRest`.
  func rest(now: Instant) {
    guard readPosition == cumulative, ranges.isEmpty, ring.capacity > 0,
      lastArrival + ChannelLimits.ringRest <= now
    else { return }
    ring.release()
  }

  var ringBytes: Int { ring.capacity }

  // MARK: Acknowledgements

  /// The deadline of a delayed acknowledgement. It is `.never` while an acknowledgement is due: that one waits for the
  /// owner, not for a timer.
  var deadline: Instant { acknowledgementDue ? .never : acknowledgementDeadline }

  func handleTimeout(now: Instant) {
    if acknowledgementDeadline <= now { acknowledgementDue = true }
  }

  /// The acknowledgement that is due. The caller must send it now.
  func nextAcknowledgement(epochs: EpochPair, lane: Lane) -> Acknowledgement? {
    guard acknowledgementDue else { return nil }
    var result = Acknowledgement(
      epochs: epochs, lane: lane, echo: echo, cumulative: cumulative - base, windowLimit: limit - base)
    let told = Acknowledgement.rangesMax
    let newestIndex = ranges.index(holding: newest) ?? 0
    for index in 0..<min(ranges.count, told) {
      // Reports the lowest ranges. The last place is for the newest range if it is not among them.
      let range = ranges[index == told - 1 ? max(index, newestIndex) : index]
      result.append(ByteRange(start: range.start - base, end: range.end - base))
    }
    acknowledgementDue = false
    acknowledgementDeadline = .never
    segmentsUnacknowledged = 0
    bytesUnacknowledged = 0
    echo = 0
    advertisedLimit = limit
    statistics.acknowledgementsSent += 1
    return result
  }
}
