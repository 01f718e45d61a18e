import Primitives

/// The received datagrams that the application has not read. If the ring is full, a new datagram displaces the oldest
/// ones.
struct DatagramInbox: ~Copyable {
  private var ring: ByteRing
  private var seen = ReplayWindow()
  private var start: UInt64 = 0
  private var end: UInt64 = 0
  private var lastArrival = Instant.zero
  private(set) var statistics = DatagramStatistics()

  init(budget: RingBudget) { ring = ByteRing(capacityMax: ChannelLimits.datagramRingBytes, budget: budget) }

  /// Stores a datagram. Throws `.alreadyReceived` for a duplicate, which changes only a counter.
  mutating func receive(_ datagram: Datagram, _ message: RawSpan, now: Instant) throws(ChannelError) {
    guard seen.take(datagram.number) else {
      statistics.duplicatesReceived += 1
      throw .alreadyReceived
    }
    let needed = UInt64(ChannelLimits.messageHeaderBytes + message.byteCount)
    while end - start + needed > UInt64(ring.capacityMax) {
      start += UInt64(ChannelLimits.messageHeaderBytes) + UInt64(ring.messageHeader(at: start).length)
      statistics.droppedUnread += 1
    }
    guard ring.reserve(Int(end - start + needed), inUseFrom: start) else {
      preconditionFailure("every ring is sure of as much")
    }
    ring.writeMessageHeader(length: UInt32(message.byteCount), kind: datagram.kind, at: end)
    ring.write(message, at: end + UInt64(ChannelLimits.messageHeaderBytes))
    end += needed
    lastArrival = now
    statistics.received += 1
  }

  mutating func countSent() { statistics.sent += 1 }

  /// Kind and length of the oldest unread message.
  var pending: (kind: UInt8, byteCount: Int)? {
    guard start < end else { return nil }
    let header = ring.messageHeader(at: start)
    return (header.kind, Int(header.length))
  }

  mutating func next() -> ReceivedDatagram? {
    guard let pending else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: pending.byteCount) { buffer, count in
      ring.read(
        at: start + UInt64(ChannelLimits.messageHeaderBytes),
        into: UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: pending.byteCount))
      count = pending.byteCount
    }
    start += UInt64(ChannelLimits.messageHeaderBytes + pending.byteCount)
    return ReceivedDatagram(kind: pending.kind, bytes: bytes)
  }

  /// Accepts datagram numbers from 1 again, because the other end began a new epoch. Unread datagrams can still be
  /// read.
  mutating func restart() { seen = ReplayWindow() }

  /// Frees the ring if it was unused for `ChannelLimits.ringRest`.
  mutating func rest(now: Instant) {
    if start == end, ring.capacity > 0, lastArrival + ChannelLimits.ringRest <= now { ring.release() }
  }
}

/// The replay window (RFC 6479; RFC 9147 section 4.5.1): the set of the 64 newest numbers that have arrived. An older
/// number is treated as a replay.
struct ReplayWindow {
  private var greatest: UInt64 = 0
  /// Bit n is set if number `greatest` − n has arrived.
  private var arrived: UInt64 = 0

  /// Records `number`. Returns true for a new number, false for a replay.
  mutating func take(_ number: UInt64) -> Bool {
    if number > greatest {
      let step = number - greatest
      arrived = step < 64 ? arrived << step | 1 : 1
      greatest = number
      return true
    }
    let age = greatest - number
    #if PLANTED_BUG
      // A deliberate bug that the simulator must find (`make sim-planted`): only the newest number is known as
      // received.
      let known = arrived & 1
    #else
      let known = arrived
    #endif
    guard age < 64, known & (1 << age) == 0 else { return false }
    arrived |= 1 << age
    return true
  }
}
