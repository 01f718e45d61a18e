import Bearer
import Diagnostics
import Frame
import Link
import Node
import Primitives
import Reactor
import SecureTransport

/// The interface that a driver needs from the relay. All calls come from the reactor's thread.
protocol LinkDriverDelegate: AnyObject {
  var node: Node { get }
  /// The shared buffers for incoming and outgoing bytes.
  var scratch: LinkScratch { get }
  /// Bytes came from a peer that has not proved its key.
  func linkProgressed(_ driver: LinkDriver)
  /// The peer has proved its key and is trusted.
  func linkProved(_ driver: LinkDriver)
  /// The node has given the link a slot, or has none.
  func linkOpened(_ driver: LinkDriver)
  /// The driver has ended; its stream is closed.
  func linkEnded(_ driver: LinkDriver, reason: String)
}

/// One connected stream: TLS over it, and a link of the node above. Sans-IO: it reads, sends and sets timers through
/// its `LinkIO`, which calls `ready` and `timeUp`. It makes no system call and reads no clock.
final class LinkDriver: FrameSink {
  /// The longest time to send the last bytes of a closing link.
  static let lingerTime = TimeSpan.seconds(2)

  let handoff: StreamHandoff
  /// The stream's number at the admission gate while the handshake lasts; nil afterwards and for a dialled stream.
  var admission: UInt32?
  /// The node's link slot, once the peer is authenticated.
  private(set) var slot: Int?
  var peer: NodeID { secure.peer }
  var protocolText: String { secure.protocolText }
  /// What TCP has sent; nil for a stream that is not TCP's, and when it is closed.
  var segments: SegmentCounts? { isOver ? nil : io.segments }
  /// The peer or this side refused a proven key; people should be told.
  var isRefused: Bool {
    switch secure.state {
    case .closed(.alert), .closed(.refused): true
    case .handshaking, .established, .closed: false
    }
  }

  /// How TLS ended; nil as long as it has not.
  var streamEnd: SecureStreamEnd? {
    switch secure.state {
    case .handshaking, .established: nil
    case .closed(let end): end
    }
  }
  /// The handshake was not done in time.
  private(set) var isTimedOut = false
  /// Another stream took its place.
  private(set) var isGivenUp = false

  /// The time that its chain has taken, in checks of a signature over P-256.
  var checksMade: Int { judge?.checksMade ?? 0 }

  private let io: any LinkIO
  private let judge: (any PeerJudge)?
  private let secure: SecureStream
  private let delegate: any LinkDriverDelegate
  private let ahead: EncryptAhead
  /// The node may hold frames that `fill` left because enough was encrypted ahead.
  private var mayHaveMore = false
  /// Bytes of the stream, both ways, since `takePassed`.
  private var passedBytes: UInt64 = 0
  /// Bytes taken from the node in this wake-up.
  private var movedBytes = 0
  /// Whether to send again when the stream accepts bytes, and whether the stream was asked to tell.
  private var wantsRoom = false
  private var waitsForRoom = false
  /// The stream has taken bytes since it last reported room, and bulk frames wait for the next report.
  private var isFed = false
  /// Nothing has come from the other end.
  private(set) var isSilent = true
  /// The last bytes are being sent.
  private var isEnding = false
  private var isOver = false

  /// Errors: no memory for TLS. The caller then still owns `io`.
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

  /// Begins the handshake, which must be done by `deadline`; `bytes` were already received. The delegate must know the
  /// driver before, because it may end at once.
  func start(_ bytes: [UInt8], deadline: Instant) {
    io.wake(at: deadline)
    isSilent = bytes.isEmpty
    bytes.withUnsafeBytes { secure.receive($0) { input in take(input) } }
    flush()
  }

  /// The stream can be read, can be written, or has failed.
  func ready(canRead: Bool, canWrite: Bool, isBroken: Bool) {
    if canWrite {
      isFed = false
      transmit()
    }
    if canRead { receive() }
    if isBroken && !canRead { end("the connection broke", lingers: false) }
  }

