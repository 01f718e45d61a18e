import Frame
import Link
import Primitives
import Testing

/// How much is encrypted before the stream takes it.
struct EncryptAheadTests {
  @Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .loopback, .bluetoothLE])
  func `nothing more is taken once half of the limit is ahead`(bearer: BearerKind) throws {
    let ahead = EncryptAhead(over: bearer)
    #expect(ahead.room(unsent: ahead.limit / 2) == nil)
    let room = try #require(ahead.room(unsent: ahead.limit / 2 - 1))
    #expect(ahead.limit / 2 - 1 + room <= ahead.limit)
  }

  @Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .loopback, .bluetoothLE])
  func `there is room for the longest frame of the bearer whenever there is room`(bearer: BearerKind) throws {
    let ahead = EncryptAhead(over: bearer)
    let longest = FrameHeader.byteCount + Link.payloadBytesMax(over: bearer)
    for unsent in 0..<ahead.limit / 2 {
      if let room = ahead.room(unsent: unsent), room < longest {
        Issue.record("\(room) bytes for a frame of \(longest) at \(unsent)")
        return
      }
    }
  }

  @Test func `a slow bearer has one frame ahead and the next`() {
    let longest = FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE)
    #expect(EncryptAhead(over: .bluetoothLE).limit == 2 * longest)
    #expect(EncryptAhead(over: .ethernet).limit == EncryptAhead.bytesMax)
  }
}
