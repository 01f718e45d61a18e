import Primitives

/// Reliable delivery between this node and one other, through whatever loses, delays, doubles and reorders
/// frames between them.
///
/// A channel carries two lanes, each an ordered stream of messages in either direction. What one end sends
/// arrives once, whole and in the order of its lane, or its sender learns that it may not have. Sequence numbers
/// count bytes, so a change of the path MTU merely cuts later segments differently.
///
/// **Drain rule.** The channel does no I/O and reads no clock. After every call that changes it (`send`,
/// `receive…`, `handleTimeout`, `routeChanged`, `remoteRestarted`, `takeMessage`, `nextMessage`) the owner
/// 1. calls `nextFrame` as long as the way to the other node takes frames, until it answers nil;
/// 2. calls `nextCompletion` until it answers nil;
/// 3. takes messages with `nextMessage` or `takeMessage` as far as the application wants them: what it leaves
///    closes the window of its lane, and nothing else;
/// 4. sets its timer to `nextDeadline` and then calls `handleTimeout`.
/// When a link takes frames again it goes through the same steps.
///
/// **Epochs.** An epoch is one life of one end. An owner that forgets a channel and later makes it anew without
/// having restarted must give it a later `localEpoch`, because both streams begin at 0 again. For the same reason
/// a channel that goes back to an earlier epoch of the other end, which lost its counter or has a double, takes a later
/// `localEpoch` by itself, and so does one whose other end announces a message longer than any: no pair of epochs ever
/// has two beginnings.
///
/// **Sealing.** Payloads are written and read here in the clear. End-to-end sealing goes around `nextFrame` and
/// the `receive…` calls: whoever seals hands in a path MTU that is smaller by its overhead, and opens a payload
/// before it hands it in. Nothing in this module knows whether it happens.
///
/// **Datagrams.** Beside the lanes a message may be sent unreliably: `writeDatagram` makes the payload, which its owner
/// sends at once or drops, and `nextDatagram` gives what arrived.
///
/// **Memory.** Rings begin with nothing, grow with what is in flight, and give their memory back when they were empty
/// for a while (`ChannelLimits`, "Memory"). `nextMessage` makes the array it answers with; `takeMessage` makes nothing.
public final class Channel {
  public private(set) var localEpoch: UInt64
  public private(set) var remoteEpoch: UInt64

  /// What a channel takes at most without its rings: objects, and the sends of both lanes whose completion was not taken.
  public static let recordBytesMax =
    2 * (UnfinishedSends.bytesMax + MemoryLayout<LossRecovery>.stride + MemoryLayout<RangeSet>.stride) + 4_096

  // Made once: iterating must not allocate.
  private static let all: [Lane] = [.interactive, .bulk]
  private static let interactive: [Lane] = [.interactive]

  private let senders: (LaneSender, LaneSender)
  private let receivers: (LaneReceiver, LaneReceiver)
  private var datagrams: DatagramInbox
  private var datagramNumber: UInt64 = 0
  private var pathMTU = ChannelLimits.pathMTUMin
  private var bulkMTU = ChannelLimits.pathMTUMin
  private var hasRoute = false
  public private(set) var isClosed = false
  private var messagesTaken: UInt64 = 0

  /// Without a route until `routeChanged` names one. Channels of one node share a `budget` for their rings.
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

  /// Takes a message of `kind` to be delivered in `lane`, all of it or nothing. Throws `.full` for back-pressure,
  /// `.tooLong` above `ChannelLimits.messageBytesMax`, `.closed`.
  public func send(
    kind: UInt8, _ message: RawSpan, lane: Lane, now: Instant
  ) throws(SendRefusal) -> MessageID {
    guard !isClosed else { throw .closed }
    let id = MessageID(number: messagesTaken)
    try sender(lane).send(id, kind: kind, message, now: now)
    messagesTaken += 1
    return id
  }

  /// Whether `send` would take a message of `byteCount` bytes now.
  public func canSend(byteCount: Int, lane: Lane) -> Bool { !isClosed && sender(lane).canSend(byteCount: byteCount) }

  /// The end of a send; every send that was taken has exactly one, in the order of its lane.
  public func nextCompletion() -> Completion? {
    for lane in Self.all {
      if let next = sender(lane).nextCompletion() {
        return Completion(message: next.id, lane: lane, outcome: next.outcome)
      }
    }
    return nil
  }

  /// Whether a send has not ended.
  public var hasUnfinishedSends: Bool {
    Self.all.contains { sender($0).failureDeadline != .never }
  }

  /// Whether `nextCompletion` still has the end of a send to give, now or later. A channel without any may be forgotten:
  /// nobody waits for its word.
  public var hasUntakenCompletions: Bool { Self.all.contains { sender($0).hasUntakenCompletions } }

  // MARK: Receiving messages

  /// The message that `takeMessage` would take from `lane`.
  public func pendingMessage(_ lane: Lane) -> PendingMessage? {
    guard let next = receiver(lane).pending else { return nil }
    return PendingMessage(kind: next.kind, lane: lane, byteCount: next.byteCount)
  }

