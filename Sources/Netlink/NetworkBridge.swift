import CSystem
import Reactor

/// Creates a bridge and brings it up; an existing bridge gets the same settings. A new port carries frames at once,
/// without the forward delay of the spanning tree. The bridge has a fixed Ethernet address, which would otherwise
/// change with its ports.
///
/// Needs CAP_NET_ADMIN. Errors: EPERM; EOPNOTSUPP if the kernel has no bridges or another kind of interface has the
/// name.
public func makeBridge(_ name: StaticString, ethernetAddress: UInt64) throws(SystemError) {
  var message = NetlinkMessage(link: 0, UInt16(NLM_F_CREATE), isUp: true)
  message.append(attribute: UInt16(IFLA_IFNAME), name)
  message.append(UInt16(10))
  message.append(UInt16(IFLA_ADDRESS))
  message.append((ethernetAddress << 16).bigEndian)  // with two bytes of padding
  message.append(UInt16(28))
  message.append(UInt16(IFLA_LINKINFO))
  message.append(attribute: UInt16(IFLA_INFO_KIND), "bridge")
  message.append(UInt16(12))
  message.append(UInt16(IFLA_INFO_DATA))
  message.append(attribute: UInt16(IFLA_BR_FORWARD_DELAY), 0)
  try message.exchange()
}

/// Removes a bridge or another interface that a program created. Needs CAP_NET_ADMIN. Errors: EPERM; EOPNOTSUPP for the
/// interface of a device; ENODEV or EINVAL if the interface does not exist.
public func removeInterface(_ interfaceIndex: UInt32) throws(SystemError) {
  var message = NetlinkMessage(link: interfaceIndex, type: UInt16(RTM_DELLINK), 0, isUp: nil)
  try message.exchange()
}

/// Makes an interface a port of a bridge, or removes it from its bridge if `bridgeIndex` is 0. A new port loses its
/// IPv6 addresses: they no longer work, because the bridge takes all frames sent to them. If these addresses remained,
/// other nodes would learn them and dial them in vain.
///
/// Needs CAP_NET_ADMIN. Errors: EPERM; ENODEV; EOPNOTSUPP for an interface that cannot be a port, such as a Wi-Fi
/// station.
public func setBridge(of interfaceIndex: UInt32, _ bridgeIndex: UInt32) throws(SystemError) {
  var message = NetlinkMessage(link: interfaceIndex, 0, isUp: nil)
  message.append(attribute: UInt16(IFLA_MASTER), bridgeIndex)
  try message.exchange()
  if bridgeIndex != 0 { removeIPv6Addresses(interfaceIndex) }
}

private func removeIPv6Addresses(_ interfaceIndex: UInt32) {
  var list: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&list) == 0 else { return }
  defer { freeifaddrs(list) }
  var next = list
  while let entry = next?.pointee {
    next = entry.ifa_next
    guard let address = entry.ifa_addr, address.pointee.sa_family == sa_family_t(AF_INET6),
      if_nametoindex(entry.ifa_name) == interfaceIndex
    else { continue }
    var message = NetlinkMessage(UInt16(RTM_DELADDR), 0)
    message.append(UInt8(AF_INET6))  // ifaddrmsg
    message.append(UInt8(64))
    message.append(UInt16(0))
    message.append(interfaceIndex)
    message.append(UInt16(20))
    message.append(UInt16(IFA_LOCAL))
    address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
      withUnsafeBytes(of: $0.pointee.sin6_addr) { for byte in $0 { message.append(byte) } }
    }
    _ = try? message.exchange()
  }
}