  /// Sends the node's queued frames, as far as the stream accepts them.
  func transmit() {
    while !isOver, let slot, !isEnding, movedBytes < EventLoop.callBytesMax {
      // Frames that were passed on directly may be all that is encrypted ahead. Queued ones follow when those are sent.
      let wasFull = ahead.room(unsent: secure.outgoing.count) == nil
      let count = fill(slot)
      flush()
      movedBytes += count
      // Nothing is queued any more, or the stream is full and will report room.
      if (count == 0 && !wasFull) || !secure.outgoing.isEmpty { return }
    }
    // The stream accepts more, but other links must be served: continue in the next wake-up.
    if movedBytes >= EventLoop.callBytesMax { mayHaveMore = true }
    flush()
  }

  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool {
    guard !isOver, !isEnding, !isFed || header.priority != .bulk, ahead.room(unsent: secure.outgoing.count) != nil,
      let room = secure.roomForFrames(header.frameByteCount)
    else { return false }
    var output = OutputRawSpan(buffer: room, initializedCount: 0)
    header.write(to: &output)
    payload.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(rebasing: room[FrameHeader.byteCount...]).copyMemory(from: bytes)
    }
    return secure.queueSealedInPlace(header.frameByteCount)
  }

  /// The wake-up has ended, and the driver's byte budget is reset. Only now the stream is asked for room: what one part of a
  /// wake-up leaves another one often sends, and each question is a system call.
  func wakeUpEnded() {
    movedBytes = 0
    if wantsRoom == waitsForRoom || isOver { return }
    waitsForRoom = wantsRoom
    io.waitForRoom(wantsRoom)
  }

  var holdsBytes: Bool { !secure.outgoing.isEmpty }

  /// How many bytes have passed over the stream, both ways, since the last call.
  func takePassed() -> UInt64 {
    defer { passedBytes = 0 }
    return passedBytes
  }

  /// Sends the node's last frames, closes TLS and then the stream.
  func finish() {
    guard !isOver, !isEnding else { return }
    let taken = slot.map { fill($0) } ?? 0
    // Both ends have said goodbye, and nothing is on its way.
    if let slot, taken == 0, delegate.node.link(slot).isParkingAgreed { return end("parked", lingers: false) }
    isEnding = true
    secure.close()
    io.wake(at: io.now + Self.lingerTime)
    flush()
  }

  /// Another stream to the same peer has become its link.
  func giveUp() {
    isGivenUp = true
    end("another stream came first", lingers: false)
  }

  /// The handshake makes no progress, and another stream waits for its place.
  func giveWay() { end("the TLS handshake made no progress, and others waited", lingers: false) }

  /// The interface is down: nothing can be sent any more; the other side times out.
  func interfaceWent() { end("its interface is down", lingers: false) }

  /// Trust or time has changed: a peer that is no longer trusted gets an alert, and the stream is closed.
  func reconsider() {
    guard !isOver, !isEnding else { return }
    secure.reconsider()
    flush()
  }

  /// A deadline has passed: of the handshake, or of closing.
  func timeUp() {
    if isEnding { return end("closed", lingers: false) }
    isTimedOut = true
    end("no TLS handshake within \(Admission.deadline(handoff.bearer).milliseconds / 1000) s", lingers: false)
  }

  // MARK: Internals

  private func receive() {
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
      guard let slot, !isEnding else { return }
      delegate.node.receive(bytes, on: slot, now: io.now)
      if !secure.isBypassAllowed && delegate.node.isBypassAgreed(slot) { secure.allowBypass() }
    case .sealed(let header, let payload):
      guard let slot, !isEnding else { return }
      delegate.node.receiveSealed(header, payload, on: slot, now: io.now)
    }
  }

  private func established() {
    io.wake(at: .never)
    delegate.linkProved(self)
    slot = delegate.node.openLink(
      peer: secure.peer, bearer: handoff.bearer, source: handoff.remote.source,
      dialled: handoff.isInbound ? nil : handoff.token, now: io.now)
    delegate.linkOpened(self)
    guard let slot else { return finish() }
    delegate.node.attach(self, to: slot)
  }

  /// Encrypts frames while the stream needs more. Returns the bytes taken from the node.
  private func fill(_ slot: Int) -> Int {
    var taken = 0
    mayHaveMore = false
    while secure.state == .established {
      guard let room = ahead.room(unsent: secure.outgoing.count) else {
        mayHaveMore = true
        break
      }
      if isFed && !delegate.node.hasUrgentFrames(slot) {
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

  /// The node writes its frames directly into the outgoing buffer, one after the other, and there a sealed frame stays.
  /// From the first frame on that belongs inside TLS they go by the scratch buffer, so that small ones share a record.
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

  /// Sends `first` and what the node has behind it, `room` bytes in all. Returns their count.
  private func fillMixed(_ slot: Int, _ first: UnsafeRawBufferPointer, _ room: Int) -> Int {
    let frames = UnsafeMutableRawBufferPointer(rebasing: delegate.scratch.outgoing[..<room])
    frames.copyMemory(from: first)
    let more = delegate.node.pop(slot, into: UnsafeMutableRawBufferPointer(rebasing: frames[first.count...]))
    let count = first.count + more
    write(UnsafeRawBufferPointer(rebasing: frames[..<count]))
    return count
  }

  /// Sends end-to-end encrypted frames outside TLS, all others inside it.
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

  /// Sends encrypted bytes; then checks whether the stream has ended.
  private func flush() {
    sending: while !isOver, !secure.outgoing.isEmpty {
      let bytes = secure.outgoing
      switch io.send(UnsafeRawBufferPointer(rebasing: bytes[..<min(bytes.count, handoff.unitBytesMax)])) {
      case .moved(let count):
        secure.consume(count)
        isFed = ahead.waitsForRoom
        passedBytes &+= UInt64(count)
      case .later, .ended: break sending
      case .failed(let error): return end(error.text, lingers: false)
      }
    }
    if isOver { return }
    if case .closed(let reason) = secure.state, secure.outgoing.isEmpty { return end(reason.text, lingers: true) }
    // Needed even when everything was sent, because a flush after a receive does not fill.
    wantsRoom = !secure.outgoing.isEmpty || (mayHaveMore && !isEnding)
  }

  private func end(_ reason: String, lingers: Bool) {
    if isOver { return }
    isOver = true
    io.wake(at: .never)
    io.close(lingers: lingers)
    delegate.linkEnded(self, reason: reason)
  }
}
