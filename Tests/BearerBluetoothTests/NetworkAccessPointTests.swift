import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// A network access point whose peers are connected by socket pairs that preserve datagram boundaries, as L2CAP does.
/// The radio lab tests the kernel's BNEP.
@Suite struct NetworkAccessPointTests {
  private static let request = bytes("01010211161115")
  private static let working = Adapter.Working(index: 3, address: 1, isExtended: false)
  private let loop: EventLoop
  private let network = FakeNetwork()
  private let news = News()
  private let point: NetworkAccessPoint
  private let waiting = Waiting()

  init() throws {
    loop = try EventLoop()
    let (network, news, waiting) = (network, news, waiting)
    point = NetworkAccessPoint(
      loop, bridge: "br0", setupMax: .milliseconds(30),
      open: { (_, _) throws(SystemError) in
        if let failure = waiting.failure { throw SystemError(code: failure) }
        return (eventfd(0, 0), network)
      })
    point.report = { text, isFault in news.told.append((text, isFault)) }
  }

  /// The peer's end of a new channel.
  private func connect(_ address: UInt64) throws -> CInt {
    var ends: [CInt] = [-1, -1]
    try #require(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    point.adopt(ends[0], address)
    return ends[1]
  }

  private func ask(_ peer: CInt, _ request: [UInt8] = request) {
    _ = send(peer, request, request.count, CInt(MSG_NOSIGNAL))
    loop.turn(waitMilliseconds: 0)
  }

  /// The next packet to the peer, as hexadecimal digits. Nil if there is none, empty if the access point closed the
  /// channel.
  private func answer(_ peer: CInt) -> String? {
    var buffer = [UInt8](repeating: 0, count: 64)
    var count = recv(peer, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    // The kernel reports ECONNRESET if the access point closed its end without reading a request. The next call then
    // finds the end of the channel.
    if count < 0, csystem_errno() == ECONNRESET { count = recv(peer, &buffer, buffer.count, CInt(MSG_DONTWAIT)) }
    return count < 0 ? nil : hex(Array(buffer[..<count]))
  }

  /// Whether the access point closes the channel without sending data.
  private func ends(_ peer: CInt) -> Bool {
    var hasEnded = false
    serve(loop) {
      hasEnded = hasEnded || answer(peer) == ""
      return hasEnded
    }
    return hasEnded
  }

  @Test func `a peer joins the bridge and leaves it when its channel ends`() throws {
    point.start(Self.working)
    let peer = try connect(7)
    #expect(!point.hasJoined(7))
    ask(peer)
    #expect(network.members == [7] && network.unread == Self.request)
    #expect(point.hasJoined(7) && !point.hasJoined(8))
    #expect(
      point.snapshot
        == NetworkSnapshot(
          detail: "hci3, br0, not sealed, 1 of 7 peers, 00:00:00:00:00:07 bnep7 for 0 s", problem: nil))
    close(peer)
    loop.turn(waitMilliseconds: 0)
    #expect(network.members.isEmpty && point.snapshot?.detail == "hci3, br0, not sealed, 0 of 7 peers")
    point.stop()
  }

  @Test func `data that a member sends after it has joined is not parsed`() throws {
    point.start(Self.working)
    let peer = try connect(7)
    ask(peer)
    ask(peer, [0, 0])
    #expect(network.members == [7])
    point.stop()
    close(peer)
  }

  @Test func `a request for another role is refused, and its channel closes after the response`() throws {
    point.start(Self.working)
    let peer = try connect(7)
    ask(peer, bytes("01010211171115"))
    ask(peer)
    #expect(answer(peer) == "01020001" && answer(peer) == nil)
    #expect(ends(peer) && network.members.isEmpty)
    point.stop()
    close(peer)
  }

  @Test func `an invalid request closes the channel without a response`() throws {
    point.start(Self.working)
    let peer = try connect(7)
    ask(peer, [9])
    #expect(answer(peer) == "" && network.members.isEmpty)
    point.stop()
    close(peer)
  }

