import Bearer
import CSystem
import Primitives
import Reactor

/// Outgoing TCP connections that are being established.
final class StreamDialer {
  /// The maximum number of concurrent dials: twice the candidates that one burst of discovery finds on a full network.
  /// A further dial fails at once.
  static let dialsMax = 32
  /// The time after which a dial fails.
  static let connectTimeDefault = TimeSpan.seconds(5)

  fileprivate let connectTime: TimeSpan
  private let loop: EventLoop
  private var connected: ((CInt, IPEndpoint, UInt32) -> Void)?
  private var failed: ((UInt32, String) -> Void)?
  private var dials: [Dial] = []
  private var refusals: [(token: UInt32, reason: String)] = []
  private var refusalTimer: Timer?

  /// The event loop calls both closures, never before `dial` returns. `connected` receives ownership of the descriptor.
  init(
    _ loop: EventLoop, connectTime: TimeSpan = connectTimeDefault,
    connected: @escaping (CInt, IPEndpoint, UInt32) -> Void, failed: @escaping (UInt32, String) -> Void
  ) {
    self.loop = loop
    self.connectTime = connectTime
    self.connected = connected
    self.failed = failed
    refusalTimer = Timer(loop) { [self] in reportRefusals() }
  }

  func dial(_ endpoint: IPEndpoint, token: UInt32) {
    if dials.count >= Self.dialsMax {
      return refuse(token, "\(Self.dialsMax) dials are already in progress: \(endpoint.text) is tried later")
    }
    if endpoint.isLinkLocalIPv6, endpoint.scope == 0 {
      return refuse(token, "\(endpoint.text) is link-local: write it with its interface, as in fe80::1%eth0")
    }
    do {
      try start(endpoint, token)
    } catch {
      refuse(token, "\(endpoint.text): \(error.text)")
    }
  }

  /// Cancels every dial without a callback.
  func close() {
    for dial in dials {
      dial.end()
      CSystem.close(dial.descriptor)
    }
    dials = []
    refusals = []
    refusalTimer?.cancel()
    refusalTimer = nil
    connected = nil
    failed = nil
  }

  private func start(_ endpoint: IPEndpoint, _ token: UInt32) throws(SystemError) {
    let descriptor = try openStreamSocket(endpoint.isIPv4 ? AF_INET : AF_INET6)
    let dial = Dial(descriptor, endpoint, token)
    tuneStream(descriptor)
    do throws(SystemError) {
      let address = SocketAddress(endpoint)
      if address.with({ connect(descriptor, $0, $1) }) != 0, csystem_errno() != EINPROGRESS { throw SystemError.last }
      try dial.begin(loop, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
    dials.append(dial)
  }

  fileprivate func ready(_ dial: Dial) {
    forget(dial)
    var code: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    if getsockopt(dial.descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { code = csystem_errno() }
    if code == 0 {
      connected?(dial.descriptor, dial.endpoint, dial.token)
    } else {
      CSystem.close(dial.descriptor)
      failed?(dial.token, "\(dial.endpoint.text): \(SystemError(code: code).text)")
    }
  }

  fileprivate func expired(_ dial: Dial) {
    forget(dial)
    CSystem.close(dial.descriptor)
    failed?(dial.token, "\(dial.endpoint.text): no answer in \(connectTime.milliseconds) ms")
  }

  private func forget(_ dial: Dial) {
    dial.end()
    dials.removeAll { $0 === dial }
  }

  private func refuse(_ token: UInt32, _ reason: String) {
    refusals.append((token, reason))
    refusalTimer?.set(.zero)
  }

  private func reportRefusals() {
    let due = refusals
    refusals = []
    for refusal in due { failed?(refusal.token, refusal.reason) }
  }
}

/// One connection attempt in progress. The attempt retains the dialer until `end` is called.
private final class Dial: EventSource {
  let descriptor: CInt
  let endpoint: IPEndpoint
  let token: UInt32
  private var loop: EventLoop?
  private var dialer: StreamDialer?
  private var registration: Registration?
  private var timer: Timer?

  init(_ descriptor: CInt, _ endpoint: IPEndpoint, _ token: UInt32) {
    self.descriptor = descriptor
    self.endpoint = endpoint
    self.token = token
  }

  func begin(_ loop: EventLoop, _ dialer: StreamDialer) throws(SystemError) {
    registration = try loop.add(descriptor, .write, .admission, self)
    self.loop = loop
    self.dialer = dialer
    let timer = Timer(loop) { [self] in self.dialer?.expired(self) }
    timer.set(monotonicNow() + dialer.connectTime)
    self.timer = timer
  }

  func ready(_ events: UInt32) { dialer?.ready(self) }

  func end() {
    if let registration { loop?.remove(registration) }
    registration = nil
    timer?.cancel()
    timer = nil
    dialer = nil
    loop = nil
  }
}
