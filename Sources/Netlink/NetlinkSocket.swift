import CSystem
import Reactor

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
