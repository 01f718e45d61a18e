import Frame
import Primitives

/// A link to one neighbour over one bearer, above an authenticated byte stream: hello, liveness and outgoing queues.
///
/// Sans-IO: `open`, `receive` and `handleTimeout` take events, and `pop` returns the bytes to send. `handleTimeout` is
/// due at `deadline`. The caller must check `state` after each of these calls.
///
/// A link does not fragment, because a byte stream carries frames of any length. The end nodes segment messages to the
/// frame size of the path.
public struct Link {
  /// The state of a link.
  public enum State: Equatable, Sendable {
    /// The slot is free.
    case idle
    /// This node's hello was queued, and the neighbour's hello has not arrived.
    case opening
    /// The link accepts frames of every type.
    case up
    /// The link is becoming a parked link, which is kept without a stream. This node queued a goodbye with
    /// `CloseReason.parked`. Frames that the neighbour sent before its own goodbye are still received, and frames for
    /// the neighbour wait. A resumed link without a hello in time is in this state too.
    case parking
    /// The link is parked: both ends keep its state without a stream. Frames for the neighbour wait until either end
    /// dials.
    case parked
    /// The link must be torn down. A goodbye to the neighbour may still be queued.
    case closed(CloseReason)
  }

  /// The timeout for the neighbour's hello, or for the goodbye with which it agrees to park the link.
  public static let helloTimeout = TimeSpan.seconds(5)
  /// A link is proven when a pong has arrived and the link has been up for this long.
  public static let provingTime = TimeSpan.seconds(2)

  public private(set) var state = State.idle
  /// The node at the other end of the link, which has proved its key.
  public private(set) var peer = NodeID.none
  public private(set) var bearer = BearerKind.ethernet
  /// Whether the neighbour dialled the stream.
  public private(set) var isInbound = false
  /// The boot epoch in the neighbour's hello. Like the next two properties, the boot epoch is valid once the link is
  /// up.
  public private(set) var peerEpoch: UInt64 = 0
  public private(set) var peerCapabilities = Capabilities.none
  public private(set) var peerName: DisplayName?
  /// The longest frame payload that both ends accept, in bytes.
  public private(set) var payloadBytesMax = Limits.framePayloadBytesFloor
  /// The time for which the neighbour's goodbye asked not to be dialled; 0 without a goodbye.
  public private(set) var retryAfterSeconds: UInt16 = 0
  /// The last measured round-trip time, or zero before the first measurement.
  public private(set) var roundTrip = TimeSpan(nanoseconds: 0)
  /// The measured cost of the link.
  public private(set) var meter = LinkMeter(.ethernet)
  /// Whether a pong has arrived and the link has been up for `provingTime`.
  public private(set) var isProven = false
  /// Whether a frame other than a hello has arrived since the link came up. A frame other than a hello shows that the
  /// link is up at the neighbour too.
  public private(set) var isMutual = false
  /// Whether the link was parked before this stream opened.
  public private(set) var isResumed = false
  /// Whether both ends have agreed to park the link. If so, every frame that the neighbour sent before has arrived.
  public private(set) var isParkingAgreed = false
  public private(set) var upSince = Instant.zero
  public private(set) var bytesIn: UInt64 = 0
  public private(set) var bytesOut: UInt64 = 0

  private var queue: FrameQueue
  /// The time at which the stream opened or the state `.parking` began.
  private var openedAt = Instant.zero
  /// Whether this node announced that relays may park its links.
  private var parks = false
  private var liveness = Liveness(.ethernet, now: .zero)
  private var pingSentAt = Instant.zero
  private var awaitsPong = false
  private var hasPonged = false
  private var stall = Stall()
  /// The number of bytes sent that no goodput measurement includes yet.
  private var unmeasuredBytes = 0

  /// `memory` has `FrameQueue.byteCount` bytes, for control frames. All other frames wait in `pool`.
  public init(_ memory: UnsafeMutableRawBufferPointer, _ pool: FramePool) { queue = FrameQueue(memory, pool) }

