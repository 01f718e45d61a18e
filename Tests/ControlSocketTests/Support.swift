import CSystem
import ControlSocket
import Frame
import Journal
import Primitives
import Reactor
import Status
import Testing
import Text

/// A temporary directory that is removed with its test.
final class TemporaryDirectory {
  let path: String
  init() {
    var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
  }
  deinit {
    unlink(path + "/control.sock")
    rmdir(path)
  }
}

let aliceID = NodeID(high: 0xA11C_E000_0000_0001, low: 1)
let bobID = NodeID(high: 0xB0B0_0000_0000_0002, low: 2)

func peer(_ id: NodeID, _ name: String, info: [String] = [], hops: UInt8 = 1) -> PeerStatus {
  PeerStatus(
    id: id, name: name, serviceType: "causeway", info: info, hops: hops, bearer: .wifiDirect, via: id)
}

/// A node that answers the control server as the test specifies.
final class FakeNode: ControlDelegate {
  var peers: [PeerStatus] = []
  /// The number of calls of each request: status, peers, ways (paths to a node), probes, applications, explanations.
  var calls = 0

  func controlStatus() -> StatusSnapshot {
    calls += 1
    var snapshot = StatusSnapshot(
      box: BoxStatus(
        name: "box", id: aliceID, epoch: 7, version: "1", serviceType: "causeway", isRelay: true, uptimeSeconds: 75,
        residentBytes: 4_200_000))
    snapshot.peers = peers
    return snapshot
  }
  func controlIdentity() -> (id: NodeID, name: String) { (aliceID, "alice") }
  func controlPeers() -> [PeerStatus] {
    calls += 1
    return peers
  }
  /// The outcome that each probe has at once. Nil if a probe ends later.
  var outcome: ProbeOutcome?
  var probed: [(node: NodeID, token: UInt64)] = []
  func controlProbe(_ node: NodeID, token: UInt64) -> ProbeOutcome? {
    calls += 1
    probed.append((node, token))
    return outcome
  }

  func controlWay(to node: NodeID) -> [ControlHop] {
    calls += 1
    return node == bobID
      ? [
        ControlHop(node: aliceID, bearer: .ethernet, name: "alice"),
        ControlHop(node: bobID, bearer: .bluetoothLE, name: "bob"),
      ] : []
  }

  var trustWishes: [(TrustOperation, NodeID, String)] = []
  func controlTrust(_ operation: TrustOperation, _ id: NodeID, name: String) -> (isDone: Bool, text: String) {
    trustWishes.append((operation, id, name))
    return (true, "done")
  }

  var reloads = 0
  func controlReload() -> (isDone: Bool, text: String) {
    reloads += 1
    return (true, "reloaded")
  }

  /// The invitation to the Wi-Fi group. Nil if there is no group.
  var invitation: JoinInvitation?
  func controlInvitation() throws(AccessError) -> JoinInvitation {
    guard let invitation else { throw AccessError("no group") }
    return invitation
  }

  var tap: (any FrameTap)?
  func controlTap(_ tap: (any FrameTap)?) { self.tap = tap }

  var controlIsSettled = true

  var applications: [ApplicationStatus] = []
  func controlApplications() -> [ApplicationStatus] {
    calls += 1
    return applications
  }
  var explained: [(NodeID, NodeID)] = []
  func controlExplain(_ from: NodeID, _ to: NodeID) -> [UInt8] {
    calls += 1
    explained.append((from, to))
    return Array("{}\n".utf8)
  }
}

/// A control server on an event loop that only the test runs.
final class Box {
  let directory = TemporaryDirectory()
  let loop: EventLoop
  let node = FakeNode()
  let server: ControlServer
  var socketPath: String { directory.path + "/control.sock" }

  init() throws {
    loop = try EventLoop()
    server = try ControlServer(loop, path: directory.path + "/control.sock", journal: .none, delegate: node)
  }
  deinit { server.close() }

  /// Runs the loop `times` times, so that the server serves the descriptors that are ready.
  func turn(_ times: Int = 6) { for _ in 0..<times { loop.turn(waitMilliseconds: 0) } }

  /// The next event that the client has received. Nil if there is none.
  func event(_ client: ControlClient) -> ControlEvent? {
    turn()
    if case .event(let event) = client.next(milliseconds: 0) { return event }
    return nil
  }

  /// A client that watches the status and has received all known peers.
  func watching() throws -> ControlClient {
    let client = try ControlClient(path: socketPath)
    client.send(.watch)
    while let event = event(client) {
      if case .ready = event { return client }
    }
    Issue.record("not told that all were told")
    return client
  }
}
