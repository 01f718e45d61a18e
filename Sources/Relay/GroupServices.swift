import Bearer
import BearerBluetooth
import CSystem
import Configuration
import DHCP
import Node
import Primitives
import Reactor
import Status
import StatusPage
import Text
import WiFiDirect

/// The part of the daemon that `GroupServices` calls.
protocol GroupServicesDelegate: AnyObject {
  /// Whether an Ethernet address belongs to a station of the group, over Wi-Fi or over Bluetooth.
  func isStation(_ hardware: UInt64) -> Bool
  /// The SSID of the group; empty if there is no group.
  var groupName: String { get }
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool)
}

/// Services of the box for stations in its Wi-Fi group: addresses (`DHCPServer`) and the status page (`PageServer`).
final class GroupServices {
  private static let pagePort: UInt16 = 80

  private let loop: EventLoop
  private let configuration: Configuration
  private let node: Node
  private let delegate: any GroupServicesDelegate
  private var page: PageServer?
  private var dhcp: DHCPServer?
  /// The index of the interface on which stations are served; 0 if there is none.
  private var servedInterface: UInt32 = 0
  /// Why the group has no status page (`pageProblem`) or no DHCP server (`dhcpProblem`). The text is empty if the
  /// server runs or the configuration disables it.
  private var pageProblem = ""
  private var dhcpProblem = ""

  init(_ loop: EventLoop, _ configuration: Configuration, _ node: Node, _ delegate: any GroupServicesDelegate) {
    self.loop = loop
    self.configuration = configuration
    self.node = node
    self.delegate = delegate
  }

  func close() {
    page?.close()
    dhcp?.close()
  }

  /// The entries of the DHCP server and of the status page in the list of bearers, as far as they run or have a
  /// problem.
  var status: [BearerStatus] { [dhcpStatus, pageStatus].compactMap { $0 } }

  /// Serves stations on the interface that has the group's address; nil if there is no group. If the configuration
  /// joins Bluetooth peers to the group, the bridge is served even without a group. The DHCP leases on the bridge then
  /// outlive the group.
  func serve(on interface: String?) {
    var interface = interface
    if interface == nil, configuration.bluetooth.joinsGroup {
      interface = GroupBridge.name
      // An error while making the bridge is ignored here. The Wi-Fi radio reports the error when it has a group, and
      // the Bluetooth access point when a peer connects.
      _ = try? GroupBridge.make(node.settings.id.high)
    }
    let index = interface.map { if_nametoindex($0) } ?? 0
    if index != 0, index == servedInterface { return }
    servedInterface = index
    serveAddresses(on: interface)
    showPage(on: interface)
  }

  /// Serves DHCP on the group's interface, and stops on the previous interface. `interface` is nil if there is no
  /// group.
  private func serveAddresses(on interface: String?) {
    dhcp?.close()
    dhcp = nil
    dhcpProblem = ""
    guard let interface, configuration.wifiDirect.servesDHCP, configuration.wifiDirect.mode == .groupOwner else {
      return
    }
    do throws(SystemError) {
      dhcp = try DHCPServer(
        loop, address: WiFiDirectOptions.ownerAddress, interface: interface,
        addresses: WiFiDirectOptions.leasedAddresses,
        isStation: { [delegate] in delegate.isStation($0) })
    } catch {
      // The missing DHCP server is not a fault: devices with Wi-Fi Direct receive their address without DHCP.
      dhcpProblem = serverProblem(error, "UDP port 67", key: "dhcp")
      delegate.bearerReport("dhcp", dhcpProblem, isFault: false)
    }
  }

  /// The DHCP server's entry in the list of bearers; nil if there is no server and no problem.
  private var dhcpStatus: BearerStatus? {
    if dhcp == nil && dhcpProblem.utf8.isEmpty { return nil }
    let range = "192.168.49.201–254"
    return BearerStatus(name: "dhcp", state: dhcp == nil ? "off" : "up", detail: range, problem: dhcpProblem)
  }

  private func serverProblem(_ error: SystemError, _ location: String, key: String) -> String {
    switch error.code {
    case EACCES:
      "no permission to listen on \(location): the program needs CAP_NET_BIND_SERVICE, as in the packaged unit"
    case EADDRINUSE: "another program listens on \(location): stop it, or set \(key) = no"
    default: error.text
    }
  }

  /// Serves the status page on the group's interface, and stops on the previous interface. `interface` is nil if there
  /// is no group.
  private func showPage(on interface: String?) {
    page?.close()
    page = nil
    pageProblem = ""
    guard let interface, configuration.wifiDirect.hasStatusPage, configuration.wifiDirect.mode == .groupOwner else {
      return
    }
    do throws(SystemError) {
      page = try PageServer(
        loop, address: WiFiDirectOptions.ownerAddress, host: WiFiDirectOptions.ownerAddressText, port: Self.pagePort,
        interface: interface, station: { [self] in station(of: $0, at: $1, on: interface) },
        content: { [self] in pageContent() })
    } catch {
      // The missing status page is not a fault of the relay: links and radios do not need the page.
      pageProblem = serverProblem(error, "port 80", key: "status-page")
      delegate.bearerReport("status-page", pageProblem, isFault: false)
    }
  }

  /// The Ethernet address of the station from which a connection comes; nil if it is unknown. First the DHCP leases are
  /// searched, then the kernel's neighbour table, because Wi-Fi Direct assigns addresses without DHCP. An address from
  /// the neighbour table must belong to a station of the group.
  private func station(of connection: CInt, at address: UInt32, on interface: String) -> UInt64? {
    if let station = dhcp?.station(at: address) { return station }
    let hardware = csystem_neighbour(connection, interface, address)
    return hardware != 0 && delegate.isStation(hardware) ? hardware : nil
  }

  /// The status page's entry in the list of bearers; nil if there is no page and no problem.
  private var pageStatus: BearerStatus? {
    if page == nil && pageProblem.utf8.isEmpty { return nil }
    let address = "http://\(WiFiDirectOptions.ownerAddressText)/"
    return BearerStatus(
      name: "status-page", state: page == nil ? "off" : "up", detail: address, problem: pageProblem)
  }

  private func pageContent() -> PageContent {
    PageContent(
      name: configuration.node.displayName, id: node.settings.id.text, ssid: delegate.groupName,
      peers: node.peers.map { String($0.name) })
  }
}
