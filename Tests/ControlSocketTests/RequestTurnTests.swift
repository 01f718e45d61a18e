import CSystem
import Primitives
import Testing

@testable import ControlSocket

/// The number of requests of a user that one pass of the event loop reads.
@Suite(.serialized) struct RequestTurnTests {
  let box: Box
  init() throws { box = try Box() }

  /// A client whose user is neither root nor the user of the tests.
  private final class Stranger {
    let socket: CInt
    private let connection: ControlConnection

    init(_ box: Box, serial: UInt32) throws {
      var ends: [CInt] = [-1, -1]
      try #require(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
      socket = ends[0]
      // The user of a descriptor that does not exist is unknown.
      connection = try ControlConnection(box.server, ends[1], UnixUser(-1), serial: serial)
    }

    func send(_ packet: [UInt8]) {
      #expect(packet.withUnsafeBytes { CSystem.send(socket, $0.baseAddress, $0.count, 0) } == packet.count)
    }

    func end() {
      connection.close(.left)
      close(socket)
    }
  }

  private static var requests: [ControlRequest] {
    [.watch, .way(bobID), .status, .applications, .explain(aliceID, bobID), .probe(request: 1, bobID)]
  }

  @Test(arguments: requests.indices)
  func `a wake-up serves one request of a user over all its connections`(_ index: Int) throws {
    let packet = Self.requests[index].encoded()
    let strangers = try (0..<3).map { try Stranger(box, serial: UInt32(100 + $0)) }
    defer { for stranger in strangers { stranger.end() } }
    for stranger in strangers { for _ in 0..<2 { stranger.send(packet) } }
    for pass in 1...3 {
      box.turn(1)
      #expect(box.node.calls <= pass, "pass \(pass)")
    }
    #expect(box.node.calls > 0)
  }

  @Test func `requests of the operator do not wait for a turn`() throws {
    let clients = try (0..<3).map { _ in try ControlClient(path: box.socketPath) }
    box.turn()
    let before = box.node.calls
    for client in clients { for _ in 0..<2 { client.send(.way(bobID)) } }
    box.turn(1)
    #expect(box.node.calls == before + 6)
  }
}
