import Frame
import Primitives
import TestSupport
import Testing

private let node = NodeID(high: 0x2021_2223_2425_2627, low: 0x2829_2a2b_2c2d_2e2f)
private let golden = hex(
  """
  01 01 4100 00000009 0000000700000009
  202122232425262728292a2b2c2d2e2f
  03 626f62
  """)

private func decode(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try Hello(bytes.span.bytes) }
}

@Test func `a hello is encoded byte for byte as the protocol specifies`() {
  let hello = Hello(
    payloadBytesMax: 16_640, capabilities: .relay.union(.bypass), epoch: 7 << 32 | 9, node: node,
    name: DisplayName("bob"))
  #expect(encoded { output in hello.write(to: &output) } == golden)
  #expect(hello.byteCount == golden.count)
}

@Test func `a hello is decoded field by field`() throws {
  let hello = try Hello(golden.span.bytes)
  #expect(hello.versionMin == 1 && hello.versionMax == 1 && hello.payloadBytesMax == 16_640)
  #expect(hello.capabilities.contains(.relay) && hello.capabilities.contains(.bypass))
  #expect(hello.epoch == 0x7_0000_0009 && hello.node == node && hello.name == DisplayName("bob"))
}

@Test(arguments: 0..<golden.count) func `a truncated hello is refused`(byteCount: Int) {
  #expect(decode([UInt8](golden.prefix(byteCount))) == .truncated)
}

@Test func `bytes after the name are ignored, for later versions`() {
  #expect(decode(golden + [1, 2, 3]) == nil)
}

@Test func `a hello of a later version that supports version 1 is accepted`() {
  #expect(decode(golden.with { $0[1] = 9 }) == nil)
}

@Test func `a hello without a common version is an unknown version`() {
  #expect(decode(golden.with { $0.replaceSubrange(0...1, with: [2, 3]) }) == .unknownVersion)
  #expect(decode(golden.with { $0.replaceSubrange(0...1, with: [0, 0]) }) == .unknownVersion)
}

@Test func `another version is recognised even if its hello has another layout`() {
  #expect(decode([2, 3]) == .unknownVersion)
  #expect(
    decode(
      golden.with {
        $0.replaceSubrange(0...1, with: [2, 2]); $0[32] = 0
      }) == .unknownVersion)
}

@Test func `a hello whose frame length is below that of an advertisement is malformed`() {
  #expect(decode(golden.with { $0.replaceSubrange(2...3, with: [0x08, 0x00]) }) == nil)
  #expect(decode(golden.with { $0.replaceSubrange(2...3, with: [0x07, 0xff]) }) == .malformed)
}

@Test func `a hello with a null id is malformed`() {
  #expect(decode(golden.with { $0.replaceSubrange(16..<32, with: [UInt8](repeating: 0, count: 16)) }) == .malformed)
}

@Test func `a hello with an invalid name is refused with the reason`() {
  #expect(decode([UInt8](golden.prefix(32)) + [0]) == .malformed)
  #expect(decode([UInt8](golden.prefix(32)) + [1, 0xff]) == .malformed)
  #expect(decode([UInt8](golden.prefix(32)) + [64] + [UInt8](repeating: 0x61, count: 64)) == .overLength)
}

@Test func `sealed frames are not negotiated if the tags differ in kind`() throws {
  let hello = try Hello(golden.with { $0.replaceSubrange(4...7, with: [0, 0, 0, 3]) }.span.bytes)
  #expect(!hello.capabilities.contains(.bypass))
}

@Test func `unknown capabilities are ignored`() throws {
  let hello = try Hello(golden.with { $0.replaceSubrange(4...7, with: [0xff, 0, 0, 1]) }.span.bytes)
  #expect(hello.capabilities.contains(.relay) && !hello.capabilities.contains(.bypass))
}

@Test func `a goodbye is encoded and decoded byte for byte`() throws {
  let wire = hex("03 00 001e")
  let goodbye = Goodbye(reason: .full, retryAfterSeconds: 30)
  #expect(encoded { output in goodbye.write(to: &output) } == wire)
  let read = try Goodbye(wire.span.bytes)
  #expect(read == goodbye)
}

@Test(arguments: 0..<4) func `a truncated goodbye is refused`(byteCount: Int) {
  let bytes = [UInt8](hex("03 00 001e").prefix(byteCount))
  #expect(refusal { () throws(FrameError) in _ = try Goodbye(bytes.span.bytes) } == .truncated)
}

@Test func `a goodbye with a reason of a later version reads as a protocol error`() throws {
  let wire = hex("c8 00 0000")
  let goodbye = try Goodbye(wire.span.bytes)
  #expect(goodbye.reason == .protocolError)
}

@Test func `a goodbye prevents dials for at most an hour`() throws {
  let wire = hex("01 00 ffff")
  let goodbye = try Goodbye(wire.span.bytes)
  #expect(goodbye.retryAfterSeconds == 3600)
  #expect(Goodbye(reason: .full, retryAfterSeconds: .max).retryAfterSeconds == 3600)
}

@Test func `every close reason has its number and a name`() {
  let reasons: [CloseReason] = [
    .shutdown, .duplicate, .full, .protocolError, .identityMismatch, .unsupportedVersion, .timedOut, .streamLost,
    .notTrusted, .notNeeded, .parked,
  ]
  #expect(reasons.map(\.rawValue) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  #expect(Set(reasons.map { "\($0.name)" }).count == reasons.count)
}
