import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The kernel's L2CAP sockets: those of LE, and those of service records and networks over BR/EDR. All are non-blocking
/// and bound to one controller's public address. They request no link-layer security (BT_SECURITY_LOW), because TLS
/// above does not rely on it.
enum L2CAPSocket {
  /// The largest SDU that is accepted on a channel. Before Linux 6.9 the peer's credits depend on it too, so a small
  /// one limits goodput. 3072 bytes are 13 packets in flight: 107 KB/s at a 15 ms interval.
  static let receiveUnitBytesMax: UInt16 = 3072
  /// The largest SDU that is sent: five packets of 251 bytes, without the headers of L2CAP. Long frames are handed to
  /// the kernel in parts, so its buffer can be short. The parts are few, because the other end answers each with a
  /// packet of credits.
  static let sendUnitBytesMax = 1233
  /// The requested SO_SNDBUF. The kernel doubles it, and counts about 1280 bytes for a packet of 251. So up to ten
  /// packets wait, and from four down the kernel reports room.
  ///
  /// An urgent frame waits for all of them, 20 ms at 1 Mbit/s. The kernel's default would allow 170 packets, or as many
  /// as the peer gave credits for. Packets that the controller holds are not counted.
  static let sendBufferBytes: CInt = 6144
  /// The receive buffer, in bytes. From Linux 6.9 on, the peer gets credits for what the buffer can hold. The kernel
  /// subtracts 232 bytes for each packet of 247 bytes that would fit, so 6 % are left: 16 packets. At most these are on
  /// their way to this node, and an urgent frame waits for no more.
  ///
  /// With fewer credits than a unit needs, its end never arrives, because its beginning is not read before.
  /// `receiveUnitBytesMax` needs 13. Older kernels grant credits for unread data too, and lose what does not fit.
  private static let receiveBufferBytes: CInt = csystem_kernel_is(6, 9) != 0 ? 61_440 : 212_992
  /// The attribute protocol's fixed channel.
  private static let attributeChannel: UInt16 = 4
  private static let backlog: CInt = 8
  private static let unassignedPSM: UInt16 = 0x7F
  /// The PSM of SDP (Assigned Numbers, 2.5).
  private static let recordPSM: UInt16 = 1

