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

  fileprivate mutating func setFlags(_ flags: UInt16) {
    bytes[6] |= UInt8(truncatingIfNeeded: flags)
  }

  fileprivate func withLength() -> [UInt8] {
    var whole = bytes
    let length = UInt32(bytes.count)
    withUnsafeBytes(of: length) { for index in 0..<4 { whole[index] = $0[index] } }
    return whole
  }
}

/// The first message of the kernel's reply.
struct NetlinkReply {
  var type: UInt16
  /// The bytes after the nlmsghdr.
  var payload: ArraySlice<UInt8>

  /// The value of the first attribute of type `wanted` at or after `offset` of the payload; nil if there is none.
  func attribute(_ wanted: UInt16, from offset: Int) -> ArraySlice<UInt8>? {
    var at = payload.startIndex + offset
    while at + 4 <= payload.endIndex {
      let length = Int(payload.native(at, as: UInt16.self))
      guard length >= 4, at + length <= payload.endIndex else { return nil }
      if payload.native(at + 2, as: UInt16.self) & 0x3FFF == wanted { return payload[(at + 4)..<(at + length)] }
      at += (length + 3) & ~3
    }
    return nil
  }
}

/// A netlink socket for requests. The kernel has queued its reply when `send` returns, so reading the reply never
/// blocks.
struct NetlinkSocket {
  private let descriptor: CInt

  init(_ family: CInt) throws(SystemError) {
    descriptor = socket(AF_NETLINK, CInt(bitPattern: SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), family)
    if descriptor < 0 { throw SystemError.last }
  }

  func close() { CSystem.close(descriptor) }

  /// Sends a request and returns the reply. Errors: the errno in the kernel's reply, and those of send and recv.
  func request(_ message: NetlinkMessage) throws(SystemError) -> NetlinkReply {
    let bytes = message.withLength()
    if send(descriptor, bytes, bytes.count, 0) < 0 { throw SystemError.last }
    var buffer: [UInt8] = [UInt8](repeating: 0, count: 8192)
    let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    if count < 0 { throw SystemError.last }
    guard count >= 16 else { throw SystemError(code: EPROTO) }
    let length = min(Int(buffer[...].native(0, as: UInt32.self)), count)
    guard length >= 16 else { throw SystemError(code: EPROTO) }
    let reply = NetlinkReply(type: buffer[...].native(4, as: UInt16.self), payload: buffer[16..<length])
    if reply.type == UInt16(NLMSG_ERROR) {
      // The payload is an nlmsgerr: a negative errno, or zero for success.
      guard reply.payload.count >= 4 else { throw SystemError(code: EPROTO) }
      let code = reply.payload.native(16, as: Int32.self)
      if code != 0 { throw SystemError(code: 0 &- code) }
    }
    return reply
  }
}

extension ArraySlice<UInt8> {
  /// An integer in the machine's byte order at `index`; all its bytes must be present.
  func native<Value: FixedWidthInteger>(_ index: Int, as: Value.Type) -> Value {
    withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index - startIndex, as: Value.self) }
  }
}
