import Frame
import Primitives
import Seal
import TestSupport
import Testing

private let golden = hex(
  """
  01 03 02 00 05 02 0000 0000000700000001 00000009aabbccdd 0000000700000003 03
  """)

private let hello = SealHello(
  hasYours: true, wantsAnswer: true, refusal: .contradiction, ownFlags: TopologyFlags(rawValue: 5),
  yourFlags: TopologyFlags(rawValue: 2), ownEpoch: 0x7_0000_0001, yourEpoch: 0x9_aabb_ccdd,
  channelEpoch: 0x7_0000_0003)

@Test func `a sealed hello is encoded byte for byte as the protocol specifies`() throws {
  #expect(written(hello) == golden)
  #expect(try SealHello(golden.span.bytes) == hello)
}

@Test func `a sealed hello without a channel epoch means the boot epoch`() throws {
  var short = hello
  short.channelEpoch = short.ownEpoch
  short.readsJoined = false
  short.readsBusy = false
  for count in 24..<32 { #expect(try SealHello([UInt8](golden[..<count]).span.bytes) == short) }
}

@Test func `a sealed hello states the optional features that its node supports`() throws {
  var silent = hello
  silent.readsJoined = false
  silent.readsBusy = false
  #expect(try SealHello([UInt8](golden[..<32]).span.bytes) == silent)
  #expect(written(silent) == golden.with { $0[32] = 0 })
  // A later version may define more feature bits. This version ignores the bits of later versions.
  #expect(try SealHello(golden.with { $0[32] = 0xFF }.span.bytes) == hello)
  #expect(try SealHello(golden.with { $0[32] = 0xFC }.span.bytes) == silent)
}

@Test func `a channel epoch below the boot epoch is refused`() {
  let bytes = golden.with { $0[31] = 0 }
  #expect(throws: FrameError.malformed) { try SealHello(bytes.span.bytes) }
}

@Test func `bytes after a sealed hello are ignored, for later versions`() throws {
  let longer = golden + [1, 2, 3]
  #expect(try SealHello(longer.span.bytes) == hello)
}

@Test func `a sealed hello that is truncated or uses reserved bits is refused`() {
  for count in 0..<24 {
    let short = [UInt8](golden[..<count])
    #expect(throws: FrameError.truncated) { try SealHello(short.span.bytes) }
  }
  for (offset, value) in [(1, 4), (3, 1), (6, 1), (7, 1)] as [(Int, UInt8)] {
    let bytes = golden.with { $0[offset] |= value }
    #expect(throws: FrameError.malformed) { try SealHello(bytes.span.bytes) }
  }
}

@Test func `another version or an unknown refusal code counts as a refusal by version`() throws {
  let later = golden.with { $0[0] = 2 }
  #expect(try SealHello(later.span.bytes).refusal == .version)
  let unknown = golden.with { $0[2] = 77 }
  #expect(try SealHello(unknown.span.bytes).refusal == .version)
}

@Test func `every refusal has its documented number`() {
  #expect(SealRefusal.preferences.rawValue == 1 && SealRefusal.contradiction.rawValue == 2)
  #expect(
    SealRefusal.rejected.rawValue == 3 && SealRefusal.undecided.rawValue == 4 && SealRefusal.version.rawValue == 5)
}

private func written(_ hello: SealHello) -> [UInt8] {
  var bytes = [UInt8](repeating: 0xee, count: SealHello.byteCount)
  bytes.withUnsafeMutableBytes { hello.encode(into: $0) }
  return bytes
}
