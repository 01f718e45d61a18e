import Bearer
import Frame
import Link
import Node
import Primitives
import Reactor
import SecureTransport
import Status

/// The part of the relay that a link driver calls. All calls come from the reactor's thread.
protocol LinkDriverDelegate: AnyObject {
  var node: Node { get }
  /// The buffers for incoming and outgoing bytes, which all links share.
  var scratch: LinkScratch { get }
  /// Called before a step of a handshake: before bytes of the peer are read. If false, the driver reads nothing, and is
  /// called again in the next pass of the event loop. If true, `endStep` is called after the step.
  func beginStep(_ driver: LinkDriver) -> Bool
  func endStep()
  /// Called when bytes arrive on a stream that has no link slot yet.
  func linkProgressed(_ driver: LinkDriver)
  /// Called when the peer has proved its key and is trusted.
  func linkProved(_ driver: LinkDriver)
  /// Called after `linkProved`, when the node has assigned a link slot or has refused one. `LinkDriver.slot` is nil
  /// after a refusal.
  func linkOpened(_ driver: LinkDriver)
  /// Called when the driver has ended and closed its stream.
  func linkEnded(_ driver: LinkDriver, reason: String)
}

/// Drives one connected stream: TLS over the stream, and a link of the node over TLS. The driver is sans-IO: it makes
/// no system call and reads no clock. The driver receives, sends and sets timers through its `LinkIO`, which calls
/// `ready` and `timeUp`.
final class LinkDriver: FrameSink {
  static let lingerTime = TimeSpan.seconds(2)

  /// Why a driver ended, as far as records of failures distinguish it.
  enum Cause {
    /// The handshake missed its deadline.
    case timedOut
    /// Another stream to the same address was established first.
    case givenUp
    case other
  }

  private enum Phase {
    /// The handshake: the node has no link slot for this stream yet.
    case handshaking
    case linked(slot: Int)
    /// The driver sends its last bytes. Without a slot, the handshake was incomplete, or the node had no slot left.
    case ending(slot: Int?)
    case over(slot: Int?, Cause)
  }

  let handoff: StreamHandoff
  /// The stream's number at the admission gate while an inbound stream is in its handshake. nil after the handshake,
  /// and for a dialled stream.
  var admission: UInt32?
  /// The node's link slot for this stream; nil until the peer is authenticated.
  var slot: Int? {
    switch phase {
    case .handshaking: nil
    case .linked(let slot): slot
    case .ending(let slot), .over(let slot, _): slot
    }
  }
  var peer: NodeID { secure.peer }
  /// The counts of TCP segments that the stream has sent. nil for a stream that does not run over TCP, and after the
  /// driver has ended.
  var segments: SegmentCounts? { isOver ? nil : io.segments }
  /// Whether this node refused the peer, or the peer sent a TLS alert. The relay reports a refusal in the journal at
  /// level notice.
  var isRefused: Bool {
    switch secure.state {
    case .closed(.alert), .closed(.refused): true
    case .handshaking, .established, .closed: false
    }
  }

  /// How TLS ended; nil while TLS runs.
  var streamEnd: SecureStreamEnd? {
    switch secure.state {
    case .handshaking, .established: nil
    case .closed(let end): end
    }
  }
  /// Why the driver ended; nil before that.
  var cause: Cause? { if case .over(_, let cause) = phase { cause } else { nil } }

  /// The time spent on the peer's certificate chain, in units of one P-256 signature check.
  var checksMade: Int { judge?.checksMade ?? 0 }

  private let io: any LinkIO
  private let judge: (any PeerJudge)?
  private let secure: SecureStream
  private let delegate: any LinkDriverDelegate
  private let ahead: EncryptAhead
  private var phase = Phase.handshaking
  /// Whether the node may still have frames. `fill` leaves frames in the node when enough bytes are encrypted ahead of
  /// the stream.
  private var mayHaveMore = false
  /// The number of bytes sent and received over the stream since the last `takePassed`.
  private var passedBytes: UInt64 = 0
  private var movedBytes = 0
  /// Whether the driver wants to be called when the stream is writable (`wantsRoom`). `waitsForRoom` is the last value
  /// that `io` received.
  private var wantsRoom = false
  private var waitsForRoom = false
  /// Whether the stream has accepted bytes since it was last reported writable. While `awaitsWritable` is true, bulk
  /// frames wait for the next report. The property is always false on bearers other than Bluetooth LE
  /// (`EncryptAhead.waitsForRoom`).
  private var awaitsWritable = false
  /// Whether nothing has arrived from the other end of the stream yet.
  private(set) var isSilent = true

