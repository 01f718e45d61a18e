import Bearer
import CSystem
import Frame
import Link
import Node
import Primitives
import Reactor
import SecureTransport

/// What a driver needs of the relay. All calls come from the reactor's thread.
protocol LinkDriverDelegate: AnyObject {
  var node: Node { get }
  /// Bytes in and out pass through it: one of each for all links, because one thread serves them in turn.
  var scratch: LinkScratch { get }
  /// The peer has proved its key and is welcome.
  func linkProved(_ driver: LinkDriver)
  /// The driver is done; its descriptor is closed.
  func linkEnded(_ driver: LinkDriver, reason: String)
}

/// Memory that all links share.
final class LinkScratch {
  static let byteCount = EventLoop.callBytesMax + Limits.frameBytesMax
  let incoming = UnsafeMutableRawBufferPointer.allocate(byteCount: EventLoop.callBytesMax, alignment: 16)
  let outgoing = UnsafeMutableRawBufferPointer.allocate(byteCount: Limits.frameBytesMax, alignment: 16)
}

/// One connected stream: descriptor, TLS, and a link of the node above it.
final class LinkDriver: EventSource {
  /// How long the last bytes of a closing link may take.
  static let lingerTime = TimeSpan.seconds(2)

  let handoff: StreamHandoff
  /// Where it came in by the door, until its handshake is over; nil for one that was dialled.
  var source: UInt64?
  /// The node's link slot, once the peer is authenticated.
  private(set) var slot: Int?
  var peer: NodeID { secure.peer }
  var protocolText: String { secure.protocolText }
  /// The peer, or this side, refused a key that was proven: which people should read of.
  var isRefused: Bool {
    switch secure.state {
    case .closed(.alert), .closed(.refused): true
    case .handshaking, .established, .closed: false
    }
  }

  private let loop: EventLoop
  private let secure: SecureStream
  private let delegate: any LinkDriverDelegate
  private var registration: Registration?
  private var timer: Timer?
  private var wantsWrite = false
  /// The node may hold frames that `fill` left there because enough was encrypted ahead.
  private var mayHaveMore = false
  private var isEnding = false

  /// Errors: no memory for TLS, no watch for the descriptor. The descriptor is closed then.
  init(
    _ loop: EventLoop, _ handoff: StreamHandoff, _ credentials: TLSCredentials, judge: any PeerJudge,
    _ delegate: any LinkDriverDelegate
  ) throws(LinkDriverError) {
    self.loop = loop
    self.handoff = handoff
    self.delegate = delegate
    do throws(SecureStreamError) {
      secure = try SecureStream(credentials, role: handoff.isInbound ? .server : .client, judge: judge)
    } catch {
      close(handoff.descriptor)
      throw LinkDriverError(text: error.text)
    }
    secure.outgoingLimit = Self.outgoingBytesMax(handoff.bearer)
    do throws(SystemError) {
      registration = try loop.add(handoff.descriptor, .read, .link, self)
    } catch {
      close(handoff.descriptor)
      throw LinkDriverError(text: error.text)
    }
  }

  /// Begin the handshake, which is to be done by `deadline`; `bytes` have come already. The delegate knows the driver by
  /// now: it may end at once.
  func start(_ bytes: [UInt8], deadline: Instant) {
    // The timer keeps the driver alive until `end`.
    let timer = Timer(loop) { [self] in timeUp() }
    self.timer = timer
    timer.set(deadline)
    bytes.withUnsafeBytes { secure.receive($0) { input in take(input) } }
    flush()
  }

  func ready(_ events: UInt32) {
    if events & EPOLLOUT.rawValue != 0 { transmit() }
    if events & EPOLLIN.rawValue != 0 { receive() }
    if events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 && events & EPOLLIN.rawValue == 0 {
      end("the connection broke")
    }
  }

  /// Send what waits in the node, as far as the stream takes it.
  func transmit() {
    var moved = 0
    while registration != nil, let slot, !isEnding {
      let count = fill(slot)
      flush()
      moved += count
      // Nothing waits any more, or the stream is full and says when it is not.
      if count == 0 || !secure.outgoing.isEmpty { return }
      // The stream takes more, but others want their turn: come back in the next wake-up.
      if moved >= EventLoop.callBytesMax { return }
    }
    flush()
  }

  /// Send what the node still has, say goodbye to TLS, and close.
  func finish() {
    guard registration != nil, !isEnding else { return }
    if let slot { _ = fill(slot) }
    isEnding = true
    secure.close()
    timer?.set(after: Self.lingerTime)
    flush()
  }

  /// The interface below is gone: nothing can be said any more, and the other side finds out by itself.
  func interfaceWent() { end("its interface is down") }

  /// Trust or time has changed: a peer that is not welcome any more is told so and cut off.
  func reconsider() {
    guard registration != nil, !isEnding else { return }
    secure.reconsider()
    flush()
  }

  // MARK: Inside

