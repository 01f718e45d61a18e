import Bearer
import CAvahi
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Discovery

/// Two boxes without avahi-daemon, one at each end of a cable, in one event loop.
private final class Boxes {
  let namespaces: NetworkNamespaces
  let loop: EventLoop
  let near: DNSServiceDiscovery
  let far: DNSServiceDiscovery
  let nearListener = Listener()
  let farListener = Listener()

  init(nearSettings: DiscoverySettings? = nil, farSettings: DiscoverySettings? = nil) throws {
    namespaces = try NetworkNamespaces()
    // The network namespaces of the boxes do not hide the machine's D-Bus socket, which is a Unix socket. Without this
    // address the boxes would use the machine's avahi-daemon.
    setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1)
    let loop = try EventLoop()
    self.loop = loop
    func discovery(_ id: UInt64, _ listener: Listener, _ settings: DiscoverySettings?) -> DNSServiceDiscovery {
      let own = DiscoverySettings(node: NodeID(high: id, low: 0), port: UInt16(7000 + id), displayName: "box \(id)")
      return DNSServiceDiscovery(
        loop, settings ?? own, hint: id, bearerKind: { _ in .ethernet }, isOnLink: { _, _ in true }, listener)
    }
    near = discovery(1, nearListener, nearSettings)
    far = discovery(2, farListener, farSettings)
    try namespaces.plug("cable0", "10.77.0")
    start()
  }

  func start() {
    namespaces.on(.near) { near.start() }
    namespaces.on(.far) { far.start() }
  }

  func stop() {
    near.stop()
    far.stop()
  }

  /// Serves events until the condition holds. Returns false if the condition does not hold within the time limit of
  /// `serve`.
  func wait(_ condition: () -> Bool) -> Bool {
    serve(loop, atMost: .seconds(60), until: condition)
    return condition()
  }
}

private func ipv4(_ address: UInt64, port: UInt16) -> RemoteAddress {
  .ip(IPEndpoint(high: 0, low: 0xFFFF_0000_0000 | address, port: port, scope: 0))
}

extension Listener {
  func sees(_ address: RemoteAddress) -> Bool { present.contains { $0.address == address } }
  var seesLinkLocal: Bool {
    present.contains {
      if case .ip(let endpoint) = $0.address { endpoint.isLinkLocal && endpoint.scope != 0 } else { false }
    }
  }
}

@Suite(.serialized) struct EmbeddedResponderTests {
  @Test func `two boxes find each other over IPv4 and IPv6, and lose each other after a goodbye`() throws {
    let boxes = try Boxes()
    let nearEndpoint = ipv4(0x0A4D_0001, port: 7001)
    let farEndpoint = ipv4(0x0A4D_0002, port: 7002)
    #expect(boxes.wait { boxes.nearListener.sees(farEndpoint) && boxes.farListener.sees(nearEndpoint) })
    #expect(boxes.wait { boxes.nearListener.seesLinkLocal && boxes.farListener.seesLinkLocal })
    #expect(boxes.nearListener.present.allSatisfy { $0.hint == 2 && $0.bearer == .ethernet })
    #expect(boxes.near.source == .embedded)
    boxes.far.stop()
    #expect(boxes.wait { boxes.nearListener.present.isEmpty })
    boxes.stop()
  }

  @Test func `a starting box finds others before its own name is established`() throws {
    let boxes = try Boxes()
    #expect(boxes.wait { !boxes.nearListener.present.isEmpty && !boxes.farListener.present.isEmpty })
    boxes.far.stop()
    #expect(boxes.wait { boxes.nearListener.present.isEmpty })
    boxes.farListener.present = []
    boxes.namespaces.on(.far) { boxes.far.start() }
    #expect(boxes.wait { !boxes.farListener.present.isEmpty })
    #expect(boxes.far.active?.isReady == false)
    boxes.stop()
  }

  @Test func `a box that may use only the daemon reports its absence and publishes nothing`() throws {
    var settings = DiscoverySettings(node: NodeID(high: 2, low: 0), port: 7002, displayName: "box 2")
    settings.responder = .daemon
    let boxes = try Boxes(farSettings: settings)
    #expect(boxes.far.source == .none)
    #expect(boxes.farListener.reports.count == 1)
    boxes.stop()
  }

  @Test func `an interface that appears later is used`() throws {
    let boxes = try Boxes()
    try boxes.namespaces.plug("cable1", "10.78.0")
    #expect(boxes.wait { boxes.nearListener.sees(ipv4(0x0A4E_0002, port: 7002)) })
    boxes.stop()
  }

  @Test func `a box whose name is in use publishes under another name`() throws {
    // The display names and the ids in the settings are the same. The boxes themselves have other ids, so each box
    // reports the other box.
    let taken = DiscoverySettings(node: NodeID(high: 3, low: 0), port: 7002, displayName: "box")
    let boxes = try Boxes(nearSettings: taken, farSettings: taken)
    let renamed = Array("\(taken.instanceName) #2".utf8)
    #expect(boxes.wait { [boxes.near, boxes.far].contains { $0.table.services.contains { $0.key.name == renamed } } })
    #expect(boxes.wait { boxes.nearListener.present.contains { $0.hint == 3 } })
    #expect(boxes.wait { boxes.farListener.present.contains { $0.hint == 3 } })
    boxes.stop()
  }

  @Test func `CNAME records do not reach libavahi-core`() throws {
    let boxes = try Boxes()
    let farEndpoint = ipv4(0x0A4D_0002, port: 7002)
    #expect(boxes.wait { boxes.nearListener.sees(farEndpoint) })
    boxes.namespaces.on(.far) { for _ in 0..<20 { sendMulticast(aliasPacket) } }
    #expect(boxes.wait { boxes.near.refusedPackets >= 20 })
    #expect(boxes.nearListener.sees(farEndpoint))
    boxes.stop()
  }

  /// A packet with aliases (CNAME records). Two chains lead from the browsed name to the same name (avahi issue 683),
  /// and one alias closes a loop.
  private var aliasPacket: [UInt8] {
    var packet = PacketBuilder()
    let browsed = PacketBuilder.name(["_causeway", "_tcp", "local"])
    let names = ["one", "two", "end"].map { PacketBuilder.name([$0, "local"]) }
    for (from, to) in [(browsed, names[0]), (browsed, names[1]), (names[0], names[2]), (names[1], names[2])] {
      packet.record(from, type: 5, seconds: 1, to)
    }
    packet.record(names[2], type: 5, seconds: 1, browsed)
    return packet.bytes
  }

  private func sendMulticast(_ packet: [UInt8]) {
    let socket = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
    defer { close(socket) }
    var yes: CInt = 1
    for option in [SO_REUSEADDR, SO_REUSEPORT] {
      setsockopt(socket, SOL_SOCKET, option, &yes, socklen_t(MemoryLayout<CInt>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(5353).bigEndian
    address.sin_addr.s_addr = UInt32(0x0A4D_0002).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    var group = address
    group.sin_addr.s_addr = UInt32(0xE000_00FB).bigEndian
    withUnsafeBytes(of: &address) {
      _ = bind(socket, .init(__sockaddr__: $0.baseAddress!.assumingMemoryBound(to: sockaddr.self)), size)
    }
    withUnsafeBytes(of: &group) {
      let target = $0.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      _ = sendto(socket, packet, packet.count, 0, .init(__sockaddr__: target), size)
    }
  }
}
