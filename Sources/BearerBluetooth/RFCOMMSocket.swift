import Bearer
import CBluetooth
import CSystem
import Reactor

/// The kernel's RFCOMM sockets: byte streams over BR/EDR. All are non-blocking and bound to one controller. They request no
/// more security than LE's, so that nobody is asked anything: where both ends know Secure Simple Pairing the kernels encrypt with
/// a key that nobody has confirmed and that they do not keep. TLS above does not rely on it.
enum RFCOMMSocket {
  /// What the kernel may keep to be sent, in its own count, which doubles it. Urgent frames wait behind it.
  private static let sendBytesMax: CInt = 8192
  private static let backlog: CInt = 8

  /// A listener on a server channel that is free, and that channel. Errors: EPROTONOSUPPORT (a kernel without RFCOMM).
  static func listen(_ adapter: UInt64) throws(SystemError) -> (descriptor: CInt, channel: UInt8) {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_BLUETOOTH, kind, BTPROTO_RFCOMM)
    if descriptor < 0 { throw SystemError.last }
    do throws(SystemError) {
      var security = bt_security(level: UInt8(BT_SECURITY_LOW), key_size: 0)
      let size = socklen_t(MemoryLayout<bt_security>.size)
      var address = sockaddr_rc()
      address.rc_family = UInt16(AF_BLUETOOTH)
      address.rc_bdaddr = bdaddr_t(adapter)
      // The kernel chooses the channel when it begins to listen.
      guard setsockopt(descriptor, SOL_BLUETOOTH, BT_SECURITY, &security, size) == 0,
        cbluetooth_bind_rfcomm(descriptor, &address) == 0, CSystem.listen(descriptor, backlog) == 0,
        cbluetooth_own_rfcomm(descriptor, &address) == 0
      else { throw SystemError.last }
      return (descriptor, address.rc_channel)
    } catch {
      _ = close(descriptor)
      throw error
    }
  }

  /// The next pending connection. Errors: accept4's, EAGAIN when none is pending.
  static func accept(_ listener: CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint) {
    var address = sockaddr_rc()
    let descriptor = cbluetooth_accept_rfcomm(listener, &address)
    if descriptor < 0 { throw SystemError.last }
    var bytes = sendBytesMax
    _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
    return (descriptor, BluetoothEndpoint(address: address.rc_bdaddr.number, isRandom: false))
  }
}
