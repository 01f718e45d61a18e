import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The kernel's L2CAP sockets: those of LE, and over BR/EDR those of service records and of BNEP networks. The sockets
/// are non-blocking and bound to one controller's public address. The sockets request no link-layer security
/// (BT_SECURITY_LOW), because TLS above does not rely on such security.
enum L2CAPSocket {
  /// The largest SDU that is accepted on a channel, in bytes. Before Linux 6.9 this limit also determines the peer's
  /// credits, so a small one limits goodput. 3072 bytes are 13 packets in flight: 107 KB/s at a connection interval of
  /// 15 ms.
  static let receiveUnitBytesMax: UInt16 = 3072
  /// The largest SDU that is sent, in bytes: five packets of 251 bytes, without the headers of L2CAP. A longer frame is
  /// handed to the kernel in several SDUs, so the kernel's buffer can be short. Smaller SDUs would cost air time,
  /// because the peer answers each SDU with a packet of credits.
  static let sendUnitBytesMax = 1233
  /// The requested SO_SNDBUF in bytes. The kernel doubles the value, and counts about 1280 bytes for a packet of 251.
  /// So up to ten packets wait in the buffer. When four or fewer wait, the kernel reports the socket as writable.
  ///
  /// An urgent frame waits for all packets in the buffer, for 20 ms at 1 Mbit/s. The kernel's default would allow 170
  /// packets, or as many as the peer has granted credits for. Packets that the controller already has are not counted.
  static let sendBufferBytes: CInt = 6144
  /// The size of the receive buffer in bytes. From Linux 6.9 on, the peer gets credits for the packets that fit in the
  /// buffer. The kernel subtracts 232 bytes for each packet of 247 bytes that would fit, so 6 % of the size are left:
  /// 16 packets. So at most 16 packets are on their way to this node, and an urgent frame of the peer waits for no
  /// more.
  ///
  /// An SDU of `receiveUnitBytesMax` needs 13 credits. With fewer, the end of the SDU never arrives: this node cannot
  /// read the beginning before the SDU is complete. Kernels before 6.9 grant credits for unread data too, and lose data
  /// that does not fit. So their buffer is larger.
  private static let receiveBufferBytes: CInt = csystem_kernel_is(6, 9) != 0 ? 61_440 : 212_992
  /// The fixed channel (CID) of the attribute protocol.
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

  /// A listener for attribute channels. The listener must exist before a link comes up, because the kernel looks for a
  /// listener only then. Errors: EADDRINUSE (bluetoothd has the attribute channel).
  static func listenForAttributes(_ adapter: UInt64) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: attributeChannel)
      if CSystem.listen(descriptor, backlog) != 0 { throw SystemError.last }
    }
  }

  /// A listener for clients that read service records, over BR/EDR. The kernel requires no link-layer security for this
  /// PSM. Errors: EACCES (without CAP_NET_BIND_SERVICE), EADDRINUSE (bluetoothd has the PSM).
  static func listenForRecords(_ adapter: UInt64) throws(SystemError) -> CInt {
    try listenClassic(adapter, psm: recordPSM)
  }

  /// A listener for peers that want to join a network, over BR/EDR. Errors: those of `listenForRecords`.
  static func listenForNetwork(_ adapter: UInt64) throws(SystemError) -> CInt {
    try listenClassic(adapter, psm: BNEPSetup.psm, unitBytes: BNEPSetup.unitBytesMin)
  }

  /// `unitBytes`: the MTU of both directions in bytes; nil for the kernel's default.
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

  /// Begins to connect to a peer's server of service records (SDP), over BR/EDR. The socket becomes writable when the
  /// connection is established.
  static func connectRecords(_ adapter: UInt64, to peer: UInt64) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      var address = socketAddress(adapter, type: UInt8(BDADDR_BREDR), psm: 0, channel: 0)
      if cbluetooth_bind(descriptor, &address) != 0 { throw SystemError.last }
      address = socketAddress(peer, type: UInt8(BDADDR_BREDR), psm: recordPSM, channel: 0)
      if cbluetooth_connect(descriptor, &address) != 0, csystem_errno() != EINPROGRESS { throw SystemError.last }
    }
  }

  /// Begins to connect the attribute channel. The socket becomes writable when the channel is connected.
  static func connectAttributes(_ adapter: UInt64, to peer: BluetoothEndpoint) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: attributeChannel)
      try connect(descriptor, peer, psm: 0, channel: attributeChannel)
    }
  }

  /// Begins to open a credit-based channel. The socket becomes writable when the channel is open.
  static func connectChannel(_ adapter: UInt64, to peer: BluetoothEndpoint, psm: UInt16) throws(SystemError) -> CInt {
    try make { (descriptor) throws(SystemError) in
      try bind(descriptor, adapter, psm: 0, channel: 0)
      try setCreditMode(descriptor)
      try connect(descriptor, peer, psm: psm, channel: 0)
    }
  }

  /// Uses up one number (identifier) of this node's signalling requests on a link. The two nodes of a new link count
  /// from 1, so without this call their requests would have the same number. `skipNumber` requests a channel that the
  /// peer refuses, on an unassigned PSM of the Bluetooth SIG's range (Core 5.4, Vol 3, Part A, 4.22).
  static func skipNumber(_ adapter: UInt64, to peer: BluetoothEndpoint) {
    if let descriptor = try? connectChannel(adapter, to: peer, psm: unassignedPSM) { _ = close(descriptor) }
  }

  /// The next pending connection. Errors: those of accept4; EAGAIN if no connection is pending.
  static func accept(_ listener: CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint) {
    var address = sockaddr_l2()
    let descriptor = cbluetooth_accept(listener, &address)
    if descriptor < 0 { throw SystemError.last }
    let isRandom = address.l2_bdaddr_type == BDADDR_LE_RANDOM
    return (descriptor, BluetoothEndpoint(address: address.l2_bdaddr.number, isRandom: isRandom))
  }

  /// Sets the buffer sizes of a connected channel, and returns the largest SDU to send, in bytes. Errors: ENOTCONN
  /// while the channel is not connected.
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

  /// The largest SDU to send on a channel over BR/EDR, in bytes.
  static func sendUnitBytesMaxClassic(_ descriptor: CInt) throws(SystemError) -> Int {
    var options = l2cap_options()
    var size = socklen_t(MemoryLayout<l2cap_options>.size)
    if getsockopt(descriptor, SOL_L2CAP, L2CAP_OPTIONS, &options, &size) != 0 { throw SystemError.last }
    return Int(options.omtu)
  }

  /// The result of a connection attempt, from SO_ERROR; nil for success.
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

  /// Sets LE credit-based flow control and the largest SDU that this node accepts. The mode can be set only after bind,
  /// and before listen or connect. Kernels with a single LE mode do not have the option BT_MODE.
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
  /// The address with this number. The number's most significant byte comes first in text.
  init(_ number: UInt64) {
    let bytes = BluetoothEndpoint(address: number, isRandom: false).wireBytes
    self.init(b: (bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]))
  }

  var number: UInt64 { [b.5, b.4, b.3, b.2, b.1, b.0].reduce(0) { $0 << 8 | UInt64($1) } }
}
