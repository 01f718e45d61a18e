import BearerIP
import CSystem
import Reactor

/// The bridge whose port an owner's group is where its devices share their network with others, as peers over Bluetooth. It has
/// the group's address, and stays when the group goes.
public enum GroupBridge {
  /// It begins as the names of groups do, for those who allow `p2p-*`.
  public static var name: String { "p2p-causeway" }

  /// Makes it, or makes it whole again. `hint`: as of `WiFiDirectRadio`. Errors: those of `makeBridge`.
  public static func make(_ hint: UInt64) throws(SystemError) {
    // One of those that whoever runs a network gives (IEEE 802, 8.2.2).
    try makeBridge("p2p-causeway", ethernetAddress: 0x0200_0000_0000 | hint >> 24)
    try addInterfaceAddress(
      index, ipv4: WiFiDirectOptions.ownerAddress, prefixLength: WiFiDirectOptions.prefixLength)
  }

  /// Removes it, if it is there.
  public static func remove() { if index != 0 { _ = try? removeInterface(index) } }

  static var index: UInt32 { if_nametoindex(name) }
}
