import CSystem
import Primitives
import Reactor

/// A DHCP server (RFC 2131) for the stations of a Wi-Fi group, on one interface.
///
/// A station can request or release only its own address. An access point accepts only frames with a station's own
/// Ethernet address as source. A socket filter in the kernel drops messages whose hardware address differs from the
/// source of their Ethernet frame.
public final class DHCPServer: EventSource {
  /// The UDP ports of servers and clients (RFC 2131, section 4.1).
  private static let serverPort: UInt16 = 67
  private static let clientPort: UInt16 = 68
  /// The maximum number of requests handled in one pass of the event loop. Further requests are handled in the next
  /// pass.
  private static let requestsMax = 16
  private static let mask: UInt32 = 0xFFFF_FF00

  private let loop: EventLoop
  private let address: UInt32
  private let descriptor: CInt
  private var registration: Registration?
  private var leases: DHCPLeases
  private var isStation: ((UInt64) -> Bool)?

  /// Serves on `interface`, whose address is `address` in a /24 network. `addresses` is the range of addresses to
  /// lease. `isStation` returns whether an Ethernet address belongs to a station in the group.
  ///
  /// Errors: EADDRINUSE if another DHCP server runs, EACCES without CAP_NET_BIND_SERVICE, and those of socket and
  /// epoll_ctl.
  public init(
    _ loop: EventLoop, address: UInt32, interface: String, addresses: ClosedRange<UInt32>,
    isStation: @escaping (UInt64) -> Bool
  ) throws(SystemError) {
    self.loop = loop
    self.address = address
    self.isStation = isStation
    leases = DHCPLeases(server: address, addresses: addresses)
    // The socket is bound to address 0, because a socket that is bound to a specific address receives no broadcasts.
    descriptor = try openInterfaceSocket(
      isStream: false, address: 0, port: Self.serverPort, interface: interface, filter: csystem_keep_own_hardware)
    do throws(SystemError) {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
  }

  public func close() {
    guard let registration else { return }
    self.registration = nil
    isStation = nil
    loop.remove(registration)
    CSystem.close(descriptor)
  }

  /// The Ethernet address of the station that leases an address; nil if the address is not leased.
  public func station(at address: UInt32) -> UInt64? { leases.client(of: address, now: loop.now) }

  public func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: DHCPRequest.bytesMax)
    for _ in 0..<Self.requestsMax {
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      // An error such as ENETDOWN means that the interface is being removed. When the owner notices the removal of the
      // interface, it closes this server.
      guard count >= 0, let isStation else { return }
      guard let request = try? DHCPRequest(Array(buffer[..<count])),
        let reply = leases.reply(to: request, now: loop.now, isStation: isStation)
      else { continue }
      send(reply)
    }
  }

  /// Sends a reply once. If the reply is lost, the client retransmits its request.
  private func send(_ reply: DHCPReply) {
    let packet = reply.encoded(server: address, mask: Self.mask)
    let target = interfaceSocketAddress(reply.destination, Self.clientPort)
    _ = withUnsafePointer(to: target) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(
          descriptor, packet, packet.count, CInt(MSG_DONTWAIT), __CONST_SOCKADDR_ARG(__sockaddr__: $0),
          socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
