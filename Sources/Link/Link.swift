import Frame
import Primitives

/// A link to one neighbour over one bearer, above an authenticated byte stream: hello, liveness, outgoing queues.
///
/// Sans-IO: `open`, `receive` and `handleTimeout` take events; `pop` returns the bytes to send; `deadline` is when
/// `handleTimeout` is due. After each of these calls the caller must check `state`.
///
/// A link does not fragment, because a byte stream carries frames of any length. The end nodes segment messages to the
/// path's frame size.
public struct Link {
  /// The state of a link.
  public enum State: Equatable, Sendable {
    /// The slot is free.
    case idle
    /// Hello is sent, the neighbour's has not arrived.
    case opening
    /// Frames of every type are accepted.
    case up
    /// This node has said goodbye until later (`CloseReason.parked`). What the neighbour sent before its own goodbye is
    /// still received; frames for it wait. Or the neighbour, which was parked, opened a stream and sent no hello.
    case parking
    /// Both ends rest without a stream. Frames for the neighbour wait until one of them dials.
    case parked
    /// To be torn down; a goodbye may still be queued.
    case closed(CloseReason)
  }

  /// The neighbour's hello, or its agreement to be parked, must arrive within this time.
  public static let helloTimeout = TimeSpan.seconds(5)
  /// A link is proven when a pong has arrived and the link has been up for this time.
  public static let provingTime = TimeSpan.seconds(2)

  public private(set) var state = State.idle
  /// The node that the link's certificate authenticates.
  public private(set) var peer = NodeID.none
  public private(set) var bearer = BearerKind.ethernet
  /// True when the neighbour dialled.
  public private(set) var isInbound = false
  /// From the neighbour's hello; valid once the link is up.
  public private(set) var peerEpoch: UInt64 = 0
  public private(set) var peerCapabilities = Capabilities.none
  public private(set) var peerName: DisplayName?
  /// The longest frame payload that both ends accept, in bytes.
  public private(set) var payloadBytesMax = Limits.framePayloadBytesFloor
  /// How long the neighbour asked not to be dialled, in its goodbye.
  public private(set) var retryAfterSeconds: UInt16 = 0
  /// The last measured round trip; zero before the first.
  public private(set) var roundTrip = TimeSpan(nanoseconds: 0)
  /// The measured cost of the link.
  public private(set) var meter = LinkMeter(.ethernet)
  /// A pong has arrived, and the link has been up for `provingTime`.
  public private(set) var isProven = false
  /// A frame other than a hello has come since it is up: so the neighbour has it up, too.
  public private(set) var isMutual = false
  /// The link was parked and opens again.
  public private(set) var isResumed = false
  /// Both ends have said that the link is parked: what each sent before has arrived.
  public private(set) var isParkingAgreed = false
  public private(set) var upSince = Instant.zero
  public private(set) var bytesIn: UInt64 = 0
  public private(set) var bytesOut: UInt64 = 0

  private var queue: FrameQueue
  /// When it was opened, or the parking began.
  private var openedAt = Instant.zero
  /// This node lets the neighbour park it.
  private var parks = false
  private var liveness = Liveness(.ethernet, now: .zero)
  private var pingSentAt = Instant.zero
  private var awaitsPong = false
  private var hasPonged = false
  private var stall = Stall()
  /// Bytes that `pop` returned and that are not in the goodput yet.
  private var unmeasuredBytes = 0

  /// `memory` has `FrameQueue.byteCount` bytes for control frames; all other frames wait in the pool.
  public init(_ memory: UnsafeMutableRawBufferPointer, _ pool: FramePool) { queue = FrameQueue(memory, pool) }

  /// What this node announces in its hello.
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

