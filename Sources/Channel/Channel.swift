import Primitives

/// Reliable delivery between this node and one other node, over a path that may lose, delay, duplicate and reorder
/// frames.
///
/// A channel carries two lanes. A lane is an ordered stream of messages in each direction. A message arrives once,
/// complete, and in the order of its lane. If that is impossible, the channel reports that the send has failed.
/// Sequence numbers count bytes, so a new path MTU only changes the size of later segments.
///
/// **Drain rule.** The channel does no I/O and reads no clock. After every call that changes the channel (`send`,
/// `receive…`, `handleTimeout`, `routeChanged`, `remoteRestarted`, `takeMessage`, `nextMessage`) the owner
/// 1. calls `nextFrame` until it returns nil, as long as the link accepts frames;
/// 2. calls `nextCompletion` until it returns nil;
/// 3. takes messages with `nextMessage` or `takeMessage` when the application is ready for them. A message that is not
///    taken uses buffer space, so the receive window of its lane closes;
/// 4. sets its timer to `nextDeadline`, and calls `handleTimeout` when the timer expires.
///
/// When a link accepts frames again, the owner repeats these steps.
///
/// **Epochs.** An epoch is a number that identifies one lifetime of one end of the channel. In a new channel the
/// offsets of both lanes begin at 0. So an owner that recreates a channel, while its node has not restarted, must pass
/// a greater `localEpoch` than before. To use no pair of epochs twice, a channel increases its own `localEpoch` in two
/// cases:
/// - the other end returns to an earlier epoch (that node lost its counter, or two nodes use one identity);
/// - a received stream announces a message that is too long.
///
/// **Sealing.** This module handles only plaintext payloads. The owner encrypts the output of `nextFrame`, and decrypts
/// received payloads before a call of `receive…`. The owner subtracts the overhead of encryption from the path MTU
/// given to the channel.
///
/// **Datagrams.** A message can also be sent unreliably: `writeDatagram` writes the payload of an unreliable message,
/// and the owner sends the payload at once or drops it. `nextDatagram` returns received datagrams.
///
/// **Memory.** Rings start without memory, grow with the bytes in flight, and free their memory when they have been
/// empty for `ChannelLimits.ringRest`. `nextMessage` allocates the array for a message; `takeMessage` allocates
/// nothing.
public final class Channel {
  public private(set) var localEpoch: UInt64
  public private(set) var remoteEpoch: UInt64

  /// The maximum memory of a channel without its rings, in bytes. This maximum covers the channel's objects, and for
  /// both lanes the records of sends whose completion `nextCompletion` has not returned.
  public static let recordBytesMax =
    2 * (UnfinishedSends.bytesMax + MemoryLayout<LossRecovery>.stride + MemoryLayout<RangeSet>.stride) + 4_096

  // Static, because an array literal at each loop would allocate memory.
  private static let all: [Lane] = [.interactive, .bulk]

  private let senders: (LaneSender, LaneSender)
  private let receivers: (LaneReceiver, LaneReceiver)
  private var datagrams: DatagramInbox
  private var datagramNumber: UInt64 = 0
  private var pathMTU = ChannelLimits.pathMTUMin
  private var bulkMTU = ChannelLimits.pathMTUMin
  private var hasRoute = false
  public private(set) var isClosed = false
  private var messagesTaken: UInt64 = 0
  /// Whether nothing was sent to the current epoch of the other end, and nothing was received from that epoch.
  private var isUntouched = true

