import Bearer
import CSystem
import Primitives
import Reactor

/// The state of a network access point, for status.
public struct NetworkSnapshot: Equatable, Sendable {
  /// The controller, the bridge, and each joined peer with its address, its interface, and the time since the peer
  /// joined.
  public var detail: String
  /// Why no peer can join, or why the last peer could not join; nil if joining works, or while the controller is
  /// absent.
  public var problem: String?
}

/// A network to which peers are added. Tests use an implementation of their own.
protocol PeerNetwork: AnyObject {
  /// Makes a network interface from a connected channel, and answers the peer's setup request. The request must still
  /// be unread in the channel. Returns the interface's name. Errors: those of `cbluetooth_bnep_join`.
  func join(_ channel: CInt, _ peer: UInt64) throws(SystemError) -> String
  /// Removes the interface of a peer.
  func leave(_ peer: UInt64)
}

/// IP over Bluetooth classic for programs that do not use Causeway, in the role of a network access point (Personal
/// Area Networking Profile 1.0, 2.2.1). Each peer gets a network interface, which becomes a port of a bridge.
///
/// Causeway does not encrypt this traffic, and any device in range can join. There is no pairing that a person would
/// notice, as in `ClassicRadio`.
final class NetworkAccessPoint {
  /// The maximum number of peers: a controller has this many links over BR/EDR.
  static let peersMax = 7

  /// The attributes of the service record, in their encoded form: the identifier and the value of each attribute.
  static let record: [UInt8] = [
    // The record's handle; its class, NAP; its protocols: L2CAP with the PSM, and BNEP 1.0, which carries IPv4, ARP and
    // IPv6.
    0x09, 0x00, 0x00, 0x0A, 0x00, 0x01, 0x00, 0x01, 0x09, 0x00, 0x01, 0x35, 0x03, 0x19, 0x11, 0x16,
    0x09, 0x00, 0x04, 0x35, 0x1B, 0x35, 0x06, 0x19, 0x01, 0x00, 0x09, 0x00, 0x0F,
    0x35, 0x11, 0x19, 0x00, 0x0F, 0x09, 0x01, 0x00, 0x35, 0x09, 0x09, 0x08, 0x00, 0x09, 0x08, 0x06, 0x09, 0x86, 0xDD,
    // The public browse root; English in UTF-8; version 1.0 of the profile; “Network”.
    0x09, 0x00, 0x05, 0x35, 0x03, 0x19, 0x10, 0x02,
    0x09, 0x00, 0x06, 0x35, 0x09, 0x09, 0x65, 0x6E, 0x09, 0x00, 0x6A, 0x09, 0x01, 0x00,
    0x09, 0x00, 0x09, 0x35, 0x08, 0x35, 0x06, 0x19, 0x11, 0x16, 0x09, 0x01, 0x00,
    0x09, 0x01, 0x00, 0x25, 0x07, 0x4E, 0x65, 0x74, 0x77, 0x6F, 0x72, 0x6B,
    // No security by Bluetooth itself; the network behind is Ethernet of 100 Mbit/s.
    0x09, 0x03, 0x0A, 0x09, 0x00, 0x00, 0x09, 0x03, 0x0B, 0x09, 0x00, 0x05,
  ]

  typealias Sockets = (channels: CInt, network: any PeerNetwork)

  var report: ((String, _ isFault: Bool) -> Void)?

  private let loop: EventLoop
  private let bridge: String
  private let setupMax: TimeSpan
  private let open: (_ bridge: String, _ adapter: UInt64) throws(SystemError) -> Sockets
  private var network: (any PeerNetwork)?
  private var listener: BluetoothListener?
  private var connections: [NetworkConnection] = []
  private var index: UInt16?
  private var fault: SystemError?

  /// `setupMax`: the time limit for the setup request, which a peer sends as soon as the channel is connected. `open`
  /// opens the listener at the controller with this address; tests use a socket of another family.
  init(
    _ loop: EventLoop, bridge: String, setupMax: TimeSpan = .seconds(5),
    open: @escaping (String, UInt64) throws(SystemError) -> Sockets = NetworkAccessPoint.openSockets
  ) {
    self.loop = loop
    self.bridge = bridge
    self.setupMax = setupMax
    self.open = open
  }

  /// Whether peers can join the network.
  var isOpen: Bool { listener != nil }

