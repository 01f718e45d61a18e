import Bearer
import CSystem
import Primitives
import Reactor

/// The interface of the relay that inbound streams use.
protocol InboundStreamsDelegate: AnyObject {
  /// Called when the stream's first bytes are a TLS ClientHello. Its key must be proved by the opening's deadline.
  func streamAdmitted(_ stream: StreamHandoff, _ opening: AdmissionGate.Opening)
  /// Called to end an admitted stream: its handshake makes no progress, and another stream waits for the slot.
  func streamStalled(_ number: UInt32)
}

/// The descriptors of the streams at the admission gate. Each costs a descriptor, an epoll entry and six bytes; a
/// Bluetooth channel delivers whole SDUs and costs one SDU instead. One timer serves all.
///
/// A refused stream gets a plaintext TLS alert (internal_error), because nothing else exists before a handshake. The
/// dialler then backs off.
final class InboundStreams {
  private(set) var gate = AdmissionGate()
  private let loop: EventLoop
  private let delegate: any InboundStreamsDelegate
  private let scratch: LinkScratch
  private var random: SeededRandom
  private var streams: [InboundStream] = []
  private var streamCounter: UInt32 = 0
  private var timer: Timer?

  init(_ loop: EventLoop, _ scratch: LinkScratch, _ delegate: any InboundStreamsDelegate) {
    self.loop = loop
    self.scratch = scratch
    self.delegate = delegate
    var seed: UInt64 = 0
    // Without a random seed the drops are merely predictable.
    _ = withUnsafeMutableBytes(of: &seed) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
    random = SeededRandom(seed: seed)
    timer = Timer(loop) { [self] in timeUp() }
  }

  func arrive(_ handoff: StreamHandoff) {
    // Numbers repeat after 2³² streams; no stream stays at the gate for more than seconds.
    streamCounter &+= 1
    let source = handoff.remote.source
    guard gate.arrive(streamCounter, source, over: handoff.bearer, random: random.next(), now: loop.now) else {
      return refuse(handoff)
    }
    let stream = InboundStream(self, streamCounter, handoff)
    do throws(SystemError) {
      stream.registration = try loop.add(handoff.descriptor, .read, .admission, stream)
    } catch {
      gate.leave(stream.number)
      return refuse(handoff)
    }
    streams.append(stream)
    closeExpired()
    setTimer()
  }

  /// Whether a stream of this peer waits for its ClientHello or for its handshake to begin.
  func contains(_ remote: RemoteAddress) -> Bool { streams.contains { $0.handoff.remote == remote } }

  /// Notes that an admitted stream received bytes before its key was proved.
  func progressed(_ number: UInt32) { gate.progressed(number, now: loop.now) }

  /// Handles the end of an admitted stream's handshake. `checks` is the time spent on the peer's chain, in units of one
  /// P-256 signature check.
  func handshakeEnded(_ number: UInt32, _ end: AdmissionGate.HandshakeEnd, checks: Int = 0) {
    if let opening = gate.handshakeEnded(number, end, checks: checks, now: loop.now) { open(opening) }
  }

  /// Charges a source for a link that ended before it was worth its handshake.
  func wasted(_ source: UInt64, checks: Int) { gate.wasted(source, checks: checks, now: loop.now) }

  func close() {
    for stream in streams { end(stream) }
    timer?.cancel()
    timer = nil
  }

  fileprivate func ready(_ stream: InboundStream, _ events: UInt32) {
    guard let registration = stream.registration else { return }
    if stream.isWaiting {
      // A side that has closed its direction cannot finish a handshake.
      return end(stream)
    }
    let isByteStream = stream.handoff.unitBytesMax == Int.max
    let room = isByteStream ? AdmissionGate.bytesNeeded - stream.bytesTaken : scratch.incoming.count
    let count = recv(stream.handoff.descriptor, scratch.incoming.baseAddress!, room, 0)
    if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { return }
    if count <= 0 { return end(stream) }
    stream.bytesTaken += count
    let bytes = UnsafeRawBufferPointer(rebasing: scratch.incoming[..<count])
    switch gate.receive(bytes, from: stream.number, now: loop.now) {
    case .incomplete: return
    case .waits:
      stream.isWaiting = true
      loop.modify(registration, .hangUp)
      setTimer()
    case .opens(let opening): open(opening)
    case .refused:
      forget(stream)
      refuse(stream.handoff)
    }
  }

  private func open(_ opening: AdmissionGate.Opening) {
    guard let stream = streams.first(where: { $0.number == opening.stream }) else { return }
    forget(stream)
    delegate.streamAdmitted(stream.handoff, opening)
  }

  private func end(_ stream: InboundStream) {
    gate.leave(stream.number)
    forget(stream)
    CSystem.close(stream.handoff.descriptor)
  }

  private func forget(_ stream: InboundStream) {
    streams.removeAll { $0 === stream }
    if let registration = stream.registration { loop.remove(registration) }
    stream.registration = nil
    setTimer()
  }

  private func timeUp() {
    closeExpired()
    // Each handshake that ends lets another one begin.
    while let number = gate.nextStalled(now: loop.now) { delegate.streamStalled(number) }
    setTimer()
  }

  private func closeExpired() {
    while let number = gate.nextExpired(now: loop.now) {
      guard let stream = streams.first(where: { $0.number == number }) else { continue }
      forget(stream)
      CSystem.close(stream.handoff.descriptor)
    }
  }

  private func setTimer() { timer?.set(gate.deadline) }

  /// Sends an alert and closes the stream. It does not linger as `LinkStream` does, because there may be many.
  private func refuse(_ handoff: StreamHandoff) {
    // alert record, version TLS 1.2, two bytes: fatal, internal_error (RFC 8446, section 6)
    let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 80]
    _ = send(handoff.descriptor, alert, alert.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
    shutdown(handoff.descriptor, CInt(SHUT_WR))
    _ = recv(handoff.descriptor, scratch.incoming.baseAddress!, scratch.incoming.count, CInt(MSG_DONTWAIT))
    CSystem.close(handoff.descriptor)
  }
}

/// One stream at the gate.
private final class InboundStream: EventSource {
  let number: UInt32
  let handoff: StreamHandoff
  var registration: Registration?
  var bytesTaken = 0
  /// Whether the stream has sent a ClientHello and waits for a handshake slot.
  var isWaiting = false
  private let owner: InboundStreams

  init(_ owner: InboundStreams, _ number: UInt32, _ handoff: StreamHandoff) {
    self.owner = owner
    self.number = number
    self.handoff = handoff
  }

  func ready(_ events: UInt32) { owner.ready(self, events) }
}
