import Bearer
import CSystem
import Configuration
import Diagnostics
import Node
import Primitives
import Reactor
import StatusPage
import WiFiDirect

/// The status page of the Wi-Fi group (`PageServer`).
extension Relay {
  private static let pagePort: UInt16 = 80

  /// Serves the page on the group's interface, and ends the one before; nil: there is no group.
  func showPage(on interface: String?) {
    page?.close()
    page = nil
    pageProblem = ""
    guard let interface, configuration.wifiDirect.hasStatusPage, configuration.wifiDirect.mode == .groupOwner else {
      return
    }
    do throws(SystemError) {
      page = try PageServer(
        loop, address: WiFiDirectOptions.ownerAddress, host: WiFiDirectOptions.ownerAddressText, port: Self.pagePort,
        interface: interface, content: { [self] in pageContent() })
    } catch {
      // It is no fault of the relay: links and radios do not need the page.
      pageProblem =
        switch error.code {
        case EACCES: "not allowed to listen at port 80: the program needs CAP_NET_BIND_SERVICE, as in the packaged unit"
        case EADDRINUSE: "another program listens at port 80: end it, or set status-page = no"
        default: error.text
        }
      bearerReport("status-page", pageProblem, isFault: false)
    }
  }

  /// Of the table of bearers; nil while there is none to tell of.
  var pageStatus: BearerStatus? {
    if page == nil && pageProblem.utf8.isEmpty { return nil }
    let address = "http://\(WiFiDirectOptions.ownerAddressText)/"
    return BearerStatus(
      name: "status-page", state: page == nil ? "off" : "up", detail: address, problem: pageProblem)
  }

  private func pageContent() -> PageContent {
    PageContent(
      name: configuration.node.displayName, id: node.settings.id.text, ssid: wifiDirect?.snapshot.ssid ?? "",
      peers: node.peers.map { String($0.name) })
  }
}
