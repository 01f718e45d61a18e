import BearerIP
import CSystem
import Netlink
import Reactor

/// The Linux bridge that joins the Wi-Fi group of this node with other networks, such as the network of peers over
/// Bluetooth. The bridge has the group's IP address, and continues to exist when the group is gone.
public enum GroupBridge {
  /// The bridge's name begins with `p2p-`, like those of group interfaces. So a configured `p2p-*` includes the bridge.
  public static var name: String { "p2p-causeway" }

  /// Creates the bridge or restores its settings. `hint`: the first 8 bytes of the node id; the bridge's Ethernet
  /// address contains a part of this hint. Throws the errors of `makeBridge`.
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
