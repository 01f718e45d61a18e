import CSystem
import Primitives
import Reactor

/// The channel of one peer of a `NetworkAccessPoint`. This object handles the setup and the end of the channel; the
/// kernel carries the frames.
final class NetworkConnection: EventSource {
  /// The time for a refused peer to read the response, before its channel is closed. Linux discards unread data when a
  /// channel ends.
  private static let refusedMax = TimeSpan.seconds(1)

  let peer: UInt64
  /// The peer's interface and the time of joining; nil before the peer has joined.
  private(set) var membership: (interface: String, since: Instant)?

  private let loop: EventLoop
  private let descriptor: CInt
  private let setupMax: TimeSpan
  private var isRefused = false
  /// The access point; nil after the channel has ended.
  private var owner: NetworkAccessPoint?
  private var registration: Registration?
  private var timer: Timer?

  /// Takes ownership of the connected `descriptor`, even if the initialiser throws. The channel is closed if the peer
  /// has sent no setup request within `setupMax`.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ peer: UInt64, _ setupMax: TimeSpan, _ owner: NetworkAccessPoint
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.peer = peer
    self.setupMax = setupMax
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      _ = CSystem.close(descriptor)
      throw error
    }
    self.owner = owner
    timer = Timer(loop) { [self] in close() }
    timer?.set(after: setupMax)
  }

  func close() {
    guard let owner, let registration else { return }
    self.owner = nil
    loop.remove(registration)
    timer?.cancel()
    timer = nil
    // The kernel keeps the interface, and the channel with it, until this process requests their removal.
    if membership != nil { owner.left(self) }
    _ = CSystem.close(descriptor)
    owner.ended(self)
  }

  func ready(_ events: UInt32) {
    guard let owner, let registration, membership == nil, !isRefused else { return close() }
    // The buffer has one byte more than a request, so that an SDU that is too long is detected. MSG_PEEK leaves the
    // request unread for the kernel, which answers it.
    var request = [UInt8](repeating: 0, count: BNEPSetup.requestBytesMax + 1)
    let count = recv(descriptor, &request, request.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
    if count < 0, csystem_errno() == EAGAIN || csystem_errno() == EINTR { return }
    guard count > 0 else { return close() }
    switch BNEPSetup.verdict(on: Array(request[..<count])) {
    case .malformed: close()
    case .refused(let refusal): refuse(refusal, registration)
    case .welcome:
      guard let interface = owner.join(self, descriptor) else { return refuse(.notAllowed, registration) }
      membership = (interface, loop.now)
      timer?.cancel()
      loop.modify(registration, [])
    }
  }

  private func refuse(_ refusal: BNEPSetup.Refusal, _ registration: Registration) {
    let response = BNEPSetup.response(refusal)
    _ = CSystem.send(descriptor, response, response.count, CInt(MSG_NOSIGNAL))
    isRefused = true
    timer?.set(after: min(setupMax, Self.refusedMax))
    loop.modify(registration, [])
  }
}
