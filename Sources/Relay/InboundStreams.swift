import Bearer
import CSystem
import Primitives
import Reactor

/// The part of the relay that `InboundStreams` calls.
protocol InboundStreamsDelegate: AnyObject {
  /// Called when the stream has sent a TLS ClientHello and has a handshake slot. The peer must prove its key by the
  /// deadline of `opening`.
  func streamAdmitted(_ stream: StreamHandoff, _ opening: AdmissionGate.Opening)
  /// Called to end a stream whose handshake makes no progress, while another stream waits for the handshake slot.
  func streamStalled(_ number: UInt32)
}

/// The descriptors of the streams at the admission gate. Each stream costs a descriptor, an epoll entry and six bytes
/// of input. A Bluetooth LE channel costs one SDU of input instead, because it delivers complete SDUs. All streams
/// share one timer.
///
/// A refused stream receives a plaintext TLS alert (internal_error), because TLS has no other message before a
/// handshake. The alert makes the dialling node wait before another attempt.
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
    // Without a random seed, peers could predict which streams are dropped. Nothing else depends on the seed.
    _ = withUnsafeMutableBytes(of: &seed) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
    random = SeededRandom(seed: seed)
    timer = Timer(loop) { [self] in timeUp() }
  }

  func arrive(_ handoff: StreamHandoff) {
    // Numbers repeat after 2³² streams. No two streams at the gate share a number, because a stream stays there for
    // seconds only.
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

  /// Whether a stream from this address is at the admission gate: its ClientHello has not arrived, or its handshake has
  /// not begun.
  func contains(_ remote: RemoteAddress) -> Bool { streams.contains { $0.handoff.remote == remote } }

  /// Records that a stream received bytes during its handshake.
  func progressed(_ number: UInt32) { gate.progressed(number, now: loop.now) }

  /// Charges the processor time of a step of a stream's handshake.
  func spent(_ time: TimeSpan, by number: UInt32) { gate.spent(time, by: number, now: loop.now) }

  /// Handles the end of a handshake, and begins that of the next waiting stream. `checks` is the time spent on the
  /// peer's certificate chain, in units of one P-256 signature check.
  func handshakeEnded(_ number: UInt32, _ end: AdmissionGate.HandshakeEnd, checks: Int = 0) {
    if let opening = gate.handshakeEnded(number, end, checks: checks, now: loop.now) { open(opening) }
    setTimer()
  }

  /// Charges a source for a link that ended without a lasting use (`Node.isLinkWasted`), as for a failed handshake.
  func wasted(_ source: UInt64, checks: Int) { gate.wasted(source, checks: checks, now: loop.now) }

  func close() {
    for stream in streams { end(stream) }
    timer?.cancel()
    timer = nil
  }

  fileprivate func ready(_ stream: InboundStream, _ events: UInt32) {
    guard let registration = stream.registration else { return }
    if stream.isWaiting {
      // The other side has closed its direction of the stream, so it cannot finish a handshake.
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
    // Each handshake that ends lets the handshake of a waiting stream begin.
    while let number = gate.nextStalled(now: loop.now) { delegate.streamStalled(number) }
    while let opening = gate.nextOpening(now: loop.now) { open(opening) }
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

  /// Sends an alert and closes the stream at once. `LinkStream` continues to read after `close`; at the gate, a flood
  /// of refused streams would keep too many descriptors open.
  private func refuse(_ handoff: StreamHandoff) {
    // An alert record of version TLS 1.2 with two bytes: fatal, internal_error (RFC 8446, section 6).
    let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 80]
    _ = send(handoff.descriptor, alert, alert.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
    shutdown(handoff.descriptor, CInt(SHUT_WR))
    _ = recv(handoff.descriptor, scratch.incoming.baseAddress!, scratch.incoming.count, CInt(MSG_DONTWAIT))
    CSystem.close(handoff.descriptor)
  }
}

/// A stream at the admission gate, with its descriptor.
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
