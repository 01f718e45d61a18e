import ControlSocket
import Primitives
import Status
import Testing

/// The answers to `explain` and `sessions` over the control socket.
@Suite(.serialized) struct AnswerTests {
  let box: Box
  init() throws { box = try Box() }

  @Test func `a request for an explanation contains two ids`() throws {
    var packet = [UInt8](repeating: 0, count: 33)
    packet[0] = 0x58
    packet.replaceSubrange(1..<3, with: [0xA1, 0x1C])
    let id = NodeID(high: 0xA11C_0000_0000_0000, low: 0)
    #expect(ControlRequest.explain(id, .none).encoded() == packet)
    guard case .explain(id, .none) = try ControlRequest(packet) else { Issue.record("another request"); return }
    for count in 1..<33 {
      #expect(throws: ControlSyntaxError.self) { try ControlRequest(Array(packet[..<count])) }
    }
    let client = try ControlClient(path: box.socketPath)
    client.send(.explain(aliceID, bobID))
    guard case .statusPiece(let piece) = box.event(client) else { Issue.record("no answer"); return }
    #expect(!piece.isEmpty && box.node.explained.count == 1)
    #expect(box.node.explained[0].0 == aliceID && box.node.explained[0].1 == bobID)
  }

  @Test func `a request for the applications is one byte`() throws {
    #expect(ControlRequest.applications.encoded() == [0x4E])
    box.node.applications = [ApplicationStatus(name: "chat", user: 1000, process: 42, services: [], sessions: [])]
    let client = try ControlClient(path: box.socketPath)
    client.send(.applications)
    guard case .statusPiece(let piece) = box.event(client) else { Issue.record("no answer"); return }
    #expect(piece == box.node.applications.toJSON())
  }
}