  private var isLinked: Bool { if case .linked = phase { true } else { false } }
  private var isHandshaking: Bool { if case .handshaking = phase { true } else { false } }
  private var isEnding: Bool { if case .ending = phase { true } else { false } }
  private var isOver: Bool { cause != nil }

  /// Errors: no memory for TLS. After an error the caller still owns `io`.
  init(
    _ io: any LinkIO, _ handoff: StreamHandoff, _ credentials: TLSCredentials, judge: (any PeerJudge)?,
    _ delegate: any LinkDriverDelegate
  ) throws(SecureStreamError) {
    self.io = io
    self.judge = judge
    self.handoff = handoff
    self.delegate = delegate
    ahead = EncryptAhead(over: handoff.bearer)
    secure = try SecureStream(credentials, role: handoff.isInbound ? .server : .client, judge: judge)
  }

  /// Starts the handshake, which must be complete by `deadline`. `bytes` are the bytes that were received before this
  /// call. The delegate must already have stored the driver, because the driver can end during this call.
  func start(_ bytes: [UInt8], deadline: Instant) {
    io.wake(at: deadline)
    isSilent = bytes.isEmpty
    bytes.withUnsafeBytes { secure.receive($0) { input in take(input) } }
    flush()
  }

  /// Handles an event of the stream: readable, writable, or failed.
  func ready(canRead: Bool, canWrite: Bool, isBroken: Bool) {
    if canWrite {
      awaitsWritable = false
      transmit()
    }
    if canRead { receive() }
    if isBroken && !canRead { end("the connection broke", lingers: false) }
  }

