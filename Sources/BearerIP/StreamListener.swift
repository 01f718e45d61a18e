import Bearer
import CSystem
import Primitives
import Reactor

/// A listening TCP socket for both IP versions, or for IPv4 only where IPv6 is disabled.
final class StreamListener {
  /// The maximum number of established connections that wait in the kernel to be accepted.
  static let backlog: CInt = 64

  let port: UInt16
  private let acceptor: Acceptor

  /// `accepted` receives ownership of the descriptor. `shortage` is called with the error when accepting begins to
  /// fail, and with nil when accepting works again. Errors: EADDRINUSE, EACCES for a port below 1024, and those of
  /// socket.
  init(
    _ loop: EventLoop, port: UInt16, accepted: @escaping (CInt, IPEndpoint) -> Void,
    shortage: @escaping (SystemError?) -> Void
  ) throws(SystemError) {
    let descriptor = try Self.open(port)
    self.port = localEndpoint(descriptor)?.port ?? port
    acceptor = try Acceptor(loop, descriptor, accept: { Self.accept($0, accepted) }, shortage: shortage)
  }

  func close() { acceptor.close() }

  private static func accept(_ listener: CInt, _ accepted: (CInt, IPEndpoint) -> Void) -> Acceptor.Outcome {
    var address = SocketAddress()
    let flags = CInt(bitPattern: SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let connection = address.fill { accept4(listener, $0, $1, flags) }
    if connection < 0 { return Acceptor.Outcome(.last) }
    if let endpoint = address.endpoint { accepted(connection, endpoint) } else { CSystem.close(connection) }
    return .taken
  }

  private static func open(_ port: UInt16) throws(SystemError) -> CInt {
    do {
      return try open(AF_INET6, port)
    } catch {
      // The kernel has no IPv6, or IPv6 is disabled for every interface.
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
