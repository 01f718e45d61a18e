import CSystem
import Capture
import ControlSocket
import Frame
import Primitives
import Reactor
import Testing

private let toBob = FramePassage(
  slot: 3, neighbour: bobID, bearer: .bluetoothLE, isSent: true, isOutsideTLS: true)
private let headerBytes = [UInt8](0x81...0xB0)

/// Captures of frames through a control server that each test creates.
@Suite(.serialized) struct CaptureRequestTests {
  let box: Box
  init() throws { box = try Box() }

  private func client(_ wish: CaptureWish = CaptureWish()) throws -> ControlClient {
    let client = try ControlClient(path: box.socketPath)
    client.send(.capture(wish))
    guard case .frames(0, let records) = box.event(client), records.isEmpty else {
      Issue.record("no capture has begun")
      return client
    }
    return client
  }

  private func pass(_ passage: FramePassage = toBob, payload: [UInt8] = [1, 2, 3]) {
    headerBytes.withUnsafeBytes { header in payload.withUnsafeBytes { box.node.tap?.passed(passage, header, $0) } }
  }

  private func received(_ client: ControlClient) -> (dropped: UInt32, records: [UInt8])? {
    box.server.sendFrames()
    guard case .frames(let dropped, let records) = box.event(client) else { return nil }
    return (dropped, records)
  }

  @Test func `a record has the time at which the frame passed`() throws {
    let client = try client()
    let before = wallClockNow()
    pass()
    let (dropped, records) = try #require(received(client))
    let seconds = records[0..<4].reduce(0) { $0 << 8 | UInt64($1) }
    let nanoseconds = records[4..<8].reduce(0) { $0 << 8 | UInt64($1) }
    let time = Instant(nanoseconds: seconds * 1_000_000_000 + nanoseconds)
    #expect(time >= before && time <= wallClockNow() && dropped == 0 && records.count == 80)
  }

  @Test func `payloads are captured on request`() throws {
    var wish = CaptureWish()
    wish.withPayload = true
    let client = try client(wish)
    pass()
    let records = try #require(received(client)).records
    #expect(Array(records[8..<16]) == [0, 0, 0, 67, 0, 0, 0, 67] && Array(records.suffix(3)) == [1, 2, 3])
  }

  @Test func `a capture may be restricted to a link or a neighbour`() throws {
    var ofLink = CaptureWish()
    ofLink.link = 3
    var ofAlice = CaptureWish()
    ofAlice.neighbour = aliceID
    let clients = (try client(ofLink), try client(ofAlice))
    var toAlice = toBob
    toAlice.slot = 4
    toAlice.neighbour = aliceID
    for passage in [toBob, toAlice] { pass(passage) }
    #expect(received(clients.0)?.records.count == 80 && received(clients.1)?.records.count == 80)
  }

  @Test func `links are tapped only during a capture`() throws {
    #expect(box.node.tap == nil)
    do {
      _ = try client()
      #expect(box.node.tap != nil)
    }
    box.turn()
    #expect(box.node.tap == nil)
  }

  @Test func `a fourth capture is refused with a reason`() throws {
    let clients = (try client(), try client(), try client())
    let fourth = try ControlClient(path: box.socketPath)
    fourth.send(.capture(CaptureWish()))
    guard case .answer(false, let text) = box.event(fourth) else { Issue.record("not refused"); return }
    #expect(text == "3 captures are shared: user \(geteuid()) has 3; end one of these captures first")
    _ = clients
  }

  /// The bytes that the kernel and the daemon hold for a client that does not read are bounded.
  @Test func `a client that does not read loses frames and receives their number`() throws {
    var wish = CaptureWish()
    wish.withPayload = true
    let client = try client(wish)
    let sent = 200
    for _ in 0..<sent {
      pass(payload: [UInt8](repeating: 7, count: 16_000))
      box.server.sendFrames()
    }
    var frames = 0
    var dropped: UInt32 = 0
    while let (lost, records) = received(client) {
      dropped += lost
      frames += records.count / (32 + 48 + 16_000)
    }
    #expect(dropped > 150 && frames + Int(dropped) == sent, "\(frames) came, \(dropped) dropped")
    pass()
    #expect(received(client)?.dropped == 0)
  }

  @Test func `a capture request and a packet of frames are decoded as they were encoded`() throws {
    var wish = CaptureWish()
    wish.neighbour = bobID
    let request = ControlRequest.capture(wish).encoded()
    #expect(request == [0x4B, 4, 0, 0xB0, 0xB0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2])
    guard case .capture(wish) = try ControlRequest(request) else { Issue.record("another request"); return }
    #expect(ControlEvent.frames(dropped: 258, records: [9]).encoded() == [0x4B, 0, 0, 1, 2, 9])
  }
}