  /// How much is encrypted ahead, and half of it as long as another frame waits: on a slow bearer the longest one, so
  /// that an urgent frame overtakes early.
  private static func outgoingBytesMax(_ bearer: BearerKind) -> Int {
    switch bearer {
    case .bluetoothLE: 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE))
    case .ethernet, .wifi, .wifiDirect, .loopback: SecureStream.outgoingLimitMax
    }
  }

  private func receive() {
    let buffer = delegate.scratch.incoming
    var total = 0
    while total < EventLoop.callBytesMax, registration != nil {
      let count = recv(handoff.descriptor, buffer.baseAddress!, buffer.count, 0)
      if count == 0 { return end("the other side closed the connection") }
      if count < 0 {
        let code = csystem_errno()
        if code == EAGAIN || code == EINTR { break }
        return end(SystemError(code: code).text)
      }
      total += count
      secure.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { input in take(input) }
      if count < buffer.count && handoff.unitBytesMax == Int.max { break }
    }
    flush()
  }

  private func take(_ input: SecureStream.Input) {
    switch input {
    case .established: established()
    case .plaintext(let bytes):
      guard let slot, !isEnding else { return }
      delegate.node.receive(bytes, on: slot, now: loop.now)
      if !secure.isBypassAllowed && delegate.node.isBypassAgreed(slot) { secure.allowBypass() }
    case .sealed(let header, let payload):
      guard let slot, !isEnding else { return }
      delegate.node.receiveSealed(header, payload, on: slot, now: loop.now)
    }
  }

  private func established() {
    timer?.cancel()
    delegate.linkProved(self)
    slot = delegate.node.openLink(
      peer: secure.peer, bearer: handoff.bearer, dialled: handoff.isInbound ? nil : handoff.token, now: loop.now)
    if slot == nil { finish() }
  }

  /// Encrypt frames while the stream wants more. Gives the bytes taken from the node.
  private func fill(_ slot: Int) -> Int {
    var taken = 0
    mayHaveMore = false
    while secure.state == .established {
      if secure.outgoing.count >= secure.outgoingLimit / 2 {
        mayHaveMore = true
        break
      }
      // What is taken from the node fits the stream whole: half of its limit, or one longest frame.
      let room = min(secure.outgoingLimit - secure.outgoing.count, delegate.scratch.outgoing.count)
      let count = secure.isBypassAllowed ? fillBeside(slot, room) : fillInside(slot, room)
      if count == 0 { break }
      taken += count
    }
    return taken
  }

  private func fillInside(_ slot: Int, _ room: Int) -> Int {
    let buffer = UnsafeMutableRawBufferPointer(rebasing: delegate.scratch.outgoing[..<room])
    let count = delegate.node.pop(slot, into: buffer, now: loop.now)
    writePlain(UnsafeRawBufferPointer(buffer)[..<count])
    return count
  }

  /// The node writes its frames where they leave from: a sealed one that comes first, which under load is the only
  /// one, is not copied again.
  private func fillBeside(_ slot: Int, _ room: Int) -> Int {
    guard let buffer = secure.roomForFrames(room) else { return 0 }
    let count = delegate.node.pop(slot, into: buffer, now: loop.now)
    if count == 0 { return 0 }
    let isSealed = buffer[2] & FrameHeader.sealed != 0
    let first = isSealed ? FrameHeader.byteCount + (Int(buffer[6]) << 8 | Int(buffer[7])) : 0
    let rest = UnsafeMutableRawBufferPointer(rebasing: delegate.scratch.outgoing[..<(count - first)])
    rest.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[first..<count]))
    if isSealed { _ = secure.queueSealedInPlace(first) }
    write(UnsafeRawBufferPointer(rest))
    return count
  }

  /// Frames that the end nodes sealed go beside TLS, all others inside it.
  private func write(_ frames: UnsafeRawBufferPointer) {
    var plainStart = 0
    var offset = 0
    while offset < frames.count {
      let next = offset + FrameHeader.byteCount + (Int(frames[offset + 6]) << 8 | Int(frames[offset + 7]))
      if frames[offset + 2] & FrameHeader.sealed != 0 {
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

  /// Send what is encrypted; then look whether the stream is over.
  private func flush() {
    while registration != nil, !secure.outgoing.isEmpty {
      let bytes = secure.outgoing
      let unit = min(bytes.count, handoff.unitBytesMax)
      let count = send(handoff.descriptor, bytes.baseAddress!, unit, CInt(MSG_NOSIGNAL))
      if count < 0 {
        let code = csystem_errno()
        if code == EINTR { continue }
        if code != EAGAIN { return end(SystemError(code: code).text) }
        break
      }
      secure.consume(count)
    }
    if case .closed(let reason) = secure.state, secure.outgoing.isEmpty { return end(reason.text) }
    // Also when all went out: whoever flushes after a receipt does not fill.
    waitForWrite(!secure.outgoing.isEmpty || (mayHaveMore && !isEnding))
  }

  private func waitForWrite(_ waits: Bool) {
    guard let registration, waits != wantsWrite else { return }
    wantsWrite = waits
    loop.modify(registration, waits ? [.read, .write] : .read)
  }

  private func timeUp() {
    if isEnding { return end("closed") }
    end("no TLS handshake within \(Admission.deadline(handoff.bearer).milliseconds / 1000) s")
  }

  private func end(_ reason: String) {
    guard let registration else { return }
    self.registration = nil
    timer?.cancel()
    timer = nil
    loop.remove(registration)
    close(handoff.descriptor)
    delegate.linkEnded(self, reason: reason)
  }
}

/// Why a stream could not become a link; one line.
struct LinkDriverError: Error {
  let text: String
}
