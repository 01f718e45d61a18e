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
