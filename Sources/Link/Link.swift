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
    /// The hello was sent, and the neighbour's has not arrived.
    case opening
    /// Frames of every type are accepted.
    case up
    /// This node sent a goodbye with `CloseReason.parked`. Frames that the neighbour sent before its own goodbye are
    /// still received, and frames for it wait. A resumed link whose hello timed out is in this state too.
    case parking
    /// Both ends keep the link's state without a stream. Frames for the neighbour wait until one end dials.
    case parked
    /// The link must be torn down. A goodbye may still be queued.
    case closed(CloseReason)
  }

  /// The timeout for the neighbour's hello, or for its agreement to be parked.
  public static let helloTimeout = TimeSpan.seconds(5)
  /// A link is proven when a pong has arrived and the link has been up for this long.
  public static let provingTime = TimeSpan.seconds(2)

  public private(set) var state = State.idle
  /// The node that the link's certificate authenticates.
  public private(set) var peer = NodeID.none
  public private(set) var bearer = BearerKind.ethernet
  /// Whether the neighbour dialled.
  public private(set) var isInbound = false
  /// From the neighbour's hello. Valid once the link is up.
  public private(set) var peerEpoch: UInt64 = 0
  public private(set) var peerCapabilities = Capabilities.none
  public private(set) var peerName: DisplayName?
  /// The longest frame payload that both ends accept, in bytes.
  public private(set) var payloadBytesMax = Limits.framePayloadBytesFloor
  /// The time for which the neighbour's goodbye asked not to be dialled.
  public private(set) var retryAfterSeconds: UInt16 = 0
  /// The last measured round-trip time, or zero before the first measurement.
  public private(set) var roundTrip = TimeSpan(nanoseconds: 0)
  /// The measured cost of the link.
  public private(set) var meter = LinkMeter(.ethernet)
  /// Whether a pong has arrived and the link has been up for `provingTime`.
  public private(set) var isProven = false
  /// Whether a frame other than a hello has arrived since the link came up. The neighbour has it up too, then.
  public private(set) var isMutual = false
  /// Whether the link was parked before this stream opened.
  public private(set) var isResumed = false
  /// Whether both ends agreed to park. Everything that either sent before has arrived, then.
  public private(set) var isParkingAgreed = false
  public private(set) var upSince = Instant.zero
  public private(set) var bytesIn: UInt64 = 0
  public private(set) var bytesOut: UInt64 = 0

  private var queue: FrameQueue
  /// The time at which the stream opened or parking began.
  private var openedAt = Instant.zero
  /// Whether the neighbour may park this node.
  private var parks = false
  private var liveness = Liveness(.ethernet, now: .zero)
  private var pingSentAt = Instant.zero
  private var awaitsPong = false
  private var hasPonged = false
  private var stall = Stall()
  /// The bytes that `pop` returned and that no goodput measurement includes yet.
  private var unmeasuredBytes = 0

  /// `memory` has `FrameQueue.byteCount` bytes for control frames. All other frames wait in the pool.
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
  /// urgent frame does not wait long for a bulk one: 4 KiB take 33 ms at 1 Mbit/s.
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

  /// Opens a parked link on a new stream. The neighbour's properties and the waiting frames are kept.
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

  /// Sets `isMutual`.
  public mutating func confirm() { isMutual = true }

  /// Handles a frame from the neighbour that is not routed. Replies are queued, and `state` may change.
  ///
  /// Throws the reason if the frame is rejected. `state` is valid in that case too.
  public mutating func receive(
    _ header: FrameHeader, _ payload: RawSpan, _ type: FrameType, local: NodeID, now: Instant
  ) throws(FrameRefusal) {
    switch type {
    case .hello: try receiveHello(header, payload, local, now)
    case .ping:
      // The goodbye was this node's last frame.
      if state == .parking { return }
      if state != .up || payload.byteCount != Self.pingByteCount { throw .unexpected }
      _ = append(
        FrameHeader(
          type: .pong, priority: .control, payloadByteCount: payload.byteCount, source: local, identifier: 0),
        payload, from: FramePool.ownIngress)
    case .pong:
      var reader = ByteReader(payload, orThrow: FrameRefusal.truncated)
      let sentAt = Instant(nanoseconds: try reader.u64())
      // The neighbour can put any time into its pong, so only that of the outstanding ping counts.
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

  /// Records that a whole frame arrived, which proves that the neighbour is alive.
  public mutating func heard(now: Instant) { liveness.heard(now: now) }

  /// Records that a whole frame of this length arrived in one piece.
  public mutating func heard(_ byteCount: Int, now: Instant) {
    arrived(byteCount, now: now)
    heard(now: now)
  }

  /// Queues a frame from `ingress`: a link slot or `FramePool.ownIngress`. `isRelayed` means that its source is not the
  /// neighbour that delivered it. Returns false if the frame was dropped; the pool counts the reason.
  public mutating func append(
    _ header: FrameHeader, _ payload: RawSpan, from ingress: Int, isRelayed: Bool = false
  ) -> Bool {
    queue.append(header, payload, from: ingress, isRelayed: isRelayed)
  }

  /// Closes the link and queues a goodbye, which `pop` still returns.
  public mutating func close(_ reason: CloseReason, retryAfterSeconds: UInt16, local: NodeID) {
    switch state {
    case .idle, .closed: return
    // The goodbye was sent already, or no stream exists for it.
    case .parking, .parked: queue.removeAll()
    case .opening, .up:
      queue.removeAll()
      let goodbye = Goodbye(reason: reason, retryAfterSeconds: retryAfterSeconds)
      enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    }
    state = .closed(reason)
  }

  /// Asks the neighbour to park the link and not to dial for some seconds, or agrees to its request. The stream stays
  /// open until both have agreed.
  public mutating func park(retryAfterSeconds: UInt16, local: NodeID, now: Instant) {
    let goodbye = Goodbye(reason: .parked, retryAfterSeconds: retryAfterSeconds)
    enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    state = .parking
    isParkingAgreed = false
    openedAt = now
  }

  /// Whether the neighbour's parking goodbye is valid: it answers this node's, or comes from a relay to a node that may
  /// be parked.
  private mutating func isParkable(_ local: NodeID, _ now: Instant) -> Bool {
    if state == .parking { return true }
    guard state == .up, parks, peerCapabilities.contains(.relay) else { return false }
    park(retryAfterSeconds: 0, local: local, now: now)
    return true
  }

  /// Parks a link in `.parking`, or a resumed one in `.opening`, whose stream has closed. Returns false if frames may
  /// have been lost.
  public mutating func rest() -> Bool {
    let isWhole = isParkingAgreed && queue.controlByteCount == 0
    queue.removeControl()
    state = .parked
    return isWhole
  }

  /// Whether frames are accepted.
  public var isReceiving: Bool {
    switch state {
    case .up, .parking: true
    case .idle, .opening, .closed, .parked: false
    }
  }
  /// Whether the node at the other end counts as a neighbour, with or without a stream.
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

  /// The time at which `handleTimeout` is due.
  public var deadline: Instant {
    switch state {
    case .idle, .closed, .parked: .never
    case .opening, .parking: openedAt + Self.helloTimeout
    case .up: min(liveness.deadline, provenDue)
    }
  }

  /// Whether the link has a deadline.
  public var isTimed: Bool {
    switch state {
    case .opening, .parking, .up: true
    case .idle, .closed, .parked: false
    }
  }

  private var provenDue: Instant { hasPonged && !isProven ? upSince + Self.provingTime : .never }

  /// Sends a ping if one is due, or closes a dead link. `isHeld` means that the stream has bytes that it cannot send.
  public mutating func handleTimeout(local: NodeID, now: Instant, isHeld: Bool = false) {
    if deadline > now { return }
    if state == .opening && isResumed {
      // The stream is closed, and the link stays parked.
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
      // The ping may only just have been sent.
      if wasExcused { return liveness.excuse(until: now + Liveness.answerMax) }
      return close(.timedOut, retryAfterSeconds: 0, local: local)
    }
    sendPing(local, now)
  }

  /// Whether the neighbour accepts no frames but is not considered dead yet, because its radio responds.
  public var isStalled: Bool { stall.isExcuse }
  /// How long the neighbour has accepted no frames. Zero while it accepts them.
  public func stalledSpan(now: Instant) -> TimeSpan { stall.span(now: now) }

  /// Ends a stall after the stream accepted frames again, beginning with the ping.
  public mutating func goesOn(now: Instant) {
    stall = Stall()
    liveness.pingSent(now: now)
  }

  /// Sends a ping if one is due within `span`. Returns true if it did.
  public mutating func pingEarly(dueWithin span: TimeSpan, local: NodeID, now: Instant) -> Bool {
    guard state == .up, liveness.isPingDue(within: span, now: now) else { return false }
    sendPing(local, now)
    return true
  }

  /// Sends a ping unless one awaits its pong. Returns true if it did.
  public mutating func pingNow(local: NodeID, now: Instant) -> Bool {
    guard state == .up, !awaitsPong else { return false }
    sendPing(local, now)
    return true
  }

  private mutating func prove(_ now: Instant) {
    if provenDue <= now { isProven = true }
  }

  /// Records that the stream has accepted the bytes that `pop` returned since the last call. If more frames are queued,
  /// this is a measurement of goodput. Returns true if the cost changed.
  public mutating func measureGoodput(now: Instant) -> Bool {
    defer { unmeasuredBytes = 0 }
    return meter.sent(unmeasuredBytes, isBusy: hasFrames, now: now)
  }

  /// Moves whole queued frames into `output`, most urgent first, and stops after the link's maximum frame length.
  /// Routed frames wait until the link is up. Returns the bytes written.
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
  /// Whether another advertisement should be queued. Few wait in this queue. The others wait in the database, where
  /// newer ones replace them.
  public var takesAdvertisement: Bool { state == .up && queue.controlByteCount < Self.controlBytesAhead }
  public var hasFrames: Bool { !queue.isEmpty }
  /// Whether routed frames from `ingress` are queued: a link slot or `FramePool.ownIngress`.
  public func hasFrames(from ingress: Int) -> Bool { queue.hasFrames(from: ingress) }
  /// The bytes queued with one priority.
  public func queuedByteCount(_ priority: FramePriority) -> Int { queue.byteCount(priority) }
  /// Whether there is room for a frame of maximum length from this node.
  public var hasRoomForOwn: Bool { queue.hasRoom(for: FramePool.ownIngress) }
  /// The bytes queued with one priority that this node itself sends.
  public func ownQueuedByteCount(_ priority: FramePriority) -> Int { queue.ownByteCount(priority) }
  /// Whether frames of one priority from this node to a destination are queued.
  public func hasOwnQueued(_ priority: FramePriority, to destination: NodeID) -> Bool {
    queue.hasOwn(priority, to: destination)
  }

  private static let pingByteCount = 8
  /// Another advertisement is queued while the control queue has fewer bytes than this. The rest of the queue has room
  /// for the longest advertisement, pings and pongs.
  private static let controlBytesAhead = 1_024

  private mutating func receiveHello(
    _ header: FrameHeader, _ payload: RawSpan, _ local: NodeID, _ now: Instant
  ) throws(FrameRefusal) {
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
    // Waiting frames may exceed the new limit.
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
    // The control queue is never full here: it was just emptied, or at most one ping is outstanding.
    _ = append(
      FrameHeader(type: type, priority: .control, payloadByteCount: byteCount, source: local, identifier: 0),
      payload.span.bytes.extracting(0..<byteCount), from: FramePool.ownIngress)
  }
}
