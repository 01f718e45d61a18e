import Bearer
import CSystem
import Reactor

/// A `sockaddr` of IPv4 or IPv6.
struct SocketAddress {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

  init() {}

  init(_ endpoint: IPEndpoint) {
    if let ipv4 = endpoint.ipv4 {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = endpoint.port.bigEndian
      address.sin_addr.s_addr = ipv4.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_in.self) }
    } else {
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = endpoint.port.bigEndian
      address.sin6_scope_id = endpoint.scope
      let bytes = endpoint.addressBytes
      withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_in6.self) }
    }
  }

  /// The wildcard address of the address family, with `port`.
  init(anyOf family: CInt, port: UInt16) {
    self.init(
      family == AF_INET
        ? IPEndpoint(ipv4: 0, port: port) : IPEndpoint(high: 0, low: 0, port: port, scope: 0))
  }

  /// The address and port; nil if the family is neither IPv4 nor IPv6.
  var endpoint: IPEndpoint? {
    withUnsafeBytes(of: storage) { bytes in
      switch CInt(storage.ss_family) {
      case AF_INET:
        let address = bytes.loadUnaligned(as: sockaddr_in.self)
        return IPEndpoint(ipv4: UInt32(bigEndian: address.sin_addr.s_addr), port: UInt16(bigEndian: address.sin_port))
      case AF_INET6:
        var address = bytes.loadUnaligned(as: sockaddr_in6.self)
        let (high, low) = withUnsafeBytes(of: &address.sin6_addr) { (bigEndian($0[0..<8]), bigEndian($0[8..<16])) }
        return IPEndpoint(
          high: high, low: low, port: UInt16(bigEndian: address.sin6_port), scope: address.sin6_scope_id)
      default:
        return nil
      }
    }
  }

  /// Calls `body` with the address and its length, as bind and connect require them.
  func with(_ body: (__CONST_SOCKADDR_ARG, socklen_t) -> CInt) -> CInt {
    withUnsafePointer(to: storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(__CONST_SOCKADDR_ARG(__sockaddr__: $0), length) }
    }
  }

  /// Calls `body` with the address and its length, for accept4, getsockname or getpeername to fill in.
  mutating func fill(_ body: (__SOCKADDR_ARG, UnsafeMutablePointer<socklen_t>) -> CInt) -> CInt {
    var filled = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(__SOCKADDR_ARG(__sockaddr__: $0), &filled) }
    }
    length = filled
    return result
  }
}

/// The local address of a connected or bound socket.
func localEndpoint(_ descriptor: CInt) -> IPEndpoint? {
  var address = SocketAddress()
  return address.fill({ getsockname(descriptor, $0, $1) }) == 0 ? address.endpoint : nil
}

/// A non-blocking TCP socket that is closed on exec.
func openStreamSocket(_ family: CInt) throws(SystemError) -> CInt {
  let type = CInt(bitPattern: SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
  let descriptor = socket(family, type, 0)
  if descriptor < 0 { throw SystemError.last }
  return descriptor
}

func setOption(_ descriptor: CInt, _ level: CInt, _ name: CInt, _ value: CInt) -> Bool {
  var value = value
  return setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
}

/// Sets the socket options of a stream for a link. TCP keep-alive stays off, because each link checks itself whether
/// the neighbour is alive.
func tuneStream(_ descriptor: CInt) {
  _ = setOption(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
  _ = setOption(descriptor, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, unacknowledgedMillisecondsMax)
  _ = setOption(descriptor, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, unsentBytesMax)
}

/// The time in milliseconds after which the kernel closes a connection whose data is not acknowledged (RFC 5482).
let unacknowledgedMillisecondsMax: CInt = 20_000
/// The limit of unsent bytes in the kernel's send queue (TCP_NOTSENT_LOWAT). An urgent frame waits until all unsent
/// bytes in that queue are sent.
let unsentBytesMax: CInt = 131_072
