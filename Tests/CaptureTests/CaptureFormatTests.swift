import Capture
import Frame
import Primitives
import Testing

@Suite struct CaptureFormatTests {
  @Test func `a capture file begins with the pcap header`() {
    #expect(
      CaptureFormat.fileHeader == [
        0xA1, 0xB2, 0x3C, 0x4D, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0x40, 0, 0, 0, 147,
      ])
  }

  @Test func `a truncated or invalid record has no length`() throws {
    let client = try CaptureClient()
    client.pass()
    let records = try #require(client.received()).records
    for count in 0..<records.count { #expect(CaptureFormat.recordByteCount(records[..<count]) == nil) }
    #expect(CaptureFormat.recordByteCount(records[...]) == records.count)
    #expect(CaptureFormat.recordByteCount([UInt8](repeating: 0xFF, count: 80)[...]) == nil)
  }
}
