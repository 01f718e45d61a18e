import Primitives

/// The receiving half of one lane. The receiver reassembles the stream, delivers complete messages, and sends
/// acknowledgements with the window.
///
/// A position is a count of bytes since the creation of the channel. Offset 0 in the other end's current epoch is
/// position `base`. Invariant: readPosition ≤ completeEnd ≤ cumulative ≤ readPosition + capacity.
///
/// The receive window doubles when the application has read one window of bytes and less than a quarter is unread. If
/// the application reads this fast, the path may carry more than the window allows. Memory is allocated when bytes
/// arrive, not when the window is advertised.
final class LaneReceiver {
  private var ring: ByteRing
  /// The size of the receive window: the bytes beyond `readPosition` that are accepted.
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
  /// The timestamp of the newest segment since the last acknowledgement; 0 if there was none.
  private var echo: UInt32 = 0
  /// The start of the segment above `cumulative` that arrived last. Each acknowledgement reports the range that
  /// contains this position.
  private var newest: UInt64 = 0
  /// The end of the receive window in the last acknowledgement.
  private var advertisedLimit: UInt64
  private var lastArrival = Instant.zero

  var statistics = LaneStatistics()

  init(ringBytes: Int, budget: RingBudget) {
    ring = ByteRing(capacityMax: ringBytes, budget: budget)
    window = UInt64(min(ringBytes, ChannelLimits.bulkRoomBytes))
    advertisedLimit = min(UInt64(ringBytes), ChannelLimits.initialWindowBytes)
  }

  // MARK: Segments

  func receive(_ segment: Segment, _ data: RawSpan, now: Instant) throws(ChannelError) {
    statistics.segmentsReceived += 1
    lastArrival = now
    echo = segment.timestamp
    let start = base + segment.offset
    let low = max(start, cumulative)
    let end = min(start + UInt64(data.byteCount), limit)
    let high = low < end ? allocate(upTo: end) : end
    guard low < high else {
      // A segment without a new byte is old, or a probe of a closed window, so the sender has missed an
      // acknowledgement.
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
    // A segment that ends a message may be the last for a long time, so its acknowledgement is sent at once.
    if segmentsUnacknowledged >= 2 || bytesUnacknowledged >= ChannelLimits.acknowledgementBytes
      || completeEnd == cumulative
    {
      acknowledgementDue = true
    }
    if !acknowledgementDue, acknowledgementDeadline == .never {
      acknowledgementDeadline = now + ChannelLimits.acknowledgementDelay
    }
  }

  /// The end of the receive window. The end never decreases, because the sender may use every byte that was advertised.
  private var limit: UInt64 { max(readPosition + window, advertisedLimit) }

  /// Allocates memory for the bytes below position `high`. Returns `high`, or a lower position if there is memory for
  /// fewer bytes.
  private func allocate(upTo high: UInt64) -> UInt64 {
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

  /// The maximum number of messages that one call of `findMessages` finds. One segment can complete a full window of
  /// empty messages. Further messages are found after the application has taken these messages.
  private static let foundAtOnce = 1_024

  /// Moves `completeEnd` past the messages that are complete. Returns false if a message header announces a length
  /// above the limit.
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

  /// Begins a new epoch of the other end at offset 0. Complete messages of the former epoch can still be read.
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

  /// Copies the pending message into `target`, which must have exactly the message's size, and frees the message's part
  /// of the ring.
  func take(into target: UnsafeMutableRawBufferPointer) {
    precondition(readPosition < completeEnd)
    ring.read(at: readPosition + UInt64(ChannelLimits.messageHeaderBytes), into: target)
    readPosition += UInt64(ChannelLimits.messageHeaderBytes + target.count)
    // The result is ignored here: a message that is too long is refused when the next segment arrives.
    if readPosition == completeEnd { _ = findMessages() }
    let gain = limit - advertisedLimit
    // The other end may have reached the end of the receive window with an incomplete message. So when little is left,
    // a gain of a sixteenth of the window is advertised. The smallest ring has a sixteenth left while it holds a
    // message of the maximum length.
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

  /// The deadline of a delayed acknowledgement. The deadline is `.never` while an acknowledgement is due, because a due
  /// acknowledgement waits for the owner, not for a timer.
  var deadline: Instant { acknowledgementDue ? .never : acknowledgementDeadline }

  func handleTimeout(now: Instant) {
    if acknowledgementDeadline <= now { acknowledgementDue = true }
  }

  /// Returns the acknowledgement that is due and records that it was sent; nil if no acknowledgement is due. The caller
  /// must send the acknowledgement at once.
  func nextAcknowledgement(epochs: EpochPair, lane: Lane) -> Acknowledgement? {
    guard acknowledgementDue else { return nil }
    var result = Acknowledgement(
      epochs: epochs, lane: lane, echo: echo, cumulative: cumulative - base, windowLimit: limit - base)
    let told = Acknowledgement.rangesMax
    let newestIndex = ranges.index(holding: newest) ?? 0
    for index in 0..<min(ranges.count, told) {
      // The lowest ranges that have arrived are reported. If the range of the newest segment is not among the lowest
      // ranges, it replaces the last of these.
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