  /// Creates a channel without a route; `routeChanged` sets the route. The channels of one node share a `budget` for
  /// their rings.
  public init(
    localEpoch: UInt64, remoteEpoch: UInt64, settings: ChannelSettings = ChannelSettings(),
    budget: RingBudget = RingBudget()
  ) {
    self.localEpoch = localEpoch
    self.remoteEpoch = remoteEpoch
    let interactive = max(settings.interactiveRingBytes, ChannelLimits.ringBytesMin)
    let bulk = max(settings.bulkRingBytes, ChannelLimits.ringBytesMin)
    let segmentBytes = ChannelLimits.pathMTUMin - Segment.headerBytes
    let deadline = settings.deliveryDeadline
    senders = (
      LaneSender(ringBytes: interactive, budget: budget, segmentBytes: segmentBytes, deliveryDeadline: deadline),
      LaneSender(ringBytes: bulk, budget: budget, segmentBytes: segmentBytes, deliveryDeadline: deadline)
    )
    receivers = (
      LaneReceiver(ringBytes: interactive, budget: budget), LaneReceiver(ringBytes: bulk, budget: budget)
    )
    datagrams = DatagramInbox(budget: budget)
  }

  // MARK: Sending

  /// Queues a complete message of `kind` for delivery in `lane`. Throws `.full` if the lane has no room for the message
  /// now, `.tooLong` if the message exceeds `ChannelLimits.messageBytesMax`, and `.closed`.
  public func send(
    kind: UInt8, _ message: RawSpan, lane: Lane, now: Instant
  ) throws(SendError) -> MessageID {
    guard !isClosed else { throw .closed }
    let id = MessageID(number: messagesTaken)
    try sender(lane).send(id, kind: kind, message, now: now)
    messagesTaken += 1
    return id
  }

  /// Whether `send` would accept a message of `byteCount` bytes now.
  public func canSend(byteCount: Int, lane: Lane) -> Bool { !isClosed && sender(lane).canSend(byteCount: byteCount) }

  /// The bytes of a lane that `send` accepted and that were never sent.
  public func unsentBytes(_ lane: Lane) -> Int { sender(lane).unsentBytes }

  /// The congestion window of a lane, in bytes.
  public func windowBytes(_ lane: Lane) -> Int { sender(lane).windowBytes }

  /// Returns the next result of a send, nil if there is none. Every accepted send has exactly one result. The results
  /// of a lane come in the order of its sends.
  public func nextCompletion() -> Completion? {
    for lane in Self.all {
      if let next = sender(lane).nextCompletion() {
        return Completion(message: next.id, lane: lane, outcome: next.outcome)
      }
    }
    return nil
  }

  /// Whether any send is neither delivered nor failed.
  public var hasUnfinishedSends: Bool {
    Self.all.contains { sender($0).failureDeadline != .never }
  }

  /// Whether `nextCompletion` will still return a result, now or later. If not, the owner can discard the channel
  /// without losing a result.
  public var hasUntakenCompletions: Bool { Self.all.contains { sender($0).hasUntakenCompletions } }

  // MARK: Receiving messages

  /// Describes the next complete message of `lane` and leaves the message in the channel. Nil if there is none.
  public func pendingMessage(_ lane: Lane) -> PendingMessage? {
    guard let next = receiver(lane).pending else { return nil }
    return PendingMessage(kind: next.kind, lane: lane, byteCount: next.byteCount)
  }

