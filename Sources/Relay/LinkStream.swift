import Bearer
import CSystem
import Primitives
import Reactor

/// Memory that all links share: one thread serves them in turn.
final class LinkScratch {
  static let byteCount = EventLoop.callBytesMax + Limits.frameBytesMax
  let incoming = UnsafeMutableRawBufferPointer.allocate(byteCount: EventLoop.callBytesMax, alignment: 16)
  let outgoing = UnsafeMutableRawBufferPointer.allocate(byteCount: Limits.frameBytesMax, alignment: 16)
  /// Streams that linger now.
  fileprivate(set) var lingering = 0
}

/// A connected socket in the loop, served by a link driver.
///
/// A socket that is closed while input is unread resets its connection, and the other side may then lose what it has not
/// read: the alert or the goodbye that says why (RFC 1122, 4.2.2.13). So it lingers: it has said its last, reads and
/// forgets what still comes, and closes when the other side has, or after `lingerTime`.
final class LinkStream: LinkIO, EventSource {
  static let lingerTime = TimeSpan.seconds(2)
  /// Bytes that are read of a stream that lingers.
  static let lingerBytesMax = 1 << 20
  /// Streams that linger at once; beyond them they are closed at once. Who can hold a place: whoever could connect.
  static let lingeringMax = 32

  var now: Instant { loop.now }

  private let loop: EventLoop
  private let descriptor: CInt
  private let isByteStream: Bool
  private let scratch: LinkScratch
  private var registration: Registration?
  private var timer: Timer?
  private var driver: LinkDriver?
  private var waitsForRoom = false
  private var isLingering = false
  /// What a stream that lingers may still send.
  private var bytesToDiscard = LinkStream.lingerBytesMax

  /// Takes over the descriptor, also when it throws. Errors: epoll_ctl's.
  init(_ loop: EventLoop, _ handoff: StreamHandoff, _ scratch: LinkScratch) throws(SystemError) {
    self.loop = loop
    self.scratch = scratch
    descriptor = handoff.descriptor
    isByteStream = handoff.unitBytesMax == Int.max
    do throws(SystemError) {
      registration = try loop.add(descriptor, .read, .link, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop) { [self] in timeUp() }
  }

  /// The driver is told of everything from now on, until it closes the stream.
  func serve(_ driver: LinkDriver) { self.driver = driver }

  func ready(_ events: UInt32) {
    guard let driver else { return discard() }
    driver.ready(
      canRead: events & EPOLLIN.rawValue != 0, canWrite: events & EPOLLOUT.rawValue != 0,
      isBroken: events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0)
  }

  // MARK: LinkIO

  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome {
    outcome(recv(descriptor, buffer.baseAddress!, buffer.count, 0), ofEnd: .ended)
  }

  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome {
    outcome(CSystem.send(descriptor, bytes.baseAddress!, bytes.count, CInt(MSG_NOSIGNAL)), ofEnd: .later)
  }

  func waitForRoom(_ waits: Bool) {
    guard let registration, waits != waitsForRoom else { return }
    waitsForRoom = waits
    loop.modify(registration, waits ? [.read, .write] : .read)
  }

  func wake(at instant: Instant) { timer?.set(instant) }

  func close(lingers: Bool) {
    driver = nil
    guard lingers, scratch.lingering < Self.lingeringMax else { return closeNow() }
    // A Bluetooth channel has no direction of its own to close: its end is the whole channel's.
    if isByteStream { shutdown(descriptor, CInt(SHUT_WR)) }
    waitForRoom(false)
    isLingering = true
    scratch.lingering += 1
    timer?.set(after: Self.lingerTime)
  }

  // MARK: Inside

  private func timeUp() {
    if let driver { driver.timeUp() } else { closeNow() }
  }

  private func discard() {
    switch receive(into: scratch.incoming) {
    case .moved(let count):
      bytesToDiscard -= count
      if bytesToDiscard <= 0 { closeNow() }
    case .later: return
    case .ended, .failed: closeNow()
    }
  }

  private func closeNow() {
    guard let registration else { return }
    self.registration = nil
    if isLingering { scratch.lingering -= 1 }
    timer?.cancel()
    timer = nil
    loop.remove(registration)
    CSystem.close(descriptor)
  }

  private func outcome(_ count: Int, ofEnd end: TransferOutcome) -> TransferOutcome {
    if count > 0 { return .moved(count) }
    if count == 0 { return end }
    let error = SystemError.last
    return error.code == EAGAIN || error.code == EINTR ? .later : .failed(error)
  }
}
