import Bearer
import CSystem
import Primitives
import Reactor
import Status

/// Buffers that all links share, which is possible because one thread serves one link at a time.
final class LinkScratch {
  static let byteCount = EventLoop.callBytesMax + Limits.frameBytesMax
  let incoming = UnsafeMutableRawBufferPointer.allocate(byteCount: EventLoop.callBytesMax, alignment: 16)
  let outgoing = UnsafeMutableRawBufferPointer.allocate(byteCount: Limits.frameBytesMax, alignment: 16)
  /// The number of streams that linger (see `LinkStream`).
  fileprivate(set) var lingering = 0
}

/// A connected socket in the event loop, which a link driver uses as its stream.
///
/// Closing a socket with unread input resets the connection. A reset can make the other side lose unread bytes, such as
/// the alert or goodbye with the reason (RFC 1122, section 4.2.2.13). So the socket lingers: it sends nothing more and
/// discards further input, and closes when the other side has closed, or after `lingerTime`.
final class LinkStream: LinkIO, EventSource {
  static let lingerTime = TimeSpan.seconds(2)
  /// The maximum number of bytes read and discarded from a lingering stream.
  static let lingerBytesMax = 1 << 20
  /// The maximum number of streams that linger at once; further streams close without lingering. The limit is needed
  /// because anyone who can connect can make a stream linger.
  static let lingeringMax = 32

  var now: Instant { loop.now }

  private let loop: EventLoop
  private let descriptor: CInt
  private let isTCP: Bool
  /// Whether the socket is a Bluetooth LE channel, which accepts only complete units (SDUs).
  private let isL2CAP: Bool
  private let scratch: LinkScratch
  private var registration: Registration?
  private var timer: Timer?
  private var driver: LinkDriver?
  private var waitsForRoom = false
  /// Whether the kernel has reported the socket as writable and no `send` was called since.
  private var hasRoom = false
  private var isLingering = false
  private var bytesToDiscard = LinkStream.lingerBytesMax

  /// Becomes the owner of the descriptor, and closes the descriptor before throwing an error. Errors: those of
  /// epoll_ctl.
  init(_ loop: EventLoop, _ handoff: StreamHandoff, _ scratch: LinkScratch) throws(SystemError) {
    self.loop = loop
    self.scratch = scratch
    descriptor = handoff.descriptor
    if case .ip = handoff.remote { isTCP = true } else { isTCP = false }
    if case .bluetooth = handoff.remote { isL2CAP = true } else { isL2CAP = false }
    do throws(SystemError) {
      registration = try loop.add(descriptor, .read, .link, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop) { [self] in timeUp() }
  }

  /// Directs all events to the driver until it closes the stream.
  func serve(_ driver: LinkDriver) { self.driver = driver }

  func ready(_ events: UInt32) {
    hasRoom = hasRoom || events & EPOLLOUT.rawValue != 0
    guard let driver else { return discard() }
    driver.ready(
      canRead: events & EPOLLIN.rawValue != 0, canWrite: events & EPOLLOUT.rawValue != 0,
      isBroken: events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0)
  }

  // MARK: LinkIO

  var segments: SegmentCounts? {
    var sent: UInt32 = 0, resent: UInt32 = 0
    guard isTCP, csystem_tcp_segments(descriptor, &sent, &resent) else { return nil }
    return SegmentCounts(sent: UInt64(sent), resent: UInt64(resent))
  }

  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome {
    outcome(recv(descriptor, buffer.baseAddress!, buffer.count, 0), ofEnd: .ended)
  }

  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome {
    let sent = outcome(CSystem.send(descriptor, bytes.baseAddress!, bytes.count, CInt(MSG_NOSIGNAL)), ofEnd: .later)
    if sent == .later && hasRoom && isL2CAP { widenBuffer() }
    hasRoom = false
    return sent
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
    // Only TCP can close one direction. Over Bluetooth, a shutdown ends both directions of the channel.
    if isTCP { shutdown(descriptor, CInt(SHUT_WR)) }
    waitForRoom(false)
    isLingering = true
    scratch.lingering += 1
    timer?.set(after: Self.lingerTime)
  }

  // MARK: Internals

  /// Doubles the send buffer. The kernel reports a socket as writable when half of its send buffer is free. If the next
  /// unit does not fit into that half, `send` fails and the kernel repeats the report without end. An endless report
  /// happens with controllers that accept only short packets, because the headers of those packets need most of the
  /// buffer.
  private func widenBuffer() {
    var byteCount: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &byteCount, &size) == 0 else { return }
    // setsockopt doubles the requested size, so the present size is requested (socket(7), SO_SNDBUF).
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &byteCount, size)
  }

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
