import CSystem
import Primitives
import Reactor

/// A connection of the status page. The connection reads a request, writes a response, and discards further input until
/// the peer closes.
///
/// Further input must be read, because closing a socket with unread input resets the connection, and the response is
/// lost.
final class PageConnection: EventSource {
  /// The time within which the peer must send the head of its request.
  static let requestTime = TimeSpan.seconds(5)
  /// The time within which the peer must accept the complete response.
  static let responseTime = TimeSpan.seconds(10)
  /// The time for which the connection waits for the peer to close after the response is sent.
  static let lingerTime = TimeSpan.seconds(1)
  /// The maximum number of bytes that are discarded on one connection after the response, such as the body of a
  /// request.
  static let droppedBytesMax = 65_536

  private enum State {
    case request, response, lingering
  }

  /// The Ethernet address of the peer's station, or `PageServer.others` if the station is unknown.
  let source: UInt64
  private let descriptor: CInt
  private var server: PageServer?
  private var registration: Registration!
  private var timer: Timer?
  private var state = State.request
  /// The received part of the request. In the state `response`, the bytes of the response.
  private var bytes: [UInt8] = []
  /// The number of bytes of the response that were sent.
  private var sentBytes = 0
  /// The time at which the peer last accepted bytes of the response.
  private var takenAt = Instant.zero
  private var droppedBytes = 0

  /// The connection closes `descriptor` at its end. If the initialiser throws, the caller must close `descriptor`.
  /// Throws the errors of epoll_ctl(2).
  init(_ server: PageServer, _ descriptor: CInt, source: UInt64) throws(SystemError) {
    self.server = server
    self.descriptor = descriptor
    self.source = source
    registration = try server.loop.add(descriptor, .read, .diagnostics, self)
    timer = Timer(server.loop) { [self] in close() }
    timer?.set(after: Self.requestTime)
  }

  /// Whether no response is pending. If no response is pending, no complete request has arrived, or the complete
  /// response is sent. Browsers open connections without a request, for later use.
  var isIdle: Bool { state != .response }

  /// Whether the peer has accepted no bytes of its response for `PageServer.stallTime`.
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
