import BearerIP
import CSystem
import Reactor

/// What the owner of a group has in common with an access point in its place.
extension WiFiDirectRadio {
  @inline(never)
  func becameOwner(of ssid: String, passphrase: String, frequency: UInt32, on interface: String) {
    snapshot.state = .groupOwner
    snapshot.ssid = ssid
    snapshot.passphrase = passphrase
    snapshot.frequency = frequency
    if options.isBridged { enterBridge(interface) } else { takeAddress(interface) }
  }

  /// A bridge takes all frames of its ports, those of handshakes too: wpa_supplicant has to get them from nl80211, or nobody
  /// could join any more.
  func enterBridge(_ interface: String) {
    supplicant?.send(to: interface, "DRIVER_FLAGS2") { [self] reply in
      guard snapshot.state == .groupOwner else { return }
      do throws(SystemError) {
        if reply.bytes[...].first("CONTROL_PORT_RX") == nil { throw SystemError(code: EOPNOTSUPP) }
        try GroupBridge.make(hint)
        try setBridge(of: if_nametoindex(interface), GroupBridge.index)
        groupCame(interface, at: GroupBridge.name)
      } catch {
        report(fault: "the group is apart from [bluetooth] nap: " + error.text)
        _ = try? removeInterfaceAddress(
          GroupBridge.index, ipv4: WiFiDirectOptions.ownerAddress, prefixLength: WiFiDirectOptions.prefixLength)
        takeAddress(interface)
      }
    }
  }

  /// An interface that is to be no group's any more may become a station, which no port can.
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
