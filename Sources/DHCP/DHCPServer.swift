import CSystem
import Primitives
import Reactor

/// Gives the stations of a Wi-Fi group their addresses: DHCP (RFC 2131) on one interface.
///
/// A message counts only for the station that sent it: the kernel drops those whose hardware address differs from the source
/// address of their frame. An access point takes frames from a station's own address alone.
public final class DHCPServer: EventSource {
  /// The ports of servers and clients (RFC 2131, 4.1).
  private static let serverPort: UInt16 = 67
  private static let clientPort: UInt16 = 68
  /// The most requests one wake-up answers; the rest is reported again.
  private static let requestsMax = 16
  private static let mask: UInt32 = 0xFFFF_FF00

  private let loop: EventLoop
  private let address: UInt32
  private let descriptor: CInt
  private var registration: Registration?
  private var leases: DHCPLeases
  private var isStation: ((UInt64) -> Bool)?

  /// Serves on `interface`, which has `address`, a /24. `isStation`: whether an Ethernet address is of a station in the group.
  /// Errors: EADDRINUSE where another server is, EACCES without CAP_NET_BIND_SERVICE, and those of socket and epoll_ctl.
  public init(
    _ loop: EventLoop, address: UInt32, interface: String, addresses: ClosedRange<UInt32>,
    isStation: @escaping (UInt64) -> Bool
  ) throws(SystemError) {
    self.loop = loop
    self.address = address
    self.isStation = isStation
    leases = DHCPLeases(server: address, addresses: addresses)
    // Broadcasts reach a socket of all addresses only.
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

  /// The Ethernet address of the station that has leased an address; nil for none.
  public func station(at address: UInt32) -> UInt64? { leases.client(of: address, now: loop.now) }

  public func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: DHCPRequest.bytesMax)
    for _ in 0..<Self.requestsMax {
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      // ENETDOWN and the like: the interface goes, and its owner closes this.
      guard count >= 0, let isStation else { return }
      guard let request = try? DHCPRequest(Array(buffer[..<count])),
        let reply = leases.reply(to: request, now: loop.now, isStation: isStation)
      else { continue }
      send(reply)
    }
  }

  /// A reply that is lost is asked for again by its client.
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
