import CSystem
import Primitives

/// Opens an IPv4 socket that is bound to one interface and unreachable from the box's other networks. A stream socket
/// may reuse the address of connections that have ended (SO_REUSEADDR); a datagram socket may broadcast.
///
/// `filter` attaches a socket filter before the socket can receive anything; it returns 0, or -1 with errno set.
///
/// Errors: EADDRINUSE, EADDRNOTAVAIL, ENODEV, EACCES for a port below 1024 without CAP_NET_BIND_SERVICE, and those of
/// socket.
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
