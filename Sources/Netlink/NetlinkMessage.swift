import CSystem
import Reactor

/// A request to the kernel under construction (netlink(7)). All fields are in the machine's byte order.
struct NetlinkMessage {
  private var bytes: [UInt8] = []

  /// Begins a message with its header, the nlmsghdr.
  init(_ type: UInt16, _ flags: UInt16) {
    append(UInt32(0))  // length: filled in when the message is sent
    append(type)
    append(UInt16(NLM_F_REQUEST) | flags)
    append(UInt32(1))  // sequence
    append(UInt32(0))  // to the kernel
  }

  /// Begins a message about an interface; index 0 stands for a new interface. `isUp`: whether to switch the interface
  /// on or off; nil leaves its state unchanged.
  init(link interfaceIndex: UInt32, type: UInt16 = UInt16(RTM_NEWLINK), _ flags: UInt16, isUp: Bool?) {
    self.init(type, flags)
    append(UInt32(0))  // ifinfomsg: family, type
    append(interfaceIndex)
    append(isUp == true ? UInt32(IFF_UP) : 0)
    append(isUp == nil ? 0 : UInt32(IFF_UP))  // the flags to change
  }

  mutating func append<Value: FixedWidthInteger>(_ value: Value) {
    withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
  }

  mutating func append(attribute: UInt16, _ value: UInt32) {
    append(UInt16(8))
    append(attribute)
    append(value)
  }

  /// Appends a text attribute with a terminating zero, padded to a multiple of four bytes.
  mutating func append(attribute: UInt16, _ text: StaticString) {
    let count = text.utf8CodeUnitCount
    append(UInt16(4 + count + 1))
    append(attribute)
    for index in 0..<count { append(text.utf8Start[index]) }
    for _ in 0..<(4 - count & 3) { append(UInt8(0)) }
  }

  /// Sends the message to the kernel's routing subsystem, and reads the acknowledgement. Errors: the errno in the
  /// acknowledgement, and those of socket and send.
  @inline(never)
  mutating func exchange() throws(SystemError) {
    let socket = try NetlinkSocket(NETLINK_ROUTE)
    defer { socket.close() }
    setFlags(UInt16(NLM_F_ACK))
    let reply = try socket.request(self)
    if reply.type != UInt16(NLMSG_ERROR) { throw SystemError(code: EPROTO) }
  }

  private mutating func setFlags(_ flags: UInt16) {
    bytes[6] |= UInt8(truncatingIfNeeded: flags)
  }

  func withLength() -> [UInt8] {
    var whole = bytes
    let length = UInt32(bytes.count)
    withUnsafeBytes(of: length) { for index in 0..<4 { whole[index] = $0[index] } }
    return whole
  }
}
