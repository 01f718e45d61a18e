import CSystem
import Primitives

/// Opens a non-blocking IPv4 socket that is bound to one interface, so that it cannot be reached from other networks of
/// the box. A stream socket can be bound while old connections of its port are in TIME_WAIT (SO_REUSEADDR). A datagram
/// socket can send broadcasts (SO_BROADCAST).
///
/// `filter` attaches a socket filter, before the socket can receive anything. The closure returns 0, or -1 with errno
/// set.
///
/// Errors: EADDRINUSE, EADDRNOTAVAIL, ENODEV, those of socket, and EACCES for a port below 1024 without
/// CAP_NET_BIND_SERVICE.
public func openInterfaceSocket(
  isStream: Bool, address: UInt32, port: UInt16, interface: String, filter: ((CInt) -> CInt)? = nil
) throws(SystemError) -> CInt {
  let type = (isStream ? SOCK_STREAM : SOCK_DGRAM).rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
  let descriptor = socket(AF_INET, CInt(bitPattern: type), 0)
  if descriptor < 0 { throw SystemError.last }
  var isOn: CInt = 1
  let option = isStream ? SO_REUSEADDR : SO_BROADCAST
  let name = Array(interface.utf8)
  let local = interfaceSocketAddress(address, port)
  let isBound =
    (filter?(descriptor) ?? 0) == 0
    && setsockopt(descriptor, SOL_SOCKET, option, &isOn, socklen_t(MemoryLayout<CInt>.size)) == 0
    && setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.count)) == 0
    && withUnsafePointer(to: local) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    } == 0
  if isBound { return descriptor }
  let error = SystemError.last
  CSystem.close(descriptor)
  throw error
}

/// An IPv4 socket address. `address` and `port` are in host byte order.
public func interfaceSocketAddress(_ address: UInt32, _ port: UInt16) -> sockaddr_in {
  var socketAddress = sockaddr_in()
  socketAddress.sin_family = sa_family_t(AF_INET)
  socketAddress.sin_port = port.bigEndian
  socketAddress.sin_addr.s_addr = address.bigEndian
  return socketAddress
}