  @Test func `a channel without a request is closed, but a member may be silent`() throws {
    point.start(Self.working)
    let member = try connect(7)
    ask(member)
    let silent = try connect(8)
    #expect(answer(silent) == nil)
    #expect(ends(silent) && network.members == [7])
    point.stop()
    close(member)
    close(silent)
  }

  @Test func `a channel beyond the limit is closed`() throws {
    point.start(Self.working)
    let peers = try (1...UInt64(NetworkAccessPoint.peersMax + 1)).map { try connect($0) }
    #expect(answer(peers[NetworkAccessPoint.peersMax]) == "")
    for peer in peers.dropLast() { ask(peer) }
    #expect(network.members.count == NetworkAccessPoint.peersMax)
    point.stop()
    #expect(network.members.isEmpty)
    for peer in peers { close(peer) }
  }

  @Test func `a peer that reconnects replaces its former channel`() throws {
    point.start(Self.working)
    let former = try connect(7)
    ask(former)
    let peer = try connect(7)
    #expect(answer(former) == "" && network.members.isEmpty)
    ask(peer)
    #expect(network.members == [7])
    point.stop()
    close(former)
    close(peer)
  }

  @Test func `a peer that cannot join is refused, and the reason is reported once`() throws {
    point.start(Self.working)
    network.failure = ENODEV
    for _ in 0..<2 {
      let peer = try connect(7)
      ask(peer)
      #expect(answer(peer) == "01020004" && ends(peer))
      close(peer)
    }
    let text = "peers cannot join: [bluetooth] nap does not name a bridge: run “ip link add NAME type bridge”"
    #expect(news.told.filter { $0.1 }.map { $0.0 } == [text] && point.snapshot?.problem == text)
    network.failure = nil
    let peer = try connect(7)
    ask(peer)
    #expect(point.snapshot?.problem == nil && news.told.last.map { $0.0 } == "peers can join again")
    point.stop()
    close(peer)
  }

  @Test func `a join that meets a former interface of the peer is refused without a fault`() throws {
    point.start(Self.working)
    network.failure = EEXIST
    let peer = try connect(7)
    ask(peer)
    #expect(answer(peer) == "01020004" && point.snapshot?.problem == nil)
    point.stop()
    close(peer)
  }

  @Test func `the start warns that the network is not encrypted`() {
    point.start(Self.working)
    let warning = "peers may join the bridge: plain Ethernet, which Causeway neither seals nor authenticates"
    #expect(news.told.map { $0.0 } == [warning])
    point.stop()
  }

  @Test(arguments: [
    (EPROTONOSUPPORT, "the kernel has no BNEP: run “modprobe bnep”, or remove [bluetooth] nap"),
    (EPERM, "no permission to add interfaces: run with CAP_NET_ADMIN"),
    (EADDRINUSE, "another program is a network access point: stop bluetoothd"),
  ])
  func `each missing requirement is reported with its remedy`(_ code: CInt, _ remedy: String) {
    waiting.failure = code
    point.start(Self.working)
    #expect(point.snapshot?.problem == "peers cannot join: \(remedy)" && !point.isOpen)
    point.stop()
  }
}

private final class FakeNetwork: PeerNetwork {
  var members: [UInt64] = []
  var unread: [UInt8] = []
  var failure: CInt?

  func join(_ channel: CInt, _ peer: UInt64) throws(SystemError) -> String {
    if let failure { throw SystemError(code: failure) }
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = recv(channel, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    unread = Array(buffer[..<max(count, 0)])
    members.append(peer)
    return "bnep\(peer)"
  }

  func leave(_ peer: UInt64) { members.removeAll { $0 == peer } }
}

private final class News {
  var told: [(String, Bool)] = []
}

private final class Waiting {
  var failure: CInt?
}