  /// Takes the pending message of `lane` into the start of `buffer` and opens the window by as much. Answers
  /// nil, and takes nothing, when none is pending or the buffer is shorter than it.
  public func takeMessage(_ lane: Lane, into buffer: UnsafeMutableRawBufferPointer) -> PendingMessage? {
    guard let pending = pendingMessage(lane), pending.byteCount <= buffer.count else { return nil }
    receiver(lane).take(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<pending.byteCount]))
    return pending
  }

  /// Takes the next message of `lane` and opens the window by as much.
  public func nextMessage(_ lane: Lane) -> ReceivedMessage? {
    guard let pending = pendingMessage(lane) else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: pending.byteCount) { buffer, count in
      receiver(lane).take(
        into: UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: pending.byteCount))
      count = pending.byteCount
    }
    return ReceivedMessage(kind: pending.kind, lane: lane, bytes: bytes)
  }

  /// Takes the next message, interactive before bulk.
  public func nextMessage() -> ReceivedMessage? { nextMessage(.interactive) ?? nextMessage(.bulk) }

  // MARK: Datagrams

  /// The longest message that a datagram carries on this path; nil without a route.
  public var datagramBytesMax: Int? { hasRoute && !isClosed ? pathMTU - Datagram.headerBytes : nil }

  /// Writes a payload of frame type 34 with the message to the start of `buffer`, which has room for the path MTU, and
  /// answers its length; it is to be sent at once or never. The message is no longer than `datagramBytesMax`.
  public func writeDatagram(kind: UInt8, _ message: RawSpan, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let longest = datagramBytesMax else { preconditionFailure("there is no route") }
    precondition(message.byteCount <= longest && buffer.count >= pathMTU)
    datagramNumber += 1
    datagrams.countSent()
    Datagram(epochs: EpochPair(destination: remoteEpoch, source: localEpoch), kind: kind, number: datagramNumber)
      .encodeHeader(into: buffer)
    message.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(rebasing: buffer[Datagram.headerBytes...]).copyMemory(from: bytes)
    }
    return Datagram.headerBytes + message.byteCount
  }

  /// Kind and length of what `nextDatagram` would answer.
  public var pendingDatagram: (kind: UInt8, byteCount: Int)? { datagrams.pending }

  /// Takes the next message that was sent unreliably, in the order of arrival. Of what is not read the oldest is
  /// dropped when newer ones need the room.
  public func nextDatagram() -> ReceivedDatagram? { datagrams.next() }

  public var datagramStatistics: DatagramStatistics { datagrams.statistics }

  /// A payload of frame type 34. `.alreadyReceived` for one that came before or is 64 behind the newest.
  public func receiveDatagram(_ payload: RawSpan, now: Instant) throws(ChannelRefusal) {
    guard !isClosed else { throw .closed }
    let view: DatagramView
    let datagram: Datagram
    do throws(PayloadRefusal) {
      view = try DatagramView(payload)
      datagram = try view.checked()
    } catch { throw .malformed(error) }
    try check(datagram.epochs)
    try datagrams.receive(datagram, view.message, now: now)
  }

  // MARK: Payloads from the network

  /// A payload of frame type 32. A refusal has changed nothing; `.otherDestinationEpoch` asks the owner to send
  /// back a `Reset`.
  public func receiveSegment(_ payload: RawSpan, now: Instant) throws(ChannelRefusal) {
    guard !isClosed else { throw .closed }
    let view: SegmentView
    let segment: Segment
    do throws(PayloadRefusal) {
      view = try SegmentView(payload)
      segment = try view.checked()
    } catch { throw .malformed(error) }
    try check(segment.epochs)
    do throws(ChannelRefusal) {
      try receiver(segment.lane).receive(segment, view.data, now: now)
    } catch {
      // Whoever sent it will send it again, and nothing behind it can be found: only a new beginning helps.
      if case .messageTooLong = error { beginAgain(inLaterEpoch: true) }
      throw error
    }
  }

  /// A payload of frame type 33.
  public func receiveAcknowledgement(_ payload: RawSpan, now: Instant) throws(ChannelRefusal) {
    guard !isClosed else { throw .closed }
    let acknowledgement: Acknowledgement
    do throws(PayloadRefusal) {
      acknowledgement = try AcknowledgementView(payload).checked()
    } catch { throw .malformed(error) }
    try check(acknowledgement.epochs)
    try sender(acknowledgement.lane).receive(acknowledgement, now: now)
  }

  /// A payload of frame type 35. When it counts, the channel has begun again with the other end's new epoch, as
  /// after `remoteRestarted`.
  public func receiveReset(_ payload: RawSpan, now: Instant) throws(ChannelRefusal) {
    guard !isClosed else { throw .closed }
    let reset: Reset
    do throws(PayloadRefusal) { reset = try Reset(payload) } catch { throw .malformed(error) }
    guard reset.meantEpoch == remoteEpoch else { throw .staleReset }
    remoteRestarted(epoch: reset.currentEpoch)
  }

  private func check(_ epochs: EpochPair) throws(ChannelRefusal) {
    guard epochs.destination == localEpoch else { throw .otherDestinationEpoch(epochs.destination) }
    guard epochs.source == remoteEpoch else { throw .otherSourceEpoch(epochs.source) }
  }

  // MARK: Life and route

  /// The other end lives under a new epoch: unfinished sends fail with `.peerRestarted` and both lanes begin at
  /// offset 0. Whole messages of its former life stay to be read. The same epoch again changes nothing.
  public func remoteRestarted(epoch: UInt64) {
    guard epoch != remoteEpoch else { return }
    let isEarlier = epoch < remoteEpoch
    remoteEpoch = epoch
    datagrams.restart()
    beginAgain(inLaterEpoch: isEarlier)
  }

  private func beginAgain(inLaterEpoch: Bool) {
    if inLaterEpoch {
      localEpoch += 1
      datagramNumber = 0
    }
    for lane in Self.all {
      sender(lane).restart()
      receiver(lane).restart()
    }
  }

  /// There is a route, and it is another than before. `pathMTU` counts payload bytes of a
  /// frame and is held within `ChannelLimits.pathMTUMin … pathMTUMax`. `oldPathLives`: what is under way still arrives, and
  /// is not sent again; else what is unacknowledged is sent again at once.
  ///
  /// What is urgent may wait on each of `hops` links for a bulk segment that is being sent. On a path of more than two
  /// these are cut shorter, so that this adds up to the time of two frames of the longest kind.
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

  /// The route is the one that `routeChanged` named, but something on the way has changed: what was sent in vain is tried
  /// again now and not after its timeout.
  public func pathChanged(now: Instant) {
    guard hasRoute, !isClosed else { return }
    for lane in Self.all { sender(lane).pathChanged(now: now) }
  }

  /// There is no route: nothing is sent and nothing sent again until `routeChanged`. The delivery deadline runs on.
  public func routeLost() { hasRoute = false }

  /// Every unfinished send fails with `.closed`, to be taken with `nextCompletion`; everything else is refused.
  public func close() {
    isClosed = true
    for lane in Self.all { sender(lane).failPending(.closed) }
  }

  // MARK: Payloads to the network

  /// Writes the next payload to the start of `buffer`, which has room for `ChannelLimits.pathMTUMin` bytes at
  /// least and for the path MTU ideally. Acknowledgements come first, then what was lost, then new data; within
  /// each interactive before bulk. `interactiveOnly` is for a link whose bulk queue is full: bulk data waits here, where
  /// interactive overtakes it; acknowledgements of both lanes still come. Nil: nothing now.
  public func nextFrame(
    into buffer: UnsafeMutableRawBufferPointer, now: Instant, interactiveOnly: Bool = false
  ) -> OutgoingPayload? {
    precondition(buffer.count >= ChannelLimits.pathMTUMin)
    guard hasRoute, !isClosed else { return nil }
    let epochs = EpochPair(destination: remoteEpoch, source: localEpoch)
    let lanes = interactiveOnly ? Self.interactive : Self.all
    for lane in Self.all {
      if let next = receiver(lane).nextAcknowledgement(epochs: epochs, lane: lane) {
        next.encode(into: buffer)
        return OutgoingPayload(type: .acknowledgement, byteCount: next.byteCount, lane: lane)
      }
    }
    for lane in lanes {
      let dataMax = UInt64(min(mtu(lane), buffer.count) - Segment.headerBytes)
      if let range = sender(lane).nextRetransmission(dataMax: dataMax, now: now) {
        return writeSegment(range, lane, epochs, into: buffer, now)
      }
    }
    for lane in lanes {
      let dataMax = UInt64(min(mtu(lane), buffer.count) - Segment.headerBytes)
      if let range = sender(lane).nextNew(dataMax: dataMax, now: now) {
        return writeSegment(range, lane, epochs, into: buffer, now)
      }
    }
    return nil
  }

  private func writeSegment(
    _ range: ByteRange, _ lane: Lane, _ epochs: EpochPair, into buffer: UnsafeMutableRawBufferPointer, _ now: Instant
  ) -> OutgoingPayload {
    let from = sender(lane)
    Segment(epochs: epochs, lane: lane, timestamp: now.timestamp, offset: range.start).encodeHeader(into: buffer)
    let byteCount = Segment.headerBytes + Int(range.byteCount)
    from.ring.read(
      at: range.start, into: UnsafeMutableRawBufferPointer(rebasing: buffer[Segment.headerBytes..<byteCount]))
    from.counters.segmentsSent += 1
    from.counters.bytesSent += range.byteCount
    return OutgoingPayload(type: .segment, byteCount: byteCount, lane: lane)
  }

  // MARK: Time

  /// When `handleTimeout` is due; `.never` when nothing is. After `handleTimeout(now)` it lies after `now`: what
  /// waits for a link to take it sets no deadline.
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

  /// Time has come to `now`. Early calls are harmless, and let rings rest that nobody uses.
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

  /// Counters of one lane.
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
