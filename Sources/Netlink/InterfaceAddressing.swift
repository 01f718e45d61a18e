import CSystem
import Reactor

/// Adds an IPv4 address (big-endian number) to an interface, or replaces the same address. Needs CAP_NET_ADMIN. Errors:
/// EPERM, ENODEV for an interface that does not exist, EINVAL.
public func addInterfaceAddress(_ interfaceIndex: UInt32, ipv4: UInt32, prefixLength: UInt8) throws(SystemError) {
  try requestAddress(
    UInt16(RTM_NEWADDR), UInt16(NLM_F_CREATE | NLM_F_REPLACE), interfaceIndex, ipv4, prefixLength)
}

/// Removes an IPv4 address from an interface. Errors: EPERM, ENODEV, EADDRNOTAVAIL if the interface does not have the
/// address.
public func removeInterfaceAddress(_ interfaceIndex: UInt32, ipv4: UInt32, prefixLength: UInt8) throws(SystemError) {
  try requestAddress(UInt16(RTM_DELADDR), 0, interfaceIndex, ipv4, prefixLength)
}

/// Sends RTM_NEWADDR or RTM_DELADDR (rtnetlink(7)).
private func requestAddress(
  _ type: UInt16, _ flags: UInt16, _ interfaceIndex: UInt32, _ ipv4: UInt32, _ prefixLength: UInt8
) throws(SystemError) {
  guard prefixLength <= 32 else { throw SystemError(code: EINVAL) }
  let hostMask: UInt32 = prefixLength == 32 ? 0 : UInt32.max >> UInt32(prefixLength)
  var message = NetlinkMessage(type, flags)
  message.append(UInt8(AF_INET))  // ifaddrmsg
  message.append(prefixLength)
  message.append(UInt8(0))
  message.append(UInt8(0))  // RT_SCOPE_UNIVERSE
  message.append(interfaceIndex)
  message.append(attribute: UInt16(IFA_LOCAL), ipv4.bigEndian)
  message.append(attribute: UInt16(IFA_ADDRESS), ipv4.bigEndian)
  if prefixLength < 31 { message.append(attribute: UInt16(IFA_BROADCAST), (ipv4 | hostMask).bigEndian) }
  try message.exchange()
}

/// Switches an interface on or off, like `ip link set`. Needs CAP_NET_ADMIN. Errors: EPERM, ENODEV, ERFKILL for a
/// blocked radio, and those of the driver.
public func setInterface(_ interfaceIndex: UInt32, up isUp: Bool) throws(SystemError) {
  var message = NetlinkMessage(link: interfaceIndex, 0, isUp: isUp)
  try message.exchange()
}