  /// The properties that this node announces in its hello.
  public struct Local {
    public var node: NodeID
    public var epoch: UInt64
    public var capabilities: Capabilities
    public var name: DisplayName
    public init(node: NodeID, epoch: UInt64, capabilities: Capabilities, name: DisplayName) {
      self.node = node
      self.epoch = epoch
      self.capabilities = capabilities
      self.name = name
    }
  }

  /// The longest frame payload that this node accepts over a bearer, in bytes. Slow bearers use short frames, so an
  /// urgent frame does not wait long for a bulk frame: 4 KiB take 33 ms at 1 Mbit/s.
  public static func payloadBytesMax(over bearer: BearerKind) -> Int {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: 4_096
    case .ethernet, .wifi, .wifiDirect, .loopback: Limits.framePayloadBytesMax
    }
  }

  /// Opens the link on an authenticated stream, whose other end has proved the key of `peer`. Queues the hello.
  public mutating func open(
    peer: NodeID, bearer: BearerKind, isInbound: Bool, local: Local, now: Instant
  ) {
    queue.removeAll()
    self.peer = peer
    self.bearer = bearer
    peerEpoch = 0
    peerCapabilities = .none
    peerName = nil
    roundTrip = TimeSpan(nanoseconds: 0)
    payloadBytesMax = Limits.framePayloadBytesFloor
    queue.frameBytesMax = FrameHeader.byteCount + payloadBytesMax
    upSince = now
    hasPonged = false
    isProven = false
    isResumed = false
    isParkingAgreed = false
    meter = LinkMeter(bearer)
    begin(isInbound, local, now)
  }

  /// Opens a parked link on a new stream. The properties from the neighbour's last hello and the waiting frames are
  /// kept.
  public mutating func resume(isInbound: Bool, local: Local, now: Instant) {
    isResumed = true
    begin(isInbound, local, now)
  }

  private mutating func begin(_ isInbound: Bool, _ local: Local, _ now: Instant) {
    self.isInbound = isInbound
    retryAfterSeconds = 0
    bytesIn = 0
    bytesOut = 0
    unmeasuredBytes = 0
    openedAt = now
    liveness = Liveness(bearer, now: now)
    stall = Stall()
    pingSentAt = now
    awaitsPong = false
    parks = local.capabilities.contains(.parks)
    isMutual = false
    state = .opening
    let hello = Hello(
      payloadBytesMax: UInt16(Self.payloadBytesMax(over: bearer)), capabilities: local.capabilities,
      epoch: local.epoch, node: local.node, name: local.name)
    enqueue(.hello, hello.byteCount, local.node) { output in hello.write(to: &output) }
  }

  /// Sets `isMutual`, because a frame other than a hello has arrived.
  public mutating func confirm() { isMutual = true }

  /// Handles a hello, ping, pong or goodbye from the neighbour. Replies are queued, and `state` may change.
  ///
  /// Throws the reason if the frame is rejected. `state` may have changed in that case too.
  public mutating func receive(
    _ header: FrameHeader, _ payload: RawSpan, _ type: FrameType, local: NodeID, now: Instant
  ) throws(FrameError) {
    switch type {
    case .hello: try receiveHello(header, payload, local, now)
    case .ping:
      // This node's goodbye was its last frame, so the ping gets no answer.
      if state == .parking { return }
      if state != .up || payload.byteCount != Self.pingByteCount { throw .unexpected }
      _ = append(
        FrameHeader(
          type: .pong, priority: .control, payloadByteCount: payload.byteCount, source: local, identifier: 0),
        payload, from: FramePool.ownIngress)
    case .pong:
      var reader = ByteReader(payload, orThrow: FrameError.truncated)
      let sentAt = Instant(nanoseconds: try reader.u64())
      // The neighbour can put any time into a pong, so only the time of the outstanding ping is accepted.
      if state == .parking { return }
      if state != .up || !awaitsPong || sentAt != pingSentAt || sentAt > now { throw .unexpected }
      awaitsPong = false
      roundTrip = now - sentAt
      hasPonged = true
      liveness.answered(after: roundTrip)
      prove(now)
    case .goodbye:
      let goodbye = try Goodbye(payload)
      retryAfterSeconds = goodbye.retryAfterSeconds
      if goodbye.reason == .parked && isParkable(local, now) {
        isParkingAgreed = true
      } else {
        state = .closed(goodbye.reason)
      }
    case .request, .advertisement, .denyList, .segment, .acknowledgement, .datagram, .reset, .handshake, .sealed,
      .joined:
      throw .unexpected
    }
  }

  /// Records that bytes of any kind arrived.
  public mutating func arrived(_ byteCount: Int, now: Instant) {
    bytesIn &+= UInt64(byteCount)
    liveness.arrived(now: now)
  }

  /// Records that a complete frame arrived, which proves that the neighbour is alive.
  public mutating func noteReceived(now: Instant) { liveness.noteReceived(now: now) }

  /// Records that a complete frame of `byteCount` bytes arrived in one piece.
  public mutating func noteReceived(_ byteCount: Int, now: Instant) {
    arrived(byteCount, now: now)
    noteReceived(now: now)
  }

  /// Queues a frame from `ingress`, which is a link slot or `FramePool.ownIngress`. `isRelayed` means that the frame's
  /// source is not the neighbour that delivered it. Returns false if the frame was dropped; the pool counts the reason.
  public mutating func append(
    _ header: FrameHeader, _ payload: RawSpan, from ingress: Int, isRelayed: Bool = false
  ) -> Bool {
    queue.append(header, payload, from: ingress, isRelayed: isRelayed)
  }

  /// Closes the link and queues a goodbye, which `pop` still returns.
  public mutating func close(_ reason: CloseReason, retryAfterSeconds: UInt16, local: NodeID) {
    switch state {
    case .idle, .closed: return
    // A goodbye was queued already, or there is no stream that could carry one.
    case .parking, .parked: queue.removeAll()
    case .opening, .up:
      queue.removeAll()
      let goodbye = Goodbye(reason: reason, retryAfterSeconds: retryAfterSeconds)
      enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    }
    state = .closed(reason)
  }

  /// Asks the neighbour to park the link and not to dial for `retryAfterSeconds`, or agrees to the neighbour's request.
  /// The stream stays open until both nodes have agreed.
  public mutating func park(retryAfterSeconds: UInt16, local: NodeID, now: Instant) {
    let goodbye = Goodbye(reason: .parked, retryAfterSeconds: retryAfterSeconds)
    enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    state = .parking
    isParkingAgreed = false
    openedAt = now
  }

  /// Whether the neighbour's goodbye with `CloseReason.parked` is valid. This goodbye is valid as an answer to this
  /// node's own goodbye, or from a relay if this node may be parked. A request of a relay is accepted at once.
  private mutating func isParkable(_ local: NodeID, _ now: Instant) -> Bool {
    if state == .parking { return true }
    guard state == .up, parks, peerCapabilities.contains(.relay) else { return false }
    park(retryAfterSeconds: 0, local: local, now: now)
    return true
  }

  /// Parks the link after its stream has closed. The state must be `.parking`, or `.opening` on a resumed link. Returns
  /// false if frames may have been lost.
  public mutating func rest() -> Bool {
    let isWhole = isParkingAgreed && queue.controlByteCount == 0
    queue.removeControl()
    state = .parked
    return isWhole
  }

  /// Whether frames from the neighbour are accepted.
  public var isReceiving: Bool {
    switch state {
    case .up, .parking: true
    case .idle, .opening, .closed, .parked: false
    }
  }
  /// Whether the node at the other end is a neighbour of this node: the link is up, or is kept without a stream.
  public var isStanding: Bool {
    switch state {
    case .up, .parking, .parked: true
    case .opening: isResumed
    case .idle, .closed: false
    }
  }

  /// Frees the slot after the stream has closed.
  public mutating func reset() {
    queue.removeAll()
    state = .idle
    peer = .none
  }

  /// The time at which `handleTimeout` is due; `.never` without a timer.
  public var deadline: Instant {
    switch state {
    case .idle, .closed, .parked: .never
    case .opening, .parking: openedAt + Self.helloTimeout
    case .up: min(liveness.deadline, provenDue)
    }
  }

  /// Whether `deadline` can differ from `.never`.
  public var isTimed: Bool {
    switch state {
    case .opening, .parking, .up: true
    case .idle, .closed, .parked: false
    }
  }

  private var provenDue: Instant { hasPonged && !isProven ? upSince + Self.provingTime : .never }

  /// Queues a ping if one is due, or closes a dead link. `isHeld`: whether bytes wait that the stream does not accept.
  public mutating func handleTimeout(local: NodeID, now: Instant, isHeld: Bool = false) {
    if deadline > now { return }
    if state == .opening && isResumed {
      // The caller closes the stream in this state, and the link stays parked.
      state = .parking
      openedAt = now
      return
    }
    guard state == .up else { return close(.timedOut, retryAfterSeconds: 0, local: local) }
    prove(now)
    meter.review(now: now)
    let due = liveness.due(now: now)
    if due == .nothing { return }
    let wasExcused = stall.isExcuse
    stall.look(
      isBlocked: bearer == .bluetoothLE && (isHeld || queue.controlByteCount > 0), bytesOut: bytesOut, now: now)
    if let end = stall.end {
      if end <= now { return close(.timedOut, retryAfterSeconds: 0, local: local) }
      if due == .death {
        stall.excuse()
        return liveness.excuse(until: end)
      }
      // The last ping is still queued.
      if awaitsPong { return liveness.pingSent(now: now) }
    } else if due == .death {
      // The stream has only just accepted bytes again, so the ping may have been sent late.
      if wasExcused { return liveness.excuse(until: now + Liveness.answerMax) }
      return close(.timedOut, retryAfterSeconds: 0, local: local)
    }
    sendPing(local, now)
  }

  /// Whether the neighbour accepts no frames, and is not considered dead yet because its radio responds.
  public var isStalled: Bool { stall.isExcuse }
  /// The time for which the neighbour has accepted no frames; zero while it accepts frames.
  public func stalledSpan(now: Instant) -> TimeSpan { stall.span(now: now) }

  /// Ends a stall, because the stream accepts frames again. The queued ping is sent first, so the timeout for its
  /// answer begins now.
  public mutating func goesOn(now: Instant) {
    stall = Stall()
    liveness.pingSent(now: now)
  }

  /// Queues a ping if one is due within `span`. Returns whether a ping was queued.
  public mutating func pingEarly(dueWithin span: TimeSpan, local: NodeID, now: Instant) -> Bool {
    guard state == .up, liveness.isPingDue(within: span, now: now) else { return false }
    sendPing(local, now)
    return true
  }

  /// Queues a ping unless another ping awaits its pong. Returns whether a ping was queued.
  public mutating func pingNow(local: NodeID, now: Instant) -> Bool {
    guard state == .up, !awaitsPong else { return false }
    sendPing(local, now)
    return true
  }

  private mutating func prove(_ now: Instant) {
    if provenDue <= now { isProven = true }
  }

  /// Records that the stream has accepted the bytes that `pop` returned since the last call. If more frames are queued,
  /// these bytes are part of a goodput measurement. Returns true if the cost changed.
  public mutating func measureGoodput(now: Instant) -> Bool {
    defer { unmeasuredBytes = 0 }
    return meter.sent(unmeasuredBytes, isBusy: hasFrames, now: now)
  }

  /// Moves complete queued frames into `output`, most urgent first: at most `framesMax` frames, and in all at most the
  /// link's maximum frame length. Routed frames wait until the link is up. Returns the number of bytes written.
  public mutating func pop(into output: UnsafeMutableRawBufferPointer, framesMax: Int = .max) -> Int {
    let written = queue.pop(into: output, framesMax: framesMax, controlOnly: state != .up)
    passed(written)
    return written
  }

  /// Records that the stream accepted a frame of `byteCount` bytes that bypassed the queue.
  public mutating func passed(_ byteCount: Int) {
    bytesOut &+= UInt64(byteCount)
    unmeasuredBytes += byteCount
  }

  public var queuedByteCount: Int { queue.byteCount }
  /// Whether another advertisement should be queued. Only few advertisements wait in this queue. The other
  /// advertisements wait in the link-state database, where newer advertisements replace them.
  public var takesAdvertisement: Bool { state == .up && queue.controlByteCount < Self.controlBytesAhead }
  public var hasFrames: Bool { !queue.isEmpty }
  /// Whether routed frames from `ingress` are queued. `ingress` is a link slot or `FramePool.ownIngress`.
  public func hasFrames(from ingress: Int) -> Bool { queue.hasFrames(from: ingress) }
  /// The number of bytes queued with one priority.
  public func queuedByteCount(_ priority: FramePriority) -> Int { queue.byteCount(priority) }
  /// Whether the queue has room for a frame of maximum length from this node.
  public var hasRoomForOwn: Bool { queue.hasRoom(for: FramePool.ownIngress) }
  /// The number of bytes queued with one priority in frames from this node itself.
  public func ownQueuedByteCount(_ priority: FramePriority) -> Int { queue.ownByteCount(priority) }
  /// Whether frames of one priority from this node to `destination` are queued.
  public func hasOwnQueued(_ priority: FramePriority, to destination: NodeID) -> Bool {
    queue.hasOwn(priority, to: destination)
  }

  private static let pingByteCount = 8
  /// The number of queued control bytes from which no further advertisement is queued. The rest of the control queue
  /// has room for the longest advertisement, pings and pongs.
  private static let controlBytesAhead = 1_024

  private mutating func receiveHello(
    _ header: FrameHeader, _ payload: RawSpan, _ local: NodeID, _ now: Instant
  ) throws(FrameError) {
    if state != .opening { throw .unexpected }
    let hello: Hello
    do {
      hello = try Hello(payload)
    } catch {
      close(error == .unknownVersion ? .unsupportedVersion : .protocolError, retryAfterSeconds: 0, local: local)
      throw error
    }
    if hello.node != peer || header.source != peer {
      close(.identityMismatch, retryAfterSeconds: 0, local: local)
      throw .wrongSignature
    }
    peerEpoch = hello.epoch
    peerCapabilities = hello.capabilities
    peerName = hello.name
    let payloadBytesBefore = payloadBytesMax
    payloadBytesMax = min(Int(hello.payloadBytesMax), Self.payloadBytesMax(over: bearer))
    // The frames that waited may exceed the new limit.
    if isResumed && payloadBytesMax < payloadBytesBefore { queue.removeAll() }
    queue.frameBytesMax = FrameHeader.byteCount + payloadBytesMax
    upSince = now
    state = .up
    isParkingAgreed = false
    // An immediate ping measures the round-trip time early.
    sendPing(local, now)
  }

  private mutating func sendPing(_ local: NodeID, _ now: Instant) {
    pingSentAt = now
    awaitsPong = true
    liveness.pingSent(now: now)
    enqueue(.ping, Self.pingByteCount, local) { output in output.append(bigEndian: now.nanoseconds) }
  }

  private mutating func enqueue(
    _ type: FrameType, _ byteCount: Int, _ local: NodeID, _ write: (inout OutputRawSpan) -> Void
  ) {
    var payload = InlineArray<128, UInt8>(repeating: 0)
    var span = payload.mutableSpan
    span.withUnsafeMutableBytes { bytes in
      var output = OutputRawSpan(buffer: bytes, initializedCount: 0)
      write(&output)
    }
    // The control queue always has room here, because it was just emptied, or at most one ping is outstanding.
    _ = append(
      FrameHeader(type: type, priority: .control, payloadByteCount: byteCount, source: local, identifier: 0),
      payload.span.bytes.extracting(0..<byteCount), from: FramePool.ownIngress)
  }
}
