import Frame
import Link
import Primitives
import Testing

/// How many bytes a link encrypts before its stream accepts them.
struct EncryptAheadTests {
  @Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .loopback, .bluetoothLE])
  func `nothing more is encrypted while enough bytes are unsent`(bearer: BearerKind) throws {
    let ahead = EncryptAhead(over: bearer)
    #expect(ahead.room(unsent: ahead.enough) == nil)
    let room = try #require(ahead.room(unsent: ahead.enough - 1))
    #expect(ahead.enough - 1 + room <= ahead.limit)
  }

  @Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .loopback, .bluetoothLE])
  func `the room for encrypted bytes is never smaller than the bearer's longest frame`(bearer: BearerKind) throws {
    let ahead = EncryptAhead(over: bearer)
    let longest = FrameHeader.byteCount + Link.payloadBytesMax(over: bearer)
    for unsent in 0..<ahead.enough {
      if let room = ahead.room(unsent: unsent), room < longest {
        Issue.record("\(room) bytes for a frame of \(longest) at \(unsent)")
        return
      }
    }
  }

  @Test func `a slow bearer encrypts one frame ahead, and a fast one as many as fit`() {
    let slow = EncryptAhead(over: .bluetoothLE), fast = EncryptAhead(over: .ethernet)
    #expect(slow.limit == FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE) && slow.enough == 1)
    let last = EncryptAhead.bytesMax - Limits.frameBytesMax
    #expect(fast.limit == EncryptAhead.bytesMax && fast.room(unsent: last) == Limits.frameBytesMax)
    #expect(slow.waitsForRoom && !fast.waitsForRoom && !EncryptAhead(over: .bluetoothClassic).waitsForRoom)
  }
}