  /// A listener for channels on `psm`. Errors: EADDRINUSE (another program has the PSM), EADDRNOTAVAIL.
  static func listen(_ adapter: UInt64, psm: UInt16) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: psm, channel: 0)
      try setCreditMode(descriptor)
      if CSystem.listen(descriptor, backlog) != 0 { throw SystemError.last }
    }
  }

  /// A listener for the attribute channel. It must exist before a link comes up: the kernel looks for it only then.
  /// Errors: EADDRINUSE (bluetoothd has it).
  static func listenForAttributes(_ adapter: UInt64) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: attributeChannel)
      if CSystem.listen(descriptor, backlog) != 0 { throw SystemError.last }
    }
  }

  /// A listener for clients that read service records, over BR/EDR. The kernel requires no security for them. Errors:
  /// EACCES (without CAP_NET_BIND_SERVICE), EADDRINUSE (bluetoothd has it).
  static func listenForRecords(_ adapter: UInt64) throws(SystemError) -> CInt {
    try listenClassic(adapter, psm: recordPSM)
  }

  /// A listener for peers that want to join a network, over BR/EDR. Errors: those of `listenForRecords`.
  static func listenForNetwork(_ adapter: UInt64) throws(SystemError) -> CInt {
    try listenClassic(adapter, psm: BNEPSetup.psm, unitBytes: BNEPSetup.unitBytesMin)
  }

  /// `unitBytes`: the longest unit of either direction; nil for the kernel's default.
  private static func listenClassic(
    _ adapter: UInt64, psm: UInt16, unitBytes: UInt16? = nil
  ) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      if let unitBytes {
        var options = l2cap_options()
        var size = socklen_t(MemoryLayout<l2cap_options>.size)
        if getsockopt(descriptor, SOL_L2CAP, L2CAP_OPTIONS, &options, &size) != 0 { throw SystemError.last }
        options.imtu = unitBytes
        options.omtu = unitBytes
        if setsockopt(descriptor, SOL_L2CAP, L2CAP_OPTIONS, &options, size) != 0 { throw SystemError.last }
      }
      var address = socketAddress(adapter, type: UInt8(BDADDR_BREDR), psm: psm, channel: 0)
      if cbluetooth_bind(descriptor, &address) != 0 { throw SystemError.last }
      if CSystem.listen(descriptor, backlog) != 0 { throw SystemError.last }
    }
  }

  /// Begins to connect to a device's server of service records, over BR/EDR; the socket becomes writable when it is connected.
  static func connectRecords(_ adapter: UInt64, to peer: UInt64) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      var address = socketAddress(adapter, type: UInt8(BDADDR_BREDR), psm: 0, channel: 0)
      if cbluetooth_bind(descriptor, &address) != 0 { throw SystemError.last }
      address = socketAddress(peer, type: UInt8(BDADDR_BREDR), psm: recordPSM, channel: 0)
      if cbluetooth_connect(descriptor, &address) != 0, csystem_errno() != EINPROGRESS { throw SystemError.last }
    }
  }

  /// Begins to connect the attribute channel; the socket becomes writable when it is connected.
  static func connectAttributes(_ adapter: UInt64, to peer: BluetoothEndpoint) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: attributeChannel)
      try connect(descriptor, peer, psm: 0, channel: attributeChannel)
    }
  }

  /// Begins to open a channel; the socket becomes writable when it is open.
  static func connectChannel(_ adapter: UInt64, to peer: BluetoothEndpoint, psm: UInt16) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: 0)
      try setCreditMode(descriptor)
      try connect(descriptor, peer, psm: psm, channel: 0)
    }
  }

  /// Uses up one number of the link's signalling requests, because both ends of a new link count from 1. It sends a
  /// request that the peer refuses: a channel for an unassigned PSM of the Bluetooth SIG's range (Core 5.4, Vol 3, Part
  /// A, 4.22).
  static func skipNumber(_ adapter: UInt64, to peer: BluetoothEndpoint) {
    if let descriptor = try? connectChannel(adapter, to: peer, psm: unassignedPSM) { _ = close(descriptor) }
  }

  /// The next pending connection. Errors: accept4's; EAGAIN if none is pending.
  static func accept(_ listener: CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint) {
    var address = sockaddr_l2()
    let descriptor = cbluetooth_accept(listener, &address)
    if descriptor < 0 { throw SystemError.last }
    let isRandom = address.l2_bdaddr_type == BDADDR_LE_RANDOM
    return (descriptor, BluetoothEndpoint(address: address.l2_bdaddr.number, isRandom: isRandom))
  }

  /// Shortens the buffers of a connected channel, and returns the largest SDU to send, in bytes. Errors: ENOTCONN while
  /// it is not connected.
  static func prepare(_ descriptor: CInt) throws(SystemError) -> Int {
    var bytes: UInt16 = 0
    var size = socklen_t(MemoryLayout<UInt16>.size)
    if getsockopt(descriptor, SOL_BLUETOOTH, BT_SNDMTU, &bytes, &size) != 0 { throw SystemError.last }
    var buffer = sendBufferBytes
    let bufferSize = socklen_t(MemoryLayout<CInt>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffer, bufferSize)
    // The kernel doubles the value.
    buffer = receiveBufferBytes / 2
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer, bufferSize)
    return min(Int(bytes), sendUnitBytesMax)
  }

  /// The largest unit to send on a channel over BR/EDR, in bytes.
  static func sendUnitBytesMaxClassic(_ descriptor: CInt) throws(SystemError) -> Int {
    var options = l2cap_options()
    var size = socklen_t(MemoryLayout<l2cap_options>.size)
    if getsockopt(descriptor, SOL_L2CAP, L2CAP_OPTIONS, &options, &size) != 0 { throw SystemError.last }
    return Int(options.omtu)
  }

  /// The value of SO_ERROR, the result of a connect; nil for success.
  static func connectError(_ descriptor: CInt) -> SystemError? {
    var code: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) != 0 { return SystemError.last }
    return code == 0 ? nil : SystemError(code: code)
  }

  private static func make(_ configure: (CInt) throws(SystemError) -> Void) throws(SystemError) -> CInt {
    let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_BLUETOOTH, kind, BTPROTO_L2CAP)
    if descriptor < 0 { throw SystemError.last }
    do throws(SystemError) {
      var security = bt_security(level: UInt8(BT_SECURITY_LOW), key_size: 0)
      let size = socklen_t(MemoryLayout<bt_security>.size)
      if setsockopt(descriptor, SOL_BLUETOOTH, BT_SECURITY, &security, size) != 0 { throw SystemError.last }
      try configure(descriptor)
      return descriptor
    } catch {
      _ = close(descriptor)
      throw error
    }
  }

  private static func bind(_ descriptor: CInt, _ adapter: UInt64, psm: UInt16, channel: UInt16) throws(SystemError) {
    var address = socketAddress(adapter, type: UInt8(BDADDR_LE_PUBLIC), psm: psm, channel: channel)
    if cbluetooth_bind(descriptor, &address) != 0 { throw SystemError.last }
  }

  private static func connect(
    _ descriptor: CInt, _ peer: BluetoothEndpoint, psm: UInt16, channel: UInt16
  ) throws(SystemError) {
    var address = socketAddress(peer.address, type: peer.wireType, psm: psm, channel: channel)
    if cbluetooth_connect(descriptor, &address) != 0, csystem_errno() != EINPROGRESS { throw SystemError.last }
  }

  /// Sets LE credit-based flow control and our receive MTU. The mode can be set only between bind and listen or
  /// connect. Kernels with a single LE mode lack the option.
  private static func setCreditMode(_ descriptor: CInt) throws(SystemError) {
    var mode = UInt8(BT_MODE_LE_FLOWCTL)
    if setsockopt(descriptor, SOL_BLUETOOTH, BT_MODE, &mode, 1) != 0, csystem_errno() != ENOPROTOOPT {
      throw SystemError.last
    }
    var unitBytes = receiveUnitBytesMax
    if setsockopt(descriptor, SOL_BLUETOOTH, BT_RCVMTU, &unitBytes, 2) != 0 { throw SystemError.last }
  }

  private static func socketAddress(_ number: UInt64, type: UInt8, psm: UInt16, channel: UInt16) -> sockaddr_l2 {
    var address = sockaddr_l2()
    address.l2_family = UInt16(AF_BLUETOOTH)
    address.l2_psm = psm.littleEndian
    address.l2_cid = channel.littleEndian
    address.l2_bdaddr = bdaddr_t(number)
    address.l2_bdaddr_type = type
    return address
  }
}

extension bdaddr_t {
  /// The address with this number, whose most significant byte people write first.
  init(_ number: UInt64) {
    let bytes = BluetoothEndpoint(address: number, isRandom: false).wireBytes
    self.init(b: (bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]))
  }

  var number: UInt64 { [b.5, b.4, b.3, b.2, b.1, b.0].reduce(0) { $0 << 8 | UInt64($1) } }
}