  /// Whether this peer has an interface now.
  func hasJoined(_ peer: UInt64) -> Bool { connections.contains { $0.peer == peer && $0.membership != nil } }

  /// The current state of the network; nil while the controller is absent.
  var snapshot: NetworkSnapshot? {
    guard let index else { return nil }
    var peers = ""
    var count: UInt64 = 0
    for connection in connections {
      guard let (interface, since) = connection.membership else { continue }
      count += 1
      let address = BluetoothEndpoint(address: connection.peer, isRandom: false).text
      let seconds = decimal((loop.now - since).milliseconds / 1000)
      peers = joined([peers, ", ", address, " ", interface, " for ", seconds, " s"])
    }
    let detail = joined([
      "hci", decimal(UInt64(index)), ", ", bridge, ", not sealed, ", decimal(count), " of ",
      decimal(UInt64(Self.peersMax)),
      " peers", peers,
    ])
    return NetworkSnapshot(detail: detail, problem: fault.map { problem($0) })
  }

  /// Starts at a controller that is up.
  func start(_ working: Adapter.Working) {
    index = working.index
    do throws(SystemError) {
      let sockets = try open(bridge, working.address)
      listener = try BluetoothListener(
        loop, sockets.channels, { [self] in adopt($0, $1.address) }, shortage: { [self] error in report(error) })
      network = sockets.network
      fault = nil
      report?("peers may join the bridge: plain Ethernet, which Causeway neither seals nor authenticates", false)
    } catch {
      report(error)
    }
  }

  /// Stops, because the controller is down or the box ends.
  func stop() {
    listener?.close()
    listener = nil
    for connection in connections { connection.close() }
    network = nil
    index = nil
    fault = nil
  }

  static func openSockets(_ bridge: String, _ adapter: UInt64) throws(SystemError) -> Sockets {
    let network = try BridgedNetwork(bridge, adapter)
    return (try L2CAPSocket.listenForNetwork(adapter), network)
  }

  /// Waits for the setup request on a connected channel, and closes an earlier channel of the same peer. The new
  /// channel is closed if there are already `peersMax` channels, or if epoll fails.
  func adopt(_ descriptor: CInt, _ peer: UInt64) {
    connections.first { $0.peer == peer }?.close()
    guard connections.count < Self.peersMax else {
      _ = close(descriptor)
      return
    }
    guard let connection = try? NetworkConnection(loop, descriptor, peer, setupMax, self) else { return }
    connections.append(connection)
  }

  // MARK: For the connections

  /// Joins a peer to the network. Returns the peer's interface; nil if the peer cannot join.
  func join(_ connection: NetworkConnection, _ channel: CInt) -> String? {
    guard let network else { return nil }
    do throws(SystemError) {
      let interface = try network.join(channel, connection.peer)
      if fault != nil { report(nil) }
      return interface
    } catch {
      // EBADFD: the peer has left since. EEXIST: the peer's former interface is about to be removed. EBADFD and EEXIST
      // are no fault of this box.
      if error.code != EBADFD && error.code != EEXIST { report(error) }
      return nil
    }
  }

  func left(_ connection: NetworkConnection) {
    network?.leave(connection.peer)
  }

  func ended(_ connection: NetworkConnection) { connections.removeAll { $0 === connection } }

  /// Reports a fault once, and its end once.
  private func report(_ error: SystemError?) {
    if error == fault { return }
    fault = error
    report?(error.map { problem($0) } ?? "peers can join again", error != nil)
  }

  private func problem(_ error: SystemError) -> String {
    switch error.code {
    case EPROTONOSUPPORT: "peers cannot join: the kernel has no BNEP: run “modprobe bnep”, or remove [bluetooth] nap"
    case ENODEV: "peers cannot join: [bluetooth] nap does not name a bridge: run “ip link add NAME type bridge”"
    case EPERM: "peers cannot join: no permission to add interfaces: run with CAP_NET_ADMIN"
    case EACCES: "peers cannot join: no permission for the channel: run with CAP_NET_BIND_SERVICE"
    case EADDRINUSE: "peers cannot join: another program is a network access point: stop bluetoothd"
    case _: "peers cannot join: " + error.text
    }
  }
}

// Interpolation of strings would take three times as much code.
@inline(never) private func joined(_ parts: [String]) -> String {
  var all = ""
  for part in parts { all += part }
  return all
}

@inline(never) private func decimal(_ number: UInt64) -> String { number.description }
