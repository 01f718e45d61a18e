import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// An SDP server whose clients are connected by socket pairs that preserve datagram boundaries, as L2CAP does.
@Suite struct SDPConnectionsTests {
  private let loop: EventLoop
  private let connections: SDPConnections
  private let search = bytes("0200010008" + "3503190003" + "0001" + "00")

  init() throws {
    loop = try EventLoop()
    connections = SDPConnections(loop, SDPServer(channel: 5))
  }

  /// The client's end of a new channel.
  private func connect(_ address: UInt64) throws -> CInt {
    var ends: [CInt] = [-1, -1]
    let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    connections.adopt(ends[0], BluetoothEndpoint(address: address, isRandom: false), unitBytes: 48)
    return ends[1]
  }

  private func ask(_ client: CInt, _ request: [UInt8]) {
    _ = send(client, request, request.count, CInt(MSG_NOSIGNAL))
    loop.turn(waitMilliseconds: 0)
  }

  private func answer(_ client: CInt) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = recv(client, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    return count < 0 ? nil : hex(Array(buffer[..<count]))
  }

  @Test func `a client's search is answered`() throws {
    let client = try connect(1)
    ask(client, search)
    #expect(answer(client) == "0300010009" + "00010001" + "00010000" + "00")
    #expect(connections.channels.count == 1)
    close(client)
    connections.channels.closeAll()
  }

  @Test func `an invalid request closes the channel`() throws {
    let client = try connect(1)
    ask(client, [0x07, 0, 1, 0, 0])
    #expect(answer(client) == "" && connections.channels.count == 0)
    close(client)
  }

  @Test func `a new channel of a peer replaces its former one`() throws {
    let former = try connect(1), client = try connect(1)
    #expect(answer(former) == "" && connections.channels.count == 1)
    ask(client, search)
    #expect(answer(client) != nil)
    close(former)
    close(client)
    connections.channels.closeAll()
  }

  @Test func `a channel beyond the limit is closed`() throws {
    let clients = try (1...UInt64(SDPConnections.countMax + 1)).map { try connect($0) }
    #expect(connections.channels.count == SDPConnections.countMax)
    #expect(answer(clients[SDPConnections.countMax]) == "")
    connections.channels.closeAll()
    for client in clients { close(client) }
  }

  @Test func `a client that sends requests endlessly is disconnected`() throws {
    let client = try connect(1)
    var answers = 0
    for _ in 0...SDPConnections.rules.requestsMax {
      ask(client, search)
      if answer(client)?.isEmpty == false { answers += 1 }
    }
    #expect(answers == SDPConnections.rules.requestsMax && connections.channels.count == 0)
    close(client)
  }
}
