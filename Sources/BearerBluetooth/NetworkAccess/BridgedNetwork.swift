import CBluetooth
import CSystem
import Reactor

/// Ethernet over Bluetooth (BNEP) in the kernel, at one controller. The interface of each peer becomes a port of the
/// bridge.
final class BridgedNetwork: PeerNetwork {
  private let bridge: String
  private let control: CInt

  /// Opens the kernel's control socket for BNEP, and removes interfaces that an earlier process left. Errors:
  /// EPROTONOSUPPORT (a kernel without BNEP).
  init(_ bridge: String, _ adapter: UInt64) throws(SystemError) {
    self.bridge = bridge
    control = cbluetooth_bnep_open()
    if control < 0 { throw SystemError.last }
    cbluetooth_bnep_leave_all(control, bdaddr_t(adapter))
  }

  deinit { close(control) }

  func join(_ channel: CInt, _ peer: UInt64) throws(SystemError) -> String {
    var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
    if cbluetooth_bnep_join(control, channel, bdaddr_t(peer), bridge, &name) != 0 { throw SystemError.last }
    return name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  func leave(_ peer: UInt64) { cbluetooth_bnep_leave(control, bdaddr_t(peer)) }
}

/// Whether the kernel has BNEP. For this call, the kernel loads its BNEP module if it can.
public func kernelHasBNEP() -> Bool {
  let control = cbluetooth_bnep_open()
  if control < 0 { return false }
  close(control)
  return true
}
