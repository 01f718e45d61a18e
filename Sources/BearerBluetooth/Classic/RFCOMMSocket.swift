import Bearer
import CBluetooth
import CSystem
import Reactor

/// The kernel's RFCOMM sockets: byte streams over BR/EDR. The sockets are non-blocking and bound to one controller. The
/// sockets request BT_SECURITY_LOW, like the sockets of LE, so that no person is asked to confirm a pairing.
///
/// If both devices support Secure Simple Pairing, the kernels encrypt the link. The encryption key is confirmed by no
/// person, and is not stored. TLS above the stream does not rely on this link encryption.
enum RFCOMMSocket {
  /// The requested SO_SNDBUF, in bytes; the kernel doubles this value. Urgent frames wait behind the data in this
  /// buffer.
  private static let sendBytesMax: CInt = 8192
  private static let backlog: CInt = 8

  /// A listener on a free server channel, and that channel. Errors: EPROTONOSUPPORT (a kernel without RFCOMM).
  static func listen(_ adapter: UInt64) throws(SystemError) -> (descriptor: CInt, channel: UInt8) {
    var channel: UInt8 = 0
    let descriptor = try make(adapter) { descriptor in
      // The kernel chooses the RFCOMM channel when the socket begins to listen.
      var address = sockaddr_rc()
      guard CSystem.listen(descriptor, backlog) == 0, cbluetooth_own_rfcomm(descriptor, &address) == 0 else {
        return false
      }
      channel = address.rc_channel
      return true
    }
    return (descriptor, channel)
  }

  /// Begins to connect to a server channel. The socket becomes writable when the connection is established.
  static func connect(_ adapter: UInt64, to peer: UInt64, _ channel: UInt8) throws(SystemError) -> CInt {
    try make(adapter) { descriptor in
      shorten(descriptor)
      var address = socketAddress(peer, channel)
      return cbluetooth_connect_rfcomm(descriptor, &address) == 0 || csystem_errno() == EINPROGRESS
    }
  }

  /// The next pending connection. Errors: those of accept4; EAGAIN if no connection is pending.
  static func accept(_ listener: CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint) {
    var address = sockaddr_rc()
    let descriptor = cbluetooth_accept_rfcomm(listener, &address)
    if descriptor < 0 { throw SystemError.last }
    shorten(descriptor)
    return (descriptor, BluetoothEndpoint(address: address.rc_bdaddr.number, isRandom: false))
  }

  private static func shorten(_ descriptor: CInt) {
    var bytes = sendBytesMax
    _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
  }

  /// `configure` returns false, with errno set, on failure.
  private static func make(_ adapter: UInt64, _ configure: (CInt) -> Bool) throws(SystemError) -> CInt {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_BLUETOOTH, kind, BTPROTO_RFCOMM)
    if descriptor < 0 { throw SystemError.last }
    var security = bt_security(level: UInt8(BT_SECURITY_LOW), key_size: 0)
    var own = socketAddress(adapter, 0)
    if setsockopt(descriptor, SOL_BLUETOOTH, BT_SECURITY, &security, socklen_t(MemoryLayout<bt_security>.size)) == 0,
      cbluetooth_bind_rfcomm(descriptor, &own) == 0, configure(descriptor)
    {
      return descriptor
    }
    let error = SystemError.last
    _ = close(descriptor)
    throw error
  }

  private static func socketAddress(_ number: UInt64, _ channel: UInt8) -> sockaddr_rc {
    var address = sockaddr_rc()
    address.rc_family = UInt16(AF_BLUETOOTH)
    address.rc_bdaddr = bdaddr_t(number)
    address.rc_channel = channel
    return address
  }
}
