import CSystem
import Capture
import Frame
import Primitives
import Testing

@Suite struct CaptureQueueTests {
  @Test func `a record contains the time, the link and the header of the frame`() throws {
    let client = try CaptureClient()
    client.pass(at: Instant(nanoseconds: 0x0102_0304 * 1_000_000_000 + 0x0506))
    let (dropped, records) = try #require(client.received())
    #expect(dropped == 0)
    #expect(
      records == [1, 2, 3, 4, 0, 0, 5, 6] + [0, 0, 0, 64, 0, 0, 0, 67] + [1, 1, 3, 4, 1, 0, 0, 0]
        + [0xB0, 0xB0, 0, 0, 0, 0, 0, 2] + headerBytes)
  }

  @Test func `an empty queue sends a packet without records`() throws {
    let client = try CaptureClient()
    #expect(client.queue.isEmpty)
    #expect(client.received()?.records.isEmpty == true)
    client.pass()
    #expect(!client.queue.isEmpty)
    #expect(client.received()?.records.count == 80 && client.queue.isEmpty)
  }

  @Test func `a request may include payloads`() throws {
    var wish = CaptureWish()
    wish.withPayload = true
    let client = try CaptureClient(wish)
    client.pass()
    let records = try #require(client.received()).records
    #expect(Array(records[8..<16]) == [0, 0, 0, 67, 0, 0, 0, 67] && Array(records.suffix(3)) == [1, 2, 3])
  }

  @Test func `a request may restrict the capture to a link or a neighbour`() throws {
    var ofLink = CaptureWish()
    ofLink.link = 3
    var ofAlice = CaptureWish()
    ofAlice.neighbour = aliceID
    var toAlice = toBob
    toAlice.slot = 4
    toAlice.neighbour = aliceID
    for wish in [ofLink, ofAlice] {
      let client = try CaptureClient(wish)
      for passage in [toBob, toAlice] { client.pass(passage) }
      let records = try #require(client.received()).records
      #expect(records.count == 80 && records[18] == (wish == ofLink ? 3 : 4))
    }
  }

  @Test func `frames that do not fit are dropped, and reported once`() throws {
    var wish = CaptureWish()
    wish.withPayload = true
    let client = try CaptureClient(wish)
    for _ in 0..<10 { client.pass(payload: [UInt8](repeating: 7, count: 16_000)) }
    let full = try #require(client.received())
    #expect(full.dropped == 6 && full.records.count == 4 * (32 + 48 + 16_000))
    client.pass()
    #expect(client.received()?.dropped == 0)
  }

  @Test func `a packet that the client has not read is kept`() throws {
    let client = try CaptureClient()
    var error: CInt = 0
    for _ in 0..<10_000 where error == 0 {
      client.pass()
      error = client.queue.send(to: client.socket)
    }
    #expect(error == EAGAIN && !client.queue.isEmpty)
  }
}