  /// The longest frame payload that this node accepts over a bearer. Slow bearers use short frames, so that an urgent
  /// frame does not wait long for a bulk one: 4 KiB take 33 ms at 1 Mbit/s.
  public static func payloadBytesMax(over bearer: BearerKind) -> Int {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: 4_096
    case .ethernet, .wifi, .wifiDirect, .loopback: Limits.framePayloadBytesMax
    }
  }

  /// The stream is authenticated: the other end holds the key of `peer`. Queues the hello.
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

  /// A parked link has a stream again. What it knew of the neighbour, and the frames that wait, stay.
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

  /// See `isMutual`.
  public mutating func confirm() { isMutual = true }

  /// Handles a frame from the neighbour that is not routed. Answers are queued; `state` may change.
  ///
  /// Throws why the frame is refused. The link is then in the state that `state` says.
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
      // The echo is the neighbour's claim: only the outstanding ping counts.
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

  /// Bytes of any kind arrived.
  public mutating func arrived(_ byteCount: Int, now: Instant) {
    bytesIn &+= UInt64(byteCount)
    liveness.arrived(now: now)
  }

  /// A whole frame arrived: the neighbour is alive.
  public mutating func heard(now: Instant) { liveness.heard(now: now) }

  /// A whole frame of this length arrived at once.
  public mutating func heard(_ byteCount: Int, now: Instant) {
    arrived(byteCount, now: now)
    heard(now: now)
  }

  /// Queues a frame that came from `ingress`: a link slot, or `FramePool.ownIngress`. `isRelayed`: its source is not
  /// the neighbour whose link it came over. False when it was dropped; the pool counts the reason.
  public mutating func append(
    _ header: FrameHeader, _ payload: RawSpan, from ingress: Int, isRelayed: Bool = false
  ) -> Bool {
    queue.append(header, payload, from: ingress, isRelayed: isRelayed)
  }

  /// Closes the link and queues a goodbye, which `pop` still returns.
  public mutating func close(_ reason: CloseReason, retryAfterSeconds: UInt16, local: NodeID) {
    switch state {
    case .idle, .closed: return
    // The goodbye was said, or nobody hears it.
    case .parking, .parked: queue.removeAll()
    case .opening, .up:
      queue.removeAll()
      let goodbye = Goodbye(reason: reason, retryAfterSeconds: retryAfterSeconds)
      enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    }
    state = .closed(reason)
  }

  /// Asks the neighbour to park and not to call for some seconds, or agrees to it. Until it has agreed the stream stays.
  public mutating func park(retryAfterSeconds: UInt16, local: NodeID, now: Instant) {
    let goodbye = Goodbye(reason: .parked, retryAfterSeconds: retryAfterSeconds)
    enqueue(.goodbye, Goodbye.byteCount, local) { output in goodbye.write(to: &output) }
    state = .parking
    isParkingAgreed = false
    openedAt = now
  }

  /// The neighbour's goodbye answers this node's, or is a relay's to a node that lets itself be parked.
  private mutating func isParkable(_ local: NodeID, _ now: Instant) -> Bool {
    if state == .parking { return true }
    guard state == .up, parks, peerCapabilities.contains(.relay) else { return false }
    park(retryAfterSeconds: 0, local: local, now: now)
    return true
  }

  /// The stream of a link in `.parking`, or of a resumed one in `.opening`, is closed. False when something may have been
  /// lost on the way.
  public mutating func rest() -> Bool {
    let isWhole = isParkingAgreed && queue.controlByteCount == 0
    queue.removeControl()
    state = .parked
    return isWhole
  }

  /// Frames are received.
  public var isReceiving: Bool {
    switch state {
    case .up, .parking: true
    case .idle, .opening, .closed, .parked: false
    }
  }
  /// The neighbour is one, whether its link has a stream now or not.
  public var isStanding: Bool {
    switch state {
    case .up, .parking, .parked: true
    case .opening: isResumed
    case .idle, .closed: false
    }
  }

  /// The stream is closed: the slot is free again.
  public mutating func reset() {
    queue.removeAll()
    state = .idle
    peer = .none
  }

  /// When `handleTimeout` is due.
  public var deadline: Instant {
    switch state {
    case .idle, .closed, .parked: .never
    case .opening, .parking: openedAt + Self.helloTimeout
    case .up: min(liveness.deadline, provenDue)
    }
  }

  /// Whether `deadline` may come.
  public var isTimed: Bool {
    switch state {
    case .opening, .parking, .up: true
    case .idle, .closed, .parked: false
    }
  }

  private var provenDue: Instant { hasPonged && !isProven ? upSince + Self.provingTime : .never }

  /// Sends a ping if it is due, or closes a dead link. `isHeld`: the stream below has bytes that it cannot send.
  public mutating func handleTimeout(local: NodeID, now: Instant, isHeld: Bool = false) {
    if deadline > now { return }
    if state == .opening && isResumed {
      // The stream goes, and the link rests on.
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
      // The last ping waits still.
      if awaitsPong { return liveness.pingSent(now: now) }
    } else if due == .death {
      // The ping may just have left.
      if wasExcused { return liveness.excuse(until: now + Liveness.answerMax) }
      return close(.timedOut, retryAfterSeconds: 0, local: local)
    }
    sendPing(local, now)
  }

  /// The neighbour takes nothing, and is not judged yet because its radio answers.
  public var isStalled: Bool { stall.isExcuse }
  /// How long the neighbour has taken nothing; zero while it takes what is sent.
  public func stalledSpan(now: Instant) -> TimeSpan { stall.span(now: now) }

  /// The stream of a stalled link has taken frames again, the ping first.
  public mutating func goesOn(now: Instant) {
    stall = Stall()
    liveness.pingSent(now: now)
  }

  /// Sends a ping that is due within `span`. True when it did.
  public mutating func pingEarly(dueWithin span: TimeSpan, local: NodeID, now: Instant) -> Bool {
    guard state == .up, liveness.isPingDue(within: span, now: now) else { return false }
    sendPing(local, now)
    return true
  }

  /// Sends a ping, if none awaits its answer. True when it did.
  public mutating func pingNow(local: NodeID, now: Instant) -> Bool {
    guard state == .up, !awaitsPong else { return false }
    sendPing(local, now)
    return true
  }

  private mutating func prove(_ now: Instant) {
    if provenDue <= now { isProven = true }
  }

  /// The stream has accepted the bytes that `pop` returned since the last call. Frames that are still queued make this
  /// a measurement of goodput. True when the cost has changed.
  public mutating func measureGoodput(now: Instant) -> Bool {
    defer { unmeasuredBytes = 0 }
    return meter.sent(unmeasuredBytes, isBusy: hasFrames, now: now)
  }

  /// Moves whole queued frames into `output`, the most urgent first, and stops when the link's greatest frame length is
  /// written. Routed frames wait until the link is up. Returns the bytes written.
  public mutating func pop(into output: UnsafeMutableRawBufferPointer, framesMax: Int = .max) -> Int {
    let written = queue.pop(into: output, framesMax: framesMax, controlOnly: state != .up)
    passed(written)
    return written
  }

  /// The stream has taken a frame of so many bytes that was not queued.
  public mutating func passed(_ byteCount: Int) {
    bytesOut &+= UInt64(byteCount)
    unmeasuredBytes += byteCount
  }

  public var queuedByteCount: Int { queue.byteCount }
  /// Whether another advertisement should be queued. Few wait in this queue; the others wait in the database, where a
  /// newer one replaces them.
  public var takesAdvertisement: Bool { state == .up && queue.controlByteCount < Self.controlBytesAhead }
  public var hasFrames: Bool { !queue.isEmpty }
  /// Whether routed frames are queued that came from `ingress`: a link slot, or `FramePool.ownIngress`.
  public func hasFrames(from ingress: Int) -> Bool { queue.hasFrames(from: ingress) }
  /// Bytes queued in one priority.
  public func queuedByteCount(_ priority: FramePriority) -> Int { queue.byteCount(priority) }
  /// Whether there is room for a frame of the greatest length from this node.
  public var hasRoomForOwn: Bool { queue.hasRoom(for: FramePool.ownIngress) }
  /// Bytes queued in one priority that this node sends itself.
  public func ownQueuedByteCount(_ priority: FramePriority) -> Int { queue.ownByteCount(priority) }
  /// Whether frames of one priority from this node to a destination are queued.
  public func hasOwnQueued(_ priority: FramePriority, to destination: NodeID) -> Bool {
    queue.hasOwn(priority, to: destination)
  }

  private static let pingByteCount = 8
  /// Another advertisement is queued while fewer bytes than this wait in the control queue. The rest of the queue has
  /// room for the longest advertisement and for pings and pongs meanwhile.
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
    // What waited may be too long now.
    if isResumed && payloadBytesMax < payloadBytesBefore { queue.removeAll() }
    queue.frameBytesMax = FrameHeader.byteCount + payloadBytesMax
    upSince = now
    state = .up
    isParkingAgreed = false
    // The first ping is sent at once, to measure the round trip early.
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
