import Bearer
import CSystem
import Primitives
import Reactor
import SecureTransport

/// What the door needs of the relay.
protocol AdmissionGateDelegate: AnyObject {
  /// A stream whose first bytes are the beginning of TLS, and which is to have proved its key by `deadline`.
  func streamAdmitted(_ stream: StreamHandoff, _ bytes: [UInt8], source: UInt64, deadline: Instant)
}

/// Streams that others opened, until their handshake may begin. `Admission` decides; here is what it costs: a descriptor, a
/// place in epoll and six bytes (a Bluetooth channel gives whole SDUs, so one of those) for each, and one timer for all.
///
/// A stream that is refused is told by a TLS alert in the clear (internal_error), which is all that there is before a
/// handshake; its dialler waits longer before each next attempt.
final class AdmissionGate {
  private(set) var admission = Admission()
  private let loop: EventLoop
  private let delegate: any AdmissionGateDelegate
  private let scratch: LinkScratch
  private var random: SeededRandom
  private var pendingStreams: [PendingStream] = []
  private var timer: Timer?

  init(_ loop: EventLoop, _ scratch: LinkScratch, _ delegate: any AdmissionGateDelegate) {
    self.loop = loop
    self.scratch = scratch
    self.delegate = delegate
    var seed: UInt64 = 0
    // Without a seed the drops are merely foreseeable.
    _ = withUnsafeMutableBytes(of: &seed) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
    random = SeededRandom(seed: seed)
    timer = Timer(loop) { [self] in timeUp() }
  }

  func arrive(_ stream: StreamHandoff) {
    let source = Self.source(stream)
    if admission.arrive(source, random: random.next()) != nil { return Self.refuse(stream) }
    let pendingStream = PendingStream(self, stream, source, deadline: loop.now + Admission.deadline(stream.bearer))
    do throws(SystemError) {
      pendingStream.registration = try loop.add(stream.descriptor, .read, .admission, pendingStream)
    } catch {
      admission.leave(source, hadHandshake: false)
      return Self.refuse(stream)
    }
    pendingStreams.append(pendingStream)
    if timer?.deadline == .never { timer?.set(pendingStream.deadline) }
  }

  /// A handshake that came in by this door is over, one way or the other.
  func handshakeEnded(_ source: UInt64, isKnown: Bool) {
    admission.leave(source, hadHandshake: true)
    if isKnown { admission.met(source) }
    // Whoever waits longest is next.
    for pendingStream in pendingStreams where pendingStream.isReady && admission.begin(pendingStream.source) {
      return open(pendingStream)
    }
  }

  func close() {
    for pendingStream in pendingStreams { end(pendingStream) }
    timer?.cancel()
    timer = nil
  }

  // MARK: Inside

  fileprivate func serve(_ pendingStream: PendingStream) {
    guard pendingStream.registration != nil else { return }
    let isTCP = pendingStream.stream.unitBytesMax == Int.max
    let room = isTCP ? PendingStream.bytesNeeded - pendingStream.bytes.count : scratch.incoming.count
    let count = recv(pendingStream.stream.descriptor, scratch.incoming.baseAddress!, room, 0)
    if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { return }
    if count <= 0 {
      admission.count(.silent)
      return end(pendingStream)
    }
    pendingStream.bytes += scratch.incoming[..<count]
    switch Admission.isClientHello(pendingStream.bytes) {
    case nil: return
    case false:
      admission.count(.notTLS)
      Self.tellRefused(pendingStream.stream)
      return end(pendingStream)
    default: pendingStream.isReady = true
    }
    if admission.begin(pendingStream.source) {
      open(pendingStream)
    } else if let registration = pendingStream.registration {
      // It has said what it can: from here on it waits for a place.
      loop.modify(registration, [])
    }
  }

  private func open(_ pendingStream: PendingStream) {
    pendingStreams.removeAll { $0 === pendingStream }
    if let registration = pendingStream.registration { loop.remove(registration) }
    pendingStream.registration = nil
    delegate.streamAdmitted(
      pendingStream.stream, pendingStream.bytes, source: pendingStream.source, deadline: pendingStream.deadline)
  }

  private func end(_ pendingStream: PendingStream) {
    pendingStreams.removeAll { $0 === pendingStream }
    admission.leave(pendingStream.source, hadHandshake: false)
    if let registration = pendingStream.registration { loop.remove(registration) }
    pendingStream.registration = nil
    CSystem.close(pendingStream.stream.descriptor)
  }

  private func timeUp() {
    for pendingStream in pendingStreams where pendingStream.deadline <= loop.now {
      admission.count(.silent)
      end(pendingStream)
    }
    var earliest = Instant.never
    for pendingStream in pendingStreams { earliest = min(earliest, pendingStream.deadline) }
    timer?.set(earliest)
  }

  private static func refuse(_ stream: StreamHandoff) {
    tellRefused(stream)
    CSystem.close(stream.descriptor)
  }

  private static func tellRefused(_ stream: StreamHandoff) {
    // alert, TLS 1.2's number, two bytes: fatal, internal_error (RFC 8446, section 6)
    let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 80]
    _ = send(stream.descriptor, alert, alert.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
  }

  /// The address without port, hashed (FNV-1a). Two addresses with one hash share their places, which hurts nobody.
  private static func source(_ stream: StreamHandoff) -> UInt64 {
    let text = Array(stream.remote.utf8)
    let isIP = stream.bearer != .bluetoothLE
    let end = isIP ? text.lastIndex(of: UInt8(ascii: ":")) ?? text.count : text.count
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text[..<end] { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return hash
  }
}

/// One stream at the door.
private final class PendingStream: EventSource {
  static let bytesNeeded = 6

  let stream: StreamHandoff
  let source: UInt64
  let deadline: Instant
  var bytes: [UInt8] = []
  var registration: Registration?
  /// It speaks TLS and waits for a handshake's place.
  var isReady = false
  private let admissionGate: AdmissionGate

  init(_ admissionGate: AdmissionGate, _ stream: StreamHandoff, _ source: UInt64, deadline: Instant) {
    self.admissionGate = admissionGate
    self.stream = stream
    self.source = source
    self.deadline = deadline
  }

  func ready(_ events: UInt32) {
    // A stream that waits for its place reports nothing but its end.
    if isReady && events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { return admissionGate.gone(self) }
    if !isReady { admissionGate.serve(self) }
  }
}

extension AdmissionGate {
  fileprivate func gone(_ pendingStream: PendingStream) { end(pendingStream) }
}
