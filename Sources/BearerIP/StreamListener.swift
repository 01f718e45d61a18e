import Bearer
import CSystem
import Primitives
import Reactor

/// A listening TCP socket for both families, or for IPv4 where IPv6 is switched off.
final class StreamListener: EventSource {
  /// Connections the kernel completes before anybody accepts them.
  static let backlog: CInt = 64
  /// The most connections one wake-up accepts; what is left is reported again.
  static let acceptsMax = 16
  /// How long accepting rests when descriptors or memory ran out.
  static let shortageTime = TimeSpan.seconds(1)

  let port: UInt16
  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var pause: Timer?
  private var accepted: ((CInt, IPEndpoint) -> Void)?
  private var shortage: ((SystemError) -> Void)?
  private var isShortageReported = false

  /// `accepted` owns the descriptor it is given; `shortage` runs once per shortage.
  /// Errors: EADDRINUSE, EACCES for a port below 1024, and what socket says.
  init(
    _ loop: EventLoop, port: UInt16, accepted: @escaping (CInt, IPEndpoint) -> Void,
    shortage: @escaping (SystemError) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.accepted = accepted
    self.shortage = shortage
    let descriptor = try Self.open(port)
    self.descriptor = descriptor
    self.port = localEndpoint(descriptor)?.port ?? port
    pause = Timer(loop) { [self] in resume() }
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
  }

  func ready(_ events: UInt32) {
    for _ in 0..<Self.acceptsMax {
      guard registration != nil else { return }  // closed by `accepted`
      var address = SocketAddress()
      let flags = CInt(bitPattern: SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      let connection = address.fill { accept4(descriptor, $0, $1, flags) }
      if connection >= 0 {
        isShortageReported = false
        if let endpoint = address.endpoint { accepted?(connection, endpoint) } else { CSystem.close(connection) }
        continue
      }
      switch csystem_errno() {
      case EAGAIN: return
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        rest(SystemError.last)
        return
      default: continue  // accept(2): errors of the connection that is being accepted, not of the listener
      }
    }
  }

  func close() {
    pause?.cancel()
    pause = nil
    if let registration { loop.remove(registration) }
    registration = nil
    if accepted != nil { CSystem.close(descriptor) }
    accepted = nil
    shortage = nil
  }

  private func rest(_ error: SystemError) {
    // Level-triggered: a listener that cannot accept would wake the loop without end.
    if let registration { loop.modify(registration, []) }
    pause?.set(after: Self.shortageTime)
    if isShortageReported { return }
    isShortageReported = true
    shortage?(error)
  }

  private func resume() {
    if let registration { loop.modify(registration, .read) }
  }

  private static func open(_ port: UInt16) throws(SystemError) -> CInt {
    do {
      return try open(AF_INET6, port)
    } catch {
      // No IPv6 in this kernel, or disabled for every interface.
      guard error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL else { throw error }
      return try open(AF_INET, port)
    }
  }

  private static func open(_ family: CInt, _ port: UInt16) throws(SystemError) -> CInt {
    let descriptor = try openStreamSocket(family)
    _ = setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    if family == AF_INET6 { _ = setOption(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
    let address = SocketAddress(anyOf: family, port: port)
    if address.with({ bind(descriptor, $0, $1) }) != 0 || listen(descriptor, backlog) != 0 {
      let error = SystemError.last
      CSystem.close(descriptor)
      throw error
    }
    return descriptor
  }
}
