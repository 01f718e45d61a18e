import CSystem
import Primitives
import Reactor

/// One connection of the status page. It reads a request, writes a response, and discards further input until the peer
/// closes.
///
/// Closing a socket with unread input would reset the connection, and the response would be lost.
final class PageConnection: EventSource {
  /// The timeout for the head of the request.
  static let requestTime = TimeSpan.seconds(5)
  /// The timeout for sending the whole response.
  static let responseTime = TimeSpan.seconds(10)
  /// How long the connection then waits for the peer to close.
  static let lingerTime = TimeSpan.seconds(1)
  /// The maximum number of bytes to discard after the response, such as the body of a request.
  static let droppedBytesMax = 65_536

  private enum State {
    case request, response, lingering
  }

  /// The peer's station as an Ethernet address, or `PageServer.others`.
  let source: UInt64
  private let descriptor: CInt
  private var server: PageServer?
  private var registration: Registration!
  private var timer: Timer?
  private var state = State.request
  /// The request while it is read, then the response.
  private var bytes: [UInt8] = []
  /// The number of bytes of the response that are sent.
  private var sentBytes = 0
  /// When the peer last accepted bytes of the response.
  private var takenAt = Instant.zero
  private var droppedBytes = 0

  /// Takes over `descriptor` unless it throws. Throws the errors of epoll_ctl.
  init(_ server: PageServer, _ descriptor: CInt, source: UInt64) throws(SystemError) {
    self.server = server
    self.descriptor = descriptor
    self.source = source
    registration = try server.loop.add(descriptor, .read, .diagnostics, self)
    timer = Timer(server.loop) { [self] in close() }
    timer?.set(after: Self.requestTime)
  }

  /// Whether no response is pending. Either no request has arrived, because browsers open connections in reserve, or
  /// the whole response is sent.
  var isIdle: Bool { state != .response }

  /// Whether the peer has accepted nothing of its response for `PageServer.stallTime`.
  var isStalled: Bool {
    guard let server else { return true }
    return state == .response && server.loop.now - takenAt >= PageServer.stallTime
  }

  func ready(_ events: UInt32) {
    switch state {
    case .request: readRequest()
    case .response: send()
    case .lingering: drop()
    }
  }

  func close() {
    guard let server else { return }
    self.server = nil
    timer?.cancel()
    timer = nil
    server.loop.remove(registration)
    CSystem.close(descriptor)
    server.ended(self)
  }

  private func readRequest() {
    guard let server else { return }
    let room = PageRequest.headBytesMax - bytes.count
    let count = withUnsafeTemporaryAllocation(byteCount: PageRequest.headBytesMax, alignment: 1) { buffer in
      let count = recv(descriptor, buffer.baseAddress, room, 0)
      if count > 0 { bytes += UnsafeRawBufferPointer(rebasing: buffer[..<count]) }
      return count
    }
    if count < 0 {
      if csystem_errno() != EAGAIN && csystem_errno() != EINTR { close() }
      return
    }
    if count == 0 { return close() }
    switch PageRequest(bytes, host: server.host) {
    case .incomplete: return
    case .page(let isHeadOnly): bytes = PageResponse.page(server.page(), isHeadOnly: isHeadOnly)
    case .refused(let refusal, let isHeadOnly): bytes = PageResponse.refusal(refusal, isHeadOnly: isHeadOnly)
    }
    state = .response
    takenAt = server.loop.now
    timer?.set(after: Self.responseTime)
    send()
  }

  private func send() {
    guard let server else { return }
    let count = bytes.withUnsafeBytes {
      CSystem.send(descriptor, $0.baseAddress! + sentBytes, $0.count - sentBytes, CInt(MSG_NOSIGNAL))
    }
    if count < 0 && csystem_errno() != EAGAIN && csystem_errno() != EINTR { return close() }
    if count > 0 {
      sentBytes += count
      takenAt = server.loop.now
    }
    guard sentBytes == bytes.count else { return server.loop.modify(registration, .write) }
    state = .lingering
    bytes = []
    shutdown(descriptor, CInt(SHUT_WR))
    timer?.set(after: Self.lingerTime)
    server.loop.modify(registration, .read)
  }

  private func drop() {
    let count = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      recv(descriptor, buffer.baseAddress, buffer.count, 0)
    }
    if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { return }
    droppedBytes += max(count, 0)
    if count <= 0 || droppedBytes > Self.droppedBytesMax { close() }
  }
}
