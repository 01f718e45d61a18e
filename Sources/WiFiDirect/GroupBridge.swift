import BearerIP
import CSystem
import Reactor

/// The bridge that joins an owner's group with other networks, such as that of peers over Bluetooth. It has the group's
/// address and outlives the group.
public enum GroupBridge {
  /// The name starts like those of groups, so a configured `p2p-*` includes it.
  public static var name: String { "p2p-causeway" }

  /// Creates the bridge or restores its settings. `hint`: the hint of `WiFiDirectRadio`. Throws the errors of
  /// `makeBridge`.
  public static func make(_ hint: UInt64) throws(SystemError) {
    // A locally administered Ethernet address (IEEE 802, 8.2.2).
    try makeBridge("p2p-causeway", ethernetAddress: 0x0200_0000_0000 | hint >> 24)
    try addInterfaceAddress(
      index, ipv4: WiFiDirectOptions.ownerAddress, prefixLength: WiFiDirectOptions.prefixLength)
  }

  /// Removes the bridge if it exists.
  public static func remove() { if index != 0 { _ = try? removeInterface(index) } }

  static var index: UInt32 { if_nametoindex(name) }
}
