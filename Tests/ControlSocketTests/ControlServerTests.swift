import CSystem
import ControlSocket
import Primitives
import Reactor
import Status
import Testing
import Text

@Suite(.serialized) struct ControlServerTests {
  let box: Box
  init() throws { box = try Box() }

  @Test func `a client receives the peers, then the box's own id and name`() throws {
    box.node.peers = [peer(bobID, "bob", info: ["room=kitchen", "k=v"], hops: 2)]
    let client = try ControlClient(path: box.socketPath)
    client.send(.watch)
    guard case .peerPresent(let bob) = box.event(client) else { Issue.record("no peer"); return }
    #expect(bob.id == bobID && bob.name == "bob" && bob.hops == 2 && bob.bearer == .wifiDirect && bob.via == bobID)
    #expect(bob.info == ["room=kitchen", "k=v"] && bob.serviceType == "causeway")
    guard case .ready(let id, let name) = box.event(client) else { Issue.record("not ready"); return }
    #expect(id == aliceID && name == "alice")
  }

  @Test func `only watching clients receive changes`() throws {
    let attached = try box.watching()
    let other = try ControlClient(path: box.socketPath)
    box.turn()
    box.server.peerPresent(peer(bobID, "bob"))
    box.server.peerLost(bobID)
    guard case .peerPresent = box.event(attached), case .peerLost(bobID) = box.event(attached) else {
      Issue.record("not told"); return
    }
    #expect(box.event(other) == nil)
  }

  @Test func `a probe is passed to the node, and its outcome is returned`() throws {
    let client = try ControlClient(path: box.socketPath)
    client.send(.probe(request: 7, bobID))
    box.turn()
    #expect(box.node.probed.count == 1 && box.node.probed[0].node == bobID)
    box.server.completed(token: box.node.probed[0].token, .delivered)
    guard case .completed(7, .delivered) = box.event(client) else { Issue.record("no completion"); return }
  }

  @Test func `the outcome of a probe that ends at once is returned`() throws {
    box.node.outcome = .unreachable
    let client = try ControlClient(path: box.socketPath)
    client.send(.probe(request: 5, bobID))
    guard case .completed(5, .unreachable) = box.event(client) else { Issue.record("no completion"); return }
  }

  @Test func `a reload is answered with a text`() throws {
    #expect(ControlRequest.reload.encoded() == [0x48])
    let client = try ControlClient(path: box.socketPath)
    client.send(.reload)
    guard case .answer(true, "reloaded") = box.event(client) else { Issue.record("no answer"); return }
    #expect(box.node.reloads == 1)
  }

