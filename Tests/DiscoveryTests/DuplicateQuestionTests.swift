import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Discovery

/// A node at the far end of a cable. The node asks for services, and counts the questions of the box at the near end.
private final class Asker {
  private static let type = ["_causeway", "_tcp", "local"]

  private let socket: CInt
  private let question: [UInt8]
  /// The number of questions that the box at the near end has sent.
  private(set) var heard = 0

  /// Creates a node whose questions list the service `known` as a known answer.
  init(on cable: String, known: String) {
    socket = CSystem.socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
    var packet = PacketBuilder()
    packet.isQuery = true
    packet.question(Self.type, type: 12)
    packet.record([0xC0, 12], type: 12, [UInt8(known.utf8.count)] + Array(known.utf8) + [0xC0, 12])
    question = packet.bytes
    let name = Array(cable.utf8)
    setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.count))
    var yes: CInt = 1
    for option in [SO_REUSEADDR, SO_REUSEPORT] {
      setsockopt(socket, SOL_SOCKET, option, &yes, socklen_t(MemoryLayout<CInt>.size))
    }
    var membership = ip_mreqn()
    membership.imr_multiaddr = Self.group.sin_addr
    membership.imr_ifindex = CInt(if_nametoindex(cable))
    let size = socklen_t(MemoryLayout<ip_mreqn>.size)
    for option in [IP_ADD_MEMBERSHIP, IP_MULTICAST_IF] {
      setsockopt(socket, CInt(IPPROTO_IP), option, &membership, size)
    }
    var no: CInt = 0
    setsockopt(socket, CInt(IPPROTO_IP), IP_MULTICAST_LOOP, &no, socklen_t(MemoryLayout<CInt>.size))
    withGroup { _ = bind(socket, $0, $1) }
  }

  deinit { close(socket) }

  func ask() {
    withGroup { [self] in _ = sendto(socket, question, question.count, 0, $0, $1) }
  }

  /// Counts the questions received since the last call.
  func listen() {
    var packet = [UInt8](repeating: 0, count: 9000)
    // The question follows the header of 12 bytes. The first bit of byte 2 marks a response.
    let asked = PacketBuilder.name(Self.type) + [0, 12, 0, 1]
    while case let count = recv(socket, &packet, packet.count, 0), count >= 12 {
      if packet[2] & 0x80 == 0 && packet[12..<count].starts(with: asked) { heard += 1 }
    }
  }

  private static let group: sockaddr_in = {
    var group = sockaddr_in()
    group.sin_family = sa_family_t(AF_INET)
    group.sin_port = UInt16(5353).bigEndian
    group.sin_addr.s_addr = UInt32(0xE000_00FB).bigEndian
    return group
  }()

  private func withGroup(_ body: (CSystem.__CONST_SOCKADDR_ARG, socklen_t) -> Void) {
    withUnsafeBytes(of: Self.group) {
      let address = $0.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      body(.init(__sockaddr__: address), socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

// An extension of the serial suite `EmbeddedResponderTests`, so that the tests of both never run at the same time.
// CAvahi keeps one record of questions for the process.
extension EmbeddedResponderTests {
  struct DuplicateQuestionTests {
    @Test func `a question that another node asked is repeated only if that node knows one service more`() throws {
      let namespaces = try NetworkNamespaces()
      setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1)
      let loop = try EventLoop()
      let settings = DiscoverySettings(node: NodeID(high: 1, low: 0), port: 7001, displayName: "box")
      let listener = Listener()
      let box = DNSServiceDiscovery(
        loop, settings, hint: 1, bearerKind: { _ in .ethernet }, isOnLink: { _, _ in true }, listener)
      try namespaces.plug("cable0", "10.77.0")
      try namespaces.plug("cable1", "10.78.0")
      let (equal, wiser) = namespaces.on(.far) {
        (Asker(on: "cable0", known: settings.instanceName), Asker(on: "cable1", known: "stranger"))
      }
      namespaces.on(.near) { box.start() }
      defer { box.stop() }
      // The box repeats its question after 1, 2, 4, … seconds. The first question on each interface is sent whatever
      // others asked.
      serve(loop) {
        for asker in [equal, wiser] { asker.listen() }
        return equal.heard > 0 && wiser.heard > 0
      }
      let before = [equal.heard, wiser.heard]
      try #require(!before.contains(0), "a cable carries no questions")
      // Within 8 s the box would send three more questions, 1, 2 and 4 s apart.
      let end = monotonicNow() + .seconds(8)
      var nextAt = Instant.zero
      while monotonicNow() < end {
        if nextAt <= monotonicNow() {
          nextAt = monotonicNow() + .milliseconds(200)
          for asker in [equal, wiser] { asker.ask() }
        }
        serve(loop, for: .milliseconds(20))
        for asker in [equal, wiser] { asker.listen() }
      }
      #expect(equal.heard == before[0])
      #expect(wiser.heard >= before[1] + 2)
    }
  }
}