  /// Sends the node's queued frames until the stream accepts no more.
  func transmit() {
    while case .linked(let slot) = phase, movedBytes < EventLoop.callBytesMax {
      // Frames that were forwarded directly (`take`) can use all bytes that may be encrypted ahead. Queued frames
      // follow once the stream has accepted those bytes.
      let wasFull = ahead.room(unsent: secure.outgoing.count) == nil
      let count = fill(slot)
      flush()
      movedBytes += count
      // If nothing can be sent, the queue is empty, or the stream is full and will be reported writable later.
      if (count == 0 && !wasFull) || !secure.outgoing.isEmpty { return }
    }
    // The stream accepts more bytes, but other links must be served. The rest is sent in the next pass of the event
    // loop.
    if movedBytes >= EventLoop.callBytesMax { mayHaveMore = true }
    flush()
  }

  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool {
    guard isLinked, !awaitsWritable || header.priority != .bulk,
      ahead.room(unsent: secure.outgoing.count) != nil,
      let room = secure.roomForFrames(header.frameByteCount)
    else { return false }
    var output = OutputRawSpan(buffer: room, initializedCount: 0)
    header.write(to: &output)
    payload.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(rebasing: room[FrameHeader.byteCount...]).copyMemory(from: bytes)
    }
    return secure.queueSealedInPlace(header.frameByteCount)
  }

  /// Called at the end of each pass of the event loop. Resets the byte budget of the pass, and sets whether `io`
  /// reports a writable stream. Reporting writable streams is set only here, because each change costs a system call. A
  /// later part of the pass often sends the remaining bytes.
  func wakeUpEnded() {
    movedBytes = 0
    if wantsRoom == waitsForRoom || isOver { return }
    waitsForRoom = wantsRoom
    io.waitForRoom(wantsRoom)
  }

  var hasUnsentBytes: Bool { !secure.outgoing.isEmpty }

  /// Returns the number of bytes sent and received over the stream since the last call of this function.
  func takePassed() -> UInt64 {
    defer { passedBytes = 0 }
    return passedBytes
  }

  /// Sends the node's last frames, closes TLS, and then closes the stream.
  func finish() {
    guard !isOver, !isEnding else { return }
    let taken = slot.map { fill($0) } ?? 0
    // The link is parked (kept without a connection). Each end has received the other end's goodbye, and no bytes are
    // on the way, so TLS needs no closing.
    if let slot, taken == 0, delegate.node.link(slot).isParkingAgreed { return end("parked", lingers: false) }
    phase = .ending(slot: slot)
    secure.close()
    io.wake(at: io.now + Self.lingerTime)
    flush()
  }

  /// Ends the driver because another stream to the same address was established first.
  func giveUp() { end("another stream was established first", .givenUp, lingers: false) }

  /// Ends the driver because its handshake makes no progress and another stream waits for the handshake slot.
  func giveWay() { end("the TLS handshake made no progress while others waited", lingers: false) }

  /// Ends the driver because its network interface is down. This node can send no goodbye, so the other side detects
  /// the end by a timeout.
  func interfaceWent() { end("its interface is down", lingers: false) }

  /// Checks the peer again after the trust settings or the wall clock changed. A peer that is no longer trusted
  /// receives a TLS alert, and the stream is closed.
  func reconsider() {
    guard !isOver, !isEnding else { return }
    secure.reconsider()
    flush()
  }

  /// Handles a missed deadline: that of the handshake, or that of closing the stream.
  func timeUp() {
    if isEnding { return end("closed", lingers: false) }
    let seconds = Admission.deadline(handoff.bearer).milliseconds / 1000
    end("no TLS handshake within \(seconds) s", .timedOut, lingers: false)
  }

  // MARK: Internals

  private func receive() {
    let isStep = isHandshaking
    if isStep && !delegate.beginStep(self) { return }
    defer { if isStep { delegate.endStep() } }
    let buffer = delegate.scratch.incoming
    var total = 0
    reading: while total < EventLoop.callBytesMax, !isOver {
      switch io.receive(into: buffer) {
      case .ended: return end("the other side closed the connection", lingers: false)
      case .failed(let error): return end(error.text, lingers: false)
      case .later: break reading
      case .moved(let count):
        total += count
        passedBytes &+= UInt64(count)
        isSilent = false
        if slot == nil { delegate.linkProgressed(self) }
        secure.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { input in take(input) }
        if count < buffer.count && handoff.unitBytesMax == Int.max { break reading }
      }
    }
    flush()
  }

  private func take(_ input: SecureStream.Input) {
    switch input {
    case .established: established()
    case .plaintext(let bytes):
      guard case .linked(let slot) = phase else { return }
      delegate.node.receive(bytes, on: slot, now: io.now)
      if !secure.isBypassAllowed && delegate.node.isBypassAgreed(slot) { secure.allowBypass() }
    case .sealed(let header, let payload):
      guard case .linked(let slot) = phase else { return }
      delegate.node.receiveSealed(header, payload, on: slot, now: io.now)
    }
  }

  private func established() {
    guard case .handshaking = phase else { return }
    io.wake(at: .never)
    delegate.linkProved(self)
    let slot = delegate.node.openLink(
      peer: secure.peer, bearer: handoff.bearer, source: handoff.remote.source,
      dialled: handoff.isInbound ? nil : handoff.token, now: io.now)
    if let slot { phase = .linked(slot: slot) }
    delegate.linkOpened(self)
    guard let slot else { return finish() }
    delegate.node.attach(self, to: slot)
  }

  /// Encrypts the node's frames until enough bytes are encrypted ahead of the stream. Returns the number of frame bytes
  /// removed from the node's queue.
  private func fill(_ slot: Int) -> Int {
    var taken = 0
    mayHaveMore = false
    while secure.state == .established {
      guard let room = ahead.room(unsent: secure.outgoing.count) else {
        mayHaveMore = true
        break
      }
      if awaitsWritable && !delegate.node.hasUrgentFrames(slot) {
        mayHaveMore = delegate.node.link(slot).hasFrames
        break
      }
      let count = secure.isBypassAllowed ? fillBeside(slot, room) : fillInside(slot, room)
      if count == 0 { break }
      taken += count
    }
    return taken
  }

  private func fillInside(_ slot: Int, _ room: Int) -> Int {
    let buffer = UnsafeMutableRawBufferPointer(rebasing: delegate.scratch.outgoing[..<room])
    let count = delegate.node.pop(slot, into: buffer)
    writePlain(UnsafeRawBufferPointer(buffer)[..<count])
    return count
  }

  /// Fills the outgoing buffer of a link that uses the bypass (sealed frames are sent between the TLS records). The
  /// node writes its frames into the outgoing buffer one by one, and sealed frames stay in place. After the first frame
  /// that belongs inside TLS, frames are collected in the scratch buffer, so that small frames share a TLS record.
  private func fillBeside(_ slot: Int, _ room: Int) -> Int {
    var taken = 0
    while taken < room, let buffer = secure.roomForFrames(room - taken) {
      let count = delegate.node.pop(slot, into: buffer, framesMax: 1)
      if count == 0 { break }
      if FrameHeader.isSealed(UnsafeRawBufferPointer(buffer).bytes) {
        guard secure.queueSealedInPlace(count) else { break }
        taken += count
      } else {
        return taken + fillMixed(slot, UnsafeRawBufferPointer(rebasing: buffer[..<count]), room - taken)
      }
    }
    return taken
  }

  /// Writes `first` and the node's next frames, at most `room` bytes in total. Returns the number of bytes written.
  private func fillMixed(_ slot: Int, _ first: UnsafeRawBufferPointer, _ room: Int) -> Int {
    let frames = UnsafeMutableRawBufferPointer(rebasing: delegate.scratch.outgoing[..<room])
    frames.copyMemory(from: first)
    let more = delegate.node.pop(slot, into: UnsafeMutableRawBufferPointer(rebasing: frames[first.count...]))
    let count = first.count + more
    write(UnsafeRawBufferPointer(rebasing: frames[..<count]))
    return count
  }

  /// Writes sealed (end-to-end encrypted) frames outside TLS and all other frames inside TLS.
  private func write(_ frames: UnsafeRawBufferPointer) {
    var plainStart = 0
    var offset = 0
    while offset < frames.count {
      let frame = UnsafeRawBufferPointer(rebasing: frames[offset...])
      let next = offset + FrameHeader.frameByteCount(of: frame.bytes)
      if FrameHeader.isSealed(frame.bytes) {
        writePlain(frames[plainStart..<offset])
        let headerEnd = offset + FrameHeader.byteCount
        _ = secure.writeSealed(
          header: UnsafeRawBufferPointer(rebasing: frames[offset..<headerEnd]),
          payload: UnsafeRawBufferPointer(rebasing: frames[headerEnd..<next]))
        plainStart = next
      }
      offset = next
    }
    writePlain(frames[plainStart..<frames.count])
  }

  private func writePlain(_ frames: Slice<UnsafeRawBufferPointer>) {
    if !frames.isEmpty { _ = secure.write(UnsafeRawBufferPointer(rebasing: frames)) }
  }

  /// Sends encrypted bytes until the stream accepts no more, and then closes the stream if TLS has ended.
  private func flush() {
    sending: while !isOver, !secure.outgoing.isEmpty {
      let bytes = secure.outgoing
      switch io.send(UnsafeRawBufferPointer(rebasing: bytes[..<min(bytes.count, handoff.unitBytesMax)])) {
      case .moved(let count):
        secure.consume(count)
        awaitsWritable = ahead.waitsForRoom
        passedBytes &+= UInt64(count)
      case .later, .ended: break sending
      case .failed(let error): return end(error.text, lingers: false)
      }
    }
    if isOver { return }
    if case .closed(let reason) = secure.state, secure.outgoing.isEmpty { return end(reason.text, lingers: true) }
    wantsRoom = !secure.outgoing.isEmpty || (mayHaveMore && !isEnding)
  }

  private func end(_ reason: String, _ cause: Cause = .other, lingers: Bool) {
    if isOver { return }
    phase = .over(slot: slot, cause)
    io.wake(at: .never)
    io.close(lingers: lingers)
    delegate.linkEnded(self, reason: reason)
  }
}