  @Test func `a path is returned link by link`() throws {
    let client = try ControlClient(path: box.socketPath)
    client.send(.way(bobID))
    guard case .way(let hops) = box.event(client) else { Issue.record("no way"); return }
    #expect(
      hops == [
        ControlHop(node: aliceID, bearer: .ethernet, name: "alice"),
        ControlHop(node: bobID, bearer: .bluetoothLE, name: "bob"),
      ])
    client.send(.way(aliceID))
    guard case .way(let none) = box.event(client) else { Issue.record("no way"); return }
    #expect(none.isEmpty)
  }

  @Test func `the number of pending probes per client is limited`() throws {
    let client = try ControlClient(path: box.socketPath)
    for index in 0..<80 { client.send(.probe(request: UInt32(index), bobID)) }
    box.turn(60)
    #expect(box.node.probed.count == ControlProtocol.outstandingMax)
    box.server.completed(token: box.node.probed[0].token, .delivered)
    box.turn()
    #expect(box.node.probed.count == ControlProtocol.outstandingMax + 1)
  }

  @Test func `a client with too many unread events is disconnected`() throws {
    let client = try box.watching()
    let long = peer(
      bobID, String(repeating: "x", count: 63), info: [String](repeating: String(repeating: "y", count: 250), count: 5))
    for _ in 0..<2000 { box.server.peerPresent(long) }
    var reason = ""
    for _ in 0..<2000 {
      if case .closed(let text) = client.next(milliseconds: 0) { reason = text; break }
    }
    #expect(!reason.isEmpty)
  }

  /// Each of the eight clients has fewer unread bytes than its own limit, so the common limit is under test.
  @Test func `the unread bytes of all clients together are limited`() throws {
    let clients = try (0..<8).map { _ in try box.watching() }
    let long = peer(
      bobID, String(repeating: "x", count: 63), info: [String](repeating: String(repeating: "y", count: 250), count: 5))
    for _ in 0..<600 { box.server.peerPresent(long) }
    var closed = 0
    for client in clients {
      for _ in 0..<2000 {
        guard case .closed = client.next(milliseconds: 0) else { continue }
        closed += 1
        break
      }
    }
    #expect((1...7).contains(closed), "\(closed) of 8")
  }

  @Test func `an invalid request closes the connection`() throws {
    for packet in [
      [], [0x00], [0x41, 0], [0x51], Array("M123".utf8), [UInt8](repeating: 0x54, count: 300),
    ] {
      let socket = try connectRaw()
      defer { close(socket) }
      _ = packet.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, 0) }
      box.turn()
      var answer = [UInt8](repeating: 0, count: 256)
      let count = recv(socket, &answer, answer.count, Int32(MSG_DONTWAIT))
      #expect(count == 0 || (count > 0 && answer[0] == UInt8(ascii: "E")), "\(packet.prefix(6))")
    }
  }

  @Test func `some slots are reserved for the daemon's user, and a client beyond the limit is refused`() throws {
    let clients = try (0..<ControlProtocol.clientsMax + ControlProtocol.reservedMax).map { _ in try box.watching() }
    let late = try ControlClient(path: box.socketPath)
    guard case .closing(let reason) = box.event(late) else { Issue.record("not refused"); return }
    #expect(reason == "20 clients are shared: user \(geteuid()) has 20; close one of these clients first")
    _ = clients
  }

  @Test func `a refused client reads the refusal even if it has already sent a request`() throws {
    let clients = try (0..<ControlProtocol.clientsMax + ControlProtocol.reservedMax).map { _ in try box.watching() }
    let late = try ControlClient(path: box.socketPath)
    late.send(.status)
    guard case .closing(let reason) = box.event(late) else { Issue.record("not refused"); return }
    #expect(reason.hasPrefix("20 clients are shared"))
    _ = clients
  }

  @Test func `a client that leaves frees its slot`() throws {
    for _ in 0..<40 { _ = try box.watching() }
  }

  @Test func `a status of any length is fetched completely`() throws {
    box.node.peers = (0..<256).map {
      peer(
        NodeID(high: UInt64($0), low: 1), "peer \($0)",
        info: [String](repeating: "k=\(String(repeating: "v", count: 200))", count: 4))
    }
    let client = try ControlClient(path: box.socketPath)
    client.send(.status)
    var text: [UInt8] = []
    while case .statusPiece(let piece) = box.event(client) {
      text += piece
      if piece.isEmpty { break }
    }
    #expect(text == box.node.controlStatus().toJSON(withSecrets: true) && text.count > 200_000)
  }

  @Test func `the socket is accessible to owner and group, and is removed on close`() throws {
    var information = stat()
    #expect(stat(box.socketPath, &information) == 0 && information.st_mode & 0o777 == 0o660)
    box.server.close()
    #expect(access(box.socketPath, F_OK) != 0)
  }

  @Test func `a second daemon is refused, and a stale socket is replaced`() throws {
    #expect(throws: AccessError.self) {
      try ControlServer(box.loop, path: box.socketPath, journal: .none, delegate: box.node)
    }
    let directory = TemporaryDirectory()
    let path = directory.path + "/control.sock"
    do {
      let left = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = UInt16(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
      withUnsafePointer(to: &address) {
        _ = bind(left, __CONST_SOCKADDR_ARG(__sockaddr_un__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
      close(left)
    }
    let server = try ControlServer(box.loop, path: path, journal: .none, delegate: box.node)
    server.close()
  }

  @Test func `the error of a missing daemon contains the path of its socket`() {
    do throws(AccessError) {
      _ = try ControlClient(path: "/nonexistent/control.sock")
      Issue.record("connected")
    } catch { #expect(error.text.hasPrefix("no daemon answers at /nonexistent/control.sock")) }
  }

  private func connectRaw() throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = UInt16(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(box.socketPath.utf8)) }
    let result = withUnsafePointer(to: &address) {
      connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr_un__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
    }
    try #require(result == 0)
    box.turn()
    return descriptor
  }
}