  /// Moves the next complete message of `lane` to the start of `buffer`, and opens the receive window by the size of
  /// the message. Returns nil and changes nothing if there is no message or the buffer is too short.
  public func takeMessage(_ lane: Lane, into buffer: UnsafeMutableRawBufferPointer) -> PendingMessage? {
    guard let pending = pendingMessage(lane), pending.byteCount <= buffer.count else { return nil }
    receiver(lane).take(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<pending.byteCount]))
    return pending
  }

  /// Removes and returns the next complete message of `lane`, and opens the receive window by the size of the message.
  public func nextMessage(_ lane: Lane) -> ReceivedMessage? {
    guard let pending = pendingMessage(lane) else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: pending.byteCount) { buffer, count in
      receiver(lane).take(
        into: UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: pending.byteCount))
      count = pending.byteCount
    }
    return ReceivedMessage(kind: pending.kind, lane: lane, bytes: bytes)
  }

  /// Removes and returns the next complete message of the interactive lane, or of the bulk lane if there is none.
  public func nextMessage() -> ReceivedMessage? { nextMessage(.interactive) ?? nextMessage(.bulk) }

  // MARK: Datagrams

  /// The longest message that one datagram carries on this path, in bytes; nil without a route.
  public var datagramBytesMax: Int? { hasRoute && !isClosed ? pathMTU - Datagram.headerBytes : nil }

  /// Writes a payload of frame type 34 to the start of `buffer` and returns its length. `buffer` must have room for the
  /// path MTU. The caller must send the payload at once or drop it. The message must not be longer than
  /// `datagramBytesMax`.
  public func writeDatagram(kind: UInt8, _ message: RawSpan, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let longest = datagramBytesMax else { preconditionFailure("there is no route") }
    precondition(message.byteCount <= longest && buffer.count >= pathMTU)
    datagramNumber += 1
    isUntouched = false
    datagrams.countSent()
    Datagram(epochs: EpochPair(destination: remoteEpoch, source: localEpoch), kind: kind, number: datagramNumber)
      .encodeHeader(into: buffer)
    message.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(rebasing: buffer[Datagram.headerBytes...]).copyMemory(from: bytes)
    }
    return Datagram.headerBytes + message.byteCount
  }

  /// Kind and length of the message that `nextDatagram` would return.
  public var pendingDatagram: (kind: UInt8, byteCount: Int)? { datagrams.pending }

  /// Removes and returns the oldest unread datagram; nil if there is none. A datagram that arrives when the ring is
  /// full displaces the oldest unread ones.
  public func nextDatagram() -> ReceivedDatagram? { datagrams.next() }

  public var datagramStatistics: DatagramStatistics { datagrams.statistics }

  /// Handles a payload of frame type 34. Throws `.alreadyReceived` for a duplicate, and for a number that is 64 or more
  /// below the greatest received number.
  public func receiveDatagram(_ payload: RawSpan, now: Instant) throws(ChannelError) {
    guard !isClosed else { throw .closed }
    let view: DatagramView
    let datagram: Datagram
    do throws(PayloadError) {
      view = try DatagramView(payload)
      datagram = try view.checked()
    } catch { throw .malformed(error) }
    try check(datagram.epochs)
    try datagrams.receive(datagram, view.message, now: now)
  }

  // MARK: Payloads from the network

  /// Handles a payload of frame type 32. A thrown error leaves the channel unchanged, with one exception: with
  /// `.messageTooLong` the channel has begun again in a later local epoch. After `.otherDestinationEpoch` or
  /// `.messageTooLong` the owner should reply with a `Reset`.
  public func receiveSegment(_ payload: RawSpan, now: Instant) throws(ChannelError) {
    guard !isClosed else { throw .closed }
    let view: SegmentView
    let segment: Segment
    do throws(PayloadError) {
      view = try SegmentView(payload)
      segment = try view.checked()
    } catch { throw .malformed(error) }
    try check(segment.epochs)
    do throws(ChannelError) {
      try receiver(segment.lane).receive(segment, view.data, now: now)
    } catch {
      // The sender would retransmit the same message, and the start of the next message is unknown. Only a new epoch
      // lets the two ends continue.
      if case .messageTooLong = error { beginAgain(inLaterEpoch: true) }
      throw error
    }
  }

  /// Handles a payload of frame type 33.
  public func receiveAcknowledgement(_ payload: RawSpan, now: Instant) throws(ChannelError) {
    guard !isClosed else { throw .closed }
    let acknowledgement: Acknowledgement
    do throws(PayloadError) {
      acknowledgement = try AcknowledgementView(payload).checked()
    } catch { throw .malformed(error) }
    try check(acknowledgement.epochs)
    try sender(acknowledgement.lane).receive(acknowledgement, now: now)
  }

  /// Handles a payload of frame type 38: an acknowledgement, then a segment. Throws like `receiveSegment`.
  public func receiveJoined(_ payload: RawSpan, now: Instant) throws(ChannelError) {
    let split: Int
    do throws(PayloadError) {
      split = try AcknowledgementView.byteCount(in: payload)
      _ = try SegmentView(payload.extracting(split...)).checked()
    } catch { throw .malformed(error) }
    guard EpochPair(payload) == EpochPair(payload.extracting(split...)) else { throw .malformed(.epochsDiffer) }
    try receiveAcknowledgement(payload.extracting(..<split), now: now)
    try receiveSegment(payload.extracting(split...), now: now)
  }

  /// Handles a payload of frame type 35. If the reset is accepted, the channel begins again with the other end's new
  /// epoch, as it does after `remoteRestarted`.
  public func receiveReset(_ payload: RawSpan, now: Instant) throws(ChannelError) {
    guard !isClosed else { throw .closed }
    let reset: Reset
    do throws(PayloadError) { reset = try Reset(payload) } catch { throw .malformed(error) }
    guard reset.meantEpoch == remoteEpoch else { throw .staleReset }
    remoteRestarted(epoch: reset.currentEpoch)
  }

  private func check(_ epochs: EpochPair) throws(ChannelError) {
    guard epochs.destination == localEpoch else { throw .otherDestinationEpoch(epochs.destination) }
    guard epochs.source == remoteEpoch else { throw .otherSourceEpoch(epochs.source) }
    isUntouched = false
  }

  // MARK: Life and route

  /// Adopts a new epoch of the other end. Unfinished sends fail with `.peerRestarted`, and both lanes begin at offset
  /// 0. Complete messages of the former epoch can still be read. Does nothing if `epoch` is the current epoch.
  public func remoteRestarted(epoch: UInt64) {
    guard epoch != remoteEpoch else { return }
    let isEarlier = epoch < remoteEpoch
    remoteEpoch = epoch
    datagrams.restart()
    beginAgain(inLaterEpoch: isEarlier)
  }

  /// Handles an epoch that the other end stated in an authenticated message. An epoch later than the known one means a
  /// restart. If nothing was sent to the known epoch or received from it, the channel adopts the later epoch and no
  /// send fails. An epoch earlier than the known one comes from a late message and is ignored.
  public func remoteSaid(epoch: UInt64) {
    guard epoch > remoteEpoch else { return }
    if isUntouched { remoteEpoch = epoch } else { remoteRestarted(epoch: epoch) }
  }

  /// Starts a later epoch of this end. Unfinished sends fail with `.peerRestarted`, and both lanes begin at offset 0.
  public func localRestarted(epoch: UInt64) {
    localEpoch = epoch
    datagramNumber = 0
    beginAgain(inLaterEpoch: false)
  }

  /// Notes that a message of the other end has advanced a handshake of the encrypted session. That counts as progress
  /// of unfinished sends, but they fail after twice the delivery deadline without an acknowledgement.
  public func handshakeAdvanced(now: Instant) {
    for lane in Self.all { sender(lane).handshakeAdvanced(now: now) }
  }

  private func beginAgain(inLaterEpoch: Bool) {
    if inLaterEpoch {
      localEpoch += 1
      datagramNumber = 0
    }
    isUntouched = true
    for lane in Self.all {
      sender(lane).restart()
      receiver(lane).restart()
    }
  }

  /// Sets a new route. `pathMTU` is the payload size of a frame, clamped to `ChannelLimits.pathMTUMin … pathMTUMax`. If
  /// `oldPathLives` is true, the old path still delivers the segments in flight, so they are not retransmitted. If
  /// `oldPathLives` is false, all unacknowledged bytes are retransmitted at once.
  ///
  /// `hops` is the number of links on the path. On each link an urgent frame can wait for a bulk segment that is being
  /// sent. So bulk segments are shorter on a path of more than two links. The sum of the waits on all links then stays
  /// at the time of two frames of the maximum length.
  public func routeChanged(pathMTU: Int, hops: Int = 1, oldPathLives: Bool = false, now: Instant) {
    self.pathMTU = min(max(pathMTU, ChannelLimits.pathMTUMin), ChannelLimits.pathMTUMax)
    bulkMTU = max(min(2 * self.pathMTU / max(hops, 1), self.pathMTU), ChannelLimits.pathMTUMin)
    let hadRoute = hasRoute
    hasRoute = true
    for lane in Self.all {
      sender(lane).routeChanged(
        segmentBytes: mtu(lane) - Segment.headerBytes, oldPathLives: oldPathLives && hadRoute, now: now)
    }
  }

  /// Handles a change of the path beyond the next hop, which stays the same. Retransmits now instead of after a
  /// backed-off timeout.
  public func pathChanged(now: Instant) {
    guard hasRoute, !isClosed else { return }
    for lane in Self.all { sender(lane).pathChanged(now: now) }
  }

  /// Removes the route: nothing is sent until `routeChanged`. The delivery deadline of unfinished sends still applies.
  public func routeLost() { hasRoute = false }

  /// Closes the channel. Every unfinished send fails with `.closed`, and `nextCompletion` still returns the results.
  /// Later sends and received payloads are refused with `.closed`.
  public func close() {
    isClosed = true
    for lane in Self.all { sender(lane).failPending(.closed) }
  }

  // MARK: Payloads to the network

  /// Writes the next payload to the start of `buffer`. The buffer must have at least `ChannelLimits.pathMTUMin` bytes,
  /// and should have room for the path MTU. Returns nil if there is nothing to send now. Acknowledgements come first,
  /// then retransmissions, then new data. Within each kind, the interactive lane precedes the bulk lane.
  ///
  /// `interactiveOnly` excludes segments of the bulk lane. The owner sets `interactiveOnly` while the bulk queue of the
  /// link is full. Bulk data then waits in the channel, where interactive data can overtake the bulk data.
  /// Acknowledgements of both lanes are still returned.
  ///
  /// `isQueued` tells for each lane whether segments of the lane wait in the link's queue. While segments of a lane
  /// wait in that queue, new data of the lane is returned in full segments only. A shorter segment would only wait in
  /// the link's queue; in the channel, later messages can still fill the segment.
  ///
  /// `joins` tells for each lane whether a due acknowledgement may share a payload of type 38 with a segment of the
  /// lane.
  public func nextFrame(
    into buffer: UnsafeMutableRawBufferPointer, now: Instant, interactiveOnly: Bool = false,
    isQueued: (interactive: Bool, bulk: Bool) = (false, false), joins: (interactive: Bool, bulk: Bool) = (false, false)
  ) -> OutgoingPayload? {
    precondition(buffer.count >= ChannelLimits.pathMTUMin)
    guard hasRoute, !isClosed else { return nil }
    let epochs = EpochPair(destination: remoteEpoch, source: localEpoch)
    var head: (byteCount: Int, lane: Lane)?
    for lane in Self.all where head == nil {
      guard let next = receiver(lane).nextAcknowledgement(epochs: epochs, lane: lane) else { continue }
      next.encode(into: buffer)
      head = (next.byteCount, lane)
    }
    // An acknowledgement is joined only with a segment that would be sent directly after it.
    let mayLeave = (
      interactive: head == nil || joins.interactive && mtu(.interactive) >= ChannelLimits.joinedMTUMin,
      bulk: !interactiveOnly && (head == nil || joins.bulk && mtu(.bulk) >= ChannelLimits.joinedMTUMin)
    )
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[(head?.byteCount ?? 0)...])
    if let segment = nextSegment(mayLeave, isQueued, head: head?.byteCount ?? 0, epochs, into: rest, now) {
      guard let head else { return segment }
      return OutgoingPayload(type: .joined, byteCount: head.byteCount + segment.byteCount, lane: segment.lane)
    }
    return head.map { OutgoingPayload(type: .acknowledgement, byteCount: $0.byteCount, lane: $0.lane) }
  }

  /// Writes the next segment of a lane that `mayLeave` allows. `head` is the length of the acknowledgement before the
  /// segment in the same payload, 0 without one.
  private func nextSegment(
    _ mayLeave: (interactive: Bool, bulk: Bool), _ isQueued: (interactive: Bool, bulk: Bool), head: Int,
    _ epochs: EpochPair, into buffer: UnsafeMutableRawBufferPointer, _ now: Instant
  ) -> OutgoingPayload? {
    for lane in Self.all where lane == .interactive ? mayLeave.interactive : mayLeave.bulk {
      let dataMax = dataMax(lane, head: head, buffer.count)
      if let range = sender(lane).nextRetransmission(dataMax: dataMax, now: now) {
        return writeSegment(range, lane, epochs, into: buffer, now)
      }
    }
    for lane in Self.all where lane == .interactive ? mayLeave.interactive : mayLeave.bulk {
      let isQueued = lane == .interactive ? isQueued.interactive : isQueued.bulk
      let dataMax = dataMax(lane, head: head, buffer.count)
      if let range = sender(lane).nextNew(dataMax: dataMax, wholeOnly: isQueued, now: now) {
        return writeSegment(range, lane, epochs, into: buffer, now)
      }
    }
    return nil
  }

  private func dataMax(_ lane: Lane, head: Int, _ room: Int) -> UInt64 {
    UInt64(min(mtu(lane) - head, room) - Segment.headerBytes)
  }

  private func writeSegment(
    _ range: ByteRange, _ lane: Lane, _ epochs: EpochPair, into buffer: UnsafeMutableRawBufferPointer, _ now: Instant
  ) -> OutgoingPayload {
    let from = sender(lane)
    isUntouched = false
    Segment(epochs: epochs, lane: lane, timestamp: now.timestamp, offset: range.start).encodeHeader(into: buffer)
    let byteCount = Segment.headerBytes + Int(range.byteCount)
    from.ring.read(
      at: range.start, into: UnsafeMutableRawBufferPointer(rebasing: buffer[Segment.headerBytes..<byteCount]))
    from.counters.segmentsSent += 1
    from.counters.bytesSent += range.byteCount
    return OutgoingPayload(type: .segment, byteCount: byteCount, lane: lane)
  }

  // MARK: Time

  /// The time when `handleTimeout` is due; `.never` if no timer runs. After `handleTimeout(now)` the deadline is later
  /// than `now`, because a payload that waits for a link sets no deadline.
  public var nextDeadline: Instant {
    guard !isClosed else { return .never }
    var result = Instant.never
    for lane in Self.all {
      result = min(result, sender(lane).failureDeadline)
      guard hasRoute else { continue }
      result = min(result, sender(lane).pathDeadline, receiver(lane).deadline)
    }
    return result
  }

  /// Handles the timers that have expired at `now`. A call before the deadline is allowed. Rings that were unused for
  /// `ChannelLimits.ringRest` free their memory.
  public func handleTimeout(now: Instant) {
    guard !isClosed else { return }
    datagrams.rest(now: now)
    for lane in Self.all {
      sender(lane).rest(now: now)
      receiver(lane).rest(now: now)
      sender(lane).handleFailureTimeout(now: now)
      guard hasRoute else { continue }
      sender(lane).handlePathTimeout(now: now)
      receiver(lane).handleTimeout(now: now)
    }
  }

  /// The counters of one lane.
  public func statistics(_ lane: Lane) -> LaneStatistics {
    var result = sender(lane).statistics
    let received = receiver(lane).statistics
    result.acknowledgementsSent = received.acknowledgementsSent
    result.segmentsReceived = received.segmentsReceived
    result.bytesReceived = received.bytesReceived
    result.duplicatesReceived = received.duplicatesReceived
    result.unplacedReceived = received.unplacedReceived
    result.ringBytes += receiver(lane).ringBytes
    return result
  }

  private func mtu(_ lane: Lane) -> Int { lane == .bulk ? bulkMTU : pathMTU }

  private func sender(_ lane: Lane) -> LaneSender {
    switch lane {
    case .interactive: senders.0
    case .bulk: senders.1
    }
  }

  private func receiver(_ lane: Lane) -> LaneReceiver {
    switch lane {
    case .interactive: receivers.0
    case .bulk: receivers.1
    }
  }
}
