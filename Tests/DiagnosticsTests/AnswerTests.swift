import Diagnostics
import Primitives
import Testing
import Text

/// The answers to `explain` and `sessions` over the control socket.
@Suite(.serialized) struct AnswerTests {
  let box: Box
  init() throws { box = try Box() }

  @Test func `an explanation is asked for by two IDs`() throws {
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

  @Test func `applications are told with their sessions and nothing that they say`() throws {
    #expect(ControlRequest.applications.encoded() == [0x4E])
    box.node.applications = [
      ApplicationStatus(
        name: "group\u{1B}chat", user: 1000, process: 42, services: ["chat", "files"],
        sessions: [
          SessionStatus(
            id: bobID.text, type: "chat",
            members: [(bobID, "bob", "connected"), (aliceID, "", "away"), (bobID, "bob", "paused")], streams: 2,
            bytesWaiting: 5000)
        ])
    ]
    let report = try SessionsReport(box.node.applications.toJSON())
    defer { report.release() }
    #expect(
      String(decoding: report.text().bytes, as: UTF8.self) == """
        APPLICATION  USER  PROCESS  SESSIONS  SERVICES
        group?chat   1000  42       1         chat, files

        SESSION   TYPE  APPLICATION  MEMBERS  AWAY  PAUSED  STREAMS  WAITING
        b0b00000  chat  group?chat   2        1     1       2        5.0 kB

        """)
  }

  @Test func `the longest names fit eighty columns`() throws {
    let name = String(repeating: "ä", count: 31)
    let application = ApplicationStatus(
      name: name, user: 4_294_967_294, process: 4_194_304, services: Array(repeating: "a-service-type1", count: 8),
      sessions: [
        SessionStatus(
          id: bobID.text, type: "a-service-type1", members: Array(repeating: (bobID, "b", "connected"), count: 63),
          streams: 32, bytesWaiting: 999_900)
      ])
    let report = try SessionsReport([application].toJSON())
    defer { report.release() }
    for line in String(decoding: report.text().bytes, as: UTF8.self).split(separator: "\n") {
      #expect(line.unicodeScalars.count <= 80, "\(line)")
    }
  }
}
