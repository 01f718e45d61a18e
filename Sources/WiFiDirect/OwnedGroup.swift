import BearerIP
import CSystem
import Netlink
import Reactor

/// The methods that a group owner shares with the access point that replaces a group.
extension WiFiDirectRadio {
  @inline(never)
  func becameOwner(of ssid: String, passphrase: String, frequency: UInt32, on interface: String) {
    snapshot.state = .groupOwner
    snapshot.ssid = ssid
    snapshot.passphrase = passphrase
    snapshot.frequency = frequency
    if options.isBridged { enterBridge(interface) } else { takeAddress(interface) }
  }

  /// Makes the group's interface a port of `GroupBridge`. A bridge takes all frames of its ports, including those of
  /// Wi-Fi handshakes. So the driver must deliver handshake frames to wpa_supplicant through nl80211 (CONTROL_PORT_RX).
  /// Without this delivery, no device could join, and the interface stays outside the bridge.
  func enterBridge(_ interface: String) {
    supplicant?.send(to: interface, "DRIVER_FLAGS2") { [self] reply in
      guard snapshot.state == .groupOwner else { return }
      do throws(SystemError) {
        if reply.bytes[...].first("CONTROL_PORT_RX") == nil { throw SystemError(code: EOPNOTSUPP) }
        try GroupBridge.make(hint)
        try setBridge(of: if_nametoindex(interface), GroupBridge.index)
        groupCame(interface, at: GroupBridge.name)
      } catch {
        report(fault: "the group is not in the bridge of [bluetooth] nap: " + error.text)
        _ = try? removeInterfaceAddress(
          GroupBridge.index, ipv4: WiFiDirectOptions.ownerAddress, prefixLength: WiFiDirectOptions.prefixLength)
        takeAddress(interface)
      }
    }
  }

  /// Removes the interface from the bridge. The interface can become a station later, and a port of a bridge cannot.
  func leaveBridge(_ interface: String) {
    if options.isBridged { _ = try? setBridge(of: if_nametoindex(interface), 0) }
  }

  private func takeAddress(_ interface: String) {
    do {
      try addInterfaceAddress(
        if_nametoindex(interface), ipv4: WiFiDirectOptions.ownerAddress, prefixLength: WiFiDirectOptions.prefixLength)
    } catch {
      report(fault: "\(interface) has no IPv4 address: \(error.text). The program needs CAP_NET_ADMIN.")
    }
    groupCame(interface)
  }

  func stationJoined(_ address: MACAddress) {
    if snapshot.stations.contains(address) || snapshot.stations.count >= WiFiDirectSnapshot.stationsMax { return }
    snapshot.stations.append(address)
  }

  func stationLeft(_ address: MACAddress) { snapshot.stations.removeAll { $0 == address } }
}
