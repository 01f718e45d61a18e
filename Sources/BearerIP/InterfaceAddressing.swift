import CSystem
import Reactor

/// Gives an interface an IPv4 address (big-endian number), replacing the same address if it is there.
/// Needs CAP_NET_ADMIN. Errors: EPERM, ENODEV for an interface that is gone, EINVAL.
public func addInterfaceAddress(_ interfaceIndex: UInt32, ipv4: UInt32, prefixLength: UInt8) throws(SystemError) {
  try requestAddress(
    UInt16(RTM_NEWADDR), UInt16(NLM_F_CREATE | NLM_F_REPLACE), interfaceIndex, ipv4, prefixLength)
}

/// Takes an IPv4 address from an interface. Errors: EPERM, ENODEV, EADDRNOTAVAIL when it has not got it.
public func removeInterfaceAddress(_ interfaceIndex: UInt32, ipv4: UInt32, prefixLength: UInt8) throws(SystemError) {
  try requestAddress(UInt16(RTM_DELADDR), 0, interfaceIndex, ipv4, prefixLength)
}

/// RTM_NEWADDR or RTM_DELADDR (rtnetlink(7)).
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

private func load<Value: FixedWidthInteger>(_ bytes: [UInt8], _ offset: Int, as: Value.Type) -> Value {
  bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Value.self) }
}

/// A request to the kernel under construction. Everything in it is in the machine's byte order.
struct NetlinkMessage {
  private var bytes: [UInt8] = []

  /// Begins with the nlmsghdr.
  init(_ type: UInt16, _ flags: UInt16) {
    append(UInt32(0))  // length: filled in by `exchange`
    append(type)
    append(UInt16(NLM_F_REQUEST | NLM_F_ACK) | flags)
    append(UInt32(1))  // sequence
    append(UInt32(0))  // to the kernel
  }

  mutating func append<Value: FixedWidthInteger>(_ value: Value) {
    withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
  }

  mutating func append(attribute: UInt16, _ value: UInt32) {
    append(UInt16(8))
    append(attribute)
    append(value)
  }

  /// Sends it and waits for the answer, which the kernel has ready when `send` returns.
  /// Errors: the answer's errno, and what socket and send say.
  mutating func exchange() throws(SystemError) {
    let length = UInt32(bytes.count)
    withUnsafeBytes(of: length) { for index in 0..<4 { bytes[index] = $0[index] } }
    let type = CInt(bitPattern: SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_NETLINK, type, CInt(NETLINK_ROUTE))
    if descriptor < 0 { throw SystemError.last }
    defer { close(descriptor) }
    if send(descriptor, bytes, bytes.count, 0) < 0 { throw SystemError.last }
    var reply: [UInt8] = [UInt8](repeating: 0, count: 1024)
    let count = recv(descriptor, &reply, reply.count, CInt(MSG_DONTWAIT))
    if count < 0 { throw SystemError.last }
    // nlmsghdr, then nlmsgerr: a negative errno, zero for success.
    guard count >= 20, load(reply, 4, as: UInt16.self) == UInt16(NLMSG_ERROR) else { throw SystemError(code: EPROTO) }
    let code = load(reply, 16, as: Int32.self)
    if code != 0 { throw SystemError(code: 0 &- code) }
  }
}
