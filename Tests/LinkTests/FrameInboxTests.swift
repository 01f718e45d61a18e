import Frame
import Link
import Primitives
import TestSupport
import Testing

private let node = NodeID(high: 1, low: 2)

private func withInbox<E>(_ body: (inout FrameInbox) throws(E) -> Void) throws(E) {
  let memory = Borrowed(Limits.frameBytesMax)
  var inbox = FrameInbox(memory.bytes)
  try body(&inbox)
}

/// Feeds `pieces` to the inbox in order. Returns the complete frames.
private func cut(_ pieces: [[UInt8]], with inbox: inout FrameInbox) throws(FrameError) -> [[UInt8]] {
  var found: [[UInt8]] = []
  for piece in pieces {
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: max(piece.count, 1), alignment: 1)
    defer { input.deallocate() }
    input.copyBytes(from: piece)
    var offset = 0
    while let frame = try inbox.next(UnsafeRawBufferPointer(rebasing: input[..<piece.count]), &offset) {
      found.append([UInt8](frame))
    }
  }
  return found
}

private let three = [
  frame(.ping, from: node, [1, 2, 3]), frame(.segment, from: node, [UInt8](repeating: 7, count: 200)),
  frame(.goodbye, from: node, [9]),
]

@Test func `a stream split anywhere yields the same frames`() throws {
  let stream = three.flatMap { $0 }
  for offset in 0...stream.count {
    try withInbox { inbox in
      let found = try cut([[UInt8](stream[..<offset]), [UInt8](stream[offset...])], with: &inbox)
      #expect(found == three, "cut at \(offset)")
    }
  }
}

@Test func `a stream that arrives byte by byte yields the same frames`() throws {
  try withInbox { inbox in
    let found = try cut(three.flatMap { $0 }.map { [$0] }, with: &inbox)
    #expect(found == three)
  }
}

@Test func `the longest frame is received as a whole and in pieces`() throws {
  let longest = frame(.segment, from: node, [UInt8](repeating: 5, count: Limits.framePayloadBytesMax))
  try withInbox { inbox in
    let found = try cut([longest], with: &inbox)
    #expect(found == [longest])
    let pieced = try cut([[UInt8](longest[..<10_000]), [UInt8](longest[10_000...])], with: &inbox)
    #expect(pieced == [longest])
  }
}

@Test func `a stream without the frame marker is refused as an unknown version`() {
  withInbox { inbox in
    #expect(refusal { () throws(FrameError) in _ = try cut([three[0] + [0x17]], with: &inbox) } == .unknownVersion)
  }
}

@Test func `a frame that is too long is refused before it is stored`() {
  let head = hex("81 20 00 01 00 00 4101")
  withInbox { inbox in
    #expect(refusal { () throws(FrameError) in _ = try cut([head], with: &inbox) } == .overLength)
  }
  withInbox { inbox in
    #expect(refusal { () throws(FrameError) in _ = try cut(head.map { [$0] }, with: &inbox) } == .overLength)
  }
}

@Test func `a partly received frame can be discarded`() throws {
  try withInbox { inbox in
    let begun = try cut([[UInt8](three[1].prefix(60))], with: &inbox)
    #expect(begun == [])
    inbox.removeAll()
    let found = try cut([three[0]], with: &inbox)
    #expect(found == [three[0]])
  }
}

@Test func `empty input yields no frame`() throws {
  try withInbox { inbox in
    let found = try cut([[]], with: &inbox)
    #expect(found == [])
  }
}
