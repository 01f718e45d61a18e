import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerIP
@testable import Netlink

/// Runs `body` in a private network namespace. Returns false, without running `body`, if this process is not allowed to
/// create a namespace. Only the calling thread changes its namespace, and the thread returns to its former namespace
/// afterwards.
private func inPrivateNamespace(_ body: () throws -> Void) rethrows -> Bool {
  let home = csystem_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0)
  guard home >= 0, unshare(CLONE_NEWNET) == 0 else { return false }
  defer {
    #expect(setns(home, CLONE_NEWNET) == 0)
    close(home)
  }
  try body()
  return true
}

/// Sets or clears IFF_UP of `lo`.
private func setLoopback(up: Bool) throws {
  var message = NetlinkMessage(UInt16(RTM_NEWLINK), 0)
  message.append(UInt32(AF_UNSPEC))  // the fields of ifinfomsg: family, padding, type
  message.append(UInt32(if_nametoindex("lo")))
  message.append(UInt32(up ? IFF_UP : 0))
  message.append(UInt32(IFF_UP))  // the flags to change
  try message.exchange()
}

private let canUnshare = inPrivateNamespace {}

@Suite struct NamespaceTests {
  init() throws { try #require(canUnshare, "the tests of network namespaces need root") }

  @Test func `an interface that comes up or goes down is noticed`() throws {
    _ = try inPrivateNamespace {
      let loop = try EventLoop()
      let node = Node(loop)
      defer { node.bearer.stop() }
      var changes = 0
      node.bearer.interfacesChanged = { changes += 1 }
      #expect(node.bearer.interfaces.isEmpty)
      try setLoopback(up: true)
      serve(loop) { changes == 1 }
      #expect(node.bearer.interfaces.map(\.name) == ["lo"])
      #expect(node.bearer.interfaces.first?.kind == .loopback)
      try setLoopback(up: false)
      serve(loop) { changes == 2 }
      #expect(node.bearer.interfaces.isEmpty)
    }
  }

  @Test func `an address added to an interface accepts links`() throws {
    _ = try inPrivateNamespace {
      try setLoopback(up: true)
      let loop = try EventLoop()
      let (a, b) = (Node(loop), Node(loop))
      defer { a.bearer.stop(); b.bearer.stop() }
      let lo = if_nametoindex("lo")
      try addInterfaceAddress(lo, ipv4: 0xC0A8_3101, prefixLength: 24)
      try addInterfaceAddress(lo, ipv4: 0xC0A8_3101, prefixLength: 24)  // an address that exists already is no error
      a.bearer.dial(candidate(IPEndpoint(ipv4: 0xC0A8_3101, port: b.bearer.port)), token: 1)
      serve(loop) { !a.recorder.opened.isEmpty && !b.recorder.opened.isEmpty }
      #expect(a.recorder.opened.first?.remote == .ip(IPEndpoint(ipv4: 0xC0A8_3101, port: b.bearer.port)))
      #expect(b.recorder.opened.count == 1, "an address is known although its announcement has not settled")
      try removeInterfaceAddress(lo, ipv4: 0xC0A8_3101, prefixLength: 24)
      #expect(throws: SystemError(code: EADDRNOTAVAIL)) {
        try removeInterfaceAddress(lo, ipv4: 0xC0A8_3101, prefixLength: 24)
      }
    }
  }

  @Test func `bridges are created and removed, and impossible requests return errors`() throws {
    _ = try inPrivateNamespace {
      try makeBridge("cw-bridge", ethernetAddress: 0x0200_0102_0304)
      try makeBridge("cw-port", ethernetAddress: 0x0200_0000_0001)  // a bridge that is not a port of another bridge yet
      try makeBridge("cw-bridge", ethernetAddress: 0x0200_0102_0304)  // a bridge that exists already is no error
      let bridge = if_nametoindex("cw-bridge")
      #expect(throws: SystemError(code: ELOOP)) { try setBridge(of: if_nametoindex("cw-port"), bridge) }
      #expect(throws: SystemError(code: ENODEV)) { try setBridge(of: 4242, bridge) }
      #expect(throws: SystemError(code: EOPNOTSUPP)) { try removeInterface(if_nametoindex("lo")) }
      try removeInterface(bridge)
      #expect(if_nametoindex("cw-bridge") == 0)
    }
  }

  @Test func `an address for an absent interface is an error`() throws {
    _ = inPrivateNamespace {
      #expect(throws: SystemError(code: ENODEV)) {
        try addInterfaceAddress(4242, ipv4: 0xC0A8_3101, prefixLength: 24)
      }
    }
  }

  @Test func `the interface of a static peer may appear later`() throws {
    _ = try inPrivateNamespace {
      try setLoopback(up: true)
      let loop = try EventLoop()
      let node = Node(loop) {
        $0.peers = [
          StaticPeer(endpoint: IPEndpoint(high: 0xFE80 << 48, low: 1, port: 41_820, scope: 0), interface: "cw0"),
          StaticPeer(endpoint: IPEndpoint(ipv4: 0xC0A8_3101, port: 41_820), interface: ""),
        ]
      }
      defer { node.bearer.stop() }
      #expect(node.recorder.found.map(\.bearer) == [.ethernet])
      #expect(node.recorder.reports.isEmpty)
      try addInterfaceAddress(if_nametoindex("lo"), ipv4: 0xC0A8_3109, prefixLength: 24)
      serve(loop) { node.recorder.found.count == 2 }
      #expect(node.recorder.found.last?.bearer == .loopback, "the address is on that interface's network now")
      #expect(node.recorder.lost.count == 1)
    }
  }
}
