import Frame
import Primitives
import TestSupport
import Testing

private let destination = NodeID(high: 0x1011_1213_1415_1617, low: 0x1819_1a1b_1c1d_1e1f)
private let source = NodeID(high: 0x2021_2223_2425_2627, low: 0x2829_2a2b_2c2d_2e2f)
/// The header of a sealed segment with 258 bytes of payload, at bulk priority, with 7 hops left.
private let golden = hex(
  """
  81 20 01 07 03 00 0102
  101112131415161718191a1b1c1d1e1f
  202122232425262728292a2b2c2d2e2f
  00000005 0000002a
  """)

private func decode(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try FrameHeader(bytes.span.bytes) }
}

@Test func `a header is encoded byte for byte as the protocol specifies`() {
  let header = FrameHeader(
    type: .segment, flags: FrameHeader.sealed, ttl: 7, priority: .bulk, payloadByteCount: 258, destination: destination,
    source: source, identifier: 5 << 32 | 42)
  #expect(encoded { output in header.write(to: &output) } == golden)
}

@Test func `a header is decoded field by field`() throws {
  let header = try FrameHeader(golden.span.bytes)
  #expect(header.knownType == .segment && header.flags == FrameHeader.sealed && header.ttl == 7)
  #expect(header.priority == .bulk && header.payloadByteCount == 258 && header.frameByteCount == 306)
  #expect(header.destination == destination && header.source == source && header.identifier == 0x5_0000_002a)
}

@Test func `every frame type has its documented number`() throws {
  let numbers: [(FrameType, UInt8)] = [
    (.hello, 1), (.ping, 2), (.pong, 3), (.goodbye, 4), (.advertisement, 16), (.segment, 32), (.acknowledgement, 33),
    (.datagram, 34), (.reset, 35),
  ]
  for (type, number) in numbers {
    #expect(frame(type, from: source, [0])[1] == number)
    #expect(type.isLinkLocal == (number < 16))
    let bytes = frame(type, from: source, [0])
    let header = try FrameHeader(bytes.span.bytes)
    #expect(header.isRouted == (number >= 32))
  }
}

@Test(arguments: 0..<48) func `a truncated header is refused`(byteCount: Int) {
  #expect(decode([UInt8](golden.prefix(byteCount))) == .truncated)
}

@Test(arguments: [0x80, 0x82, 0x16, 0x00] as [UInt8]) func `a first byte other than the marker is an unknown version`(
  first: UInt8
) {
  #expect(decode(golden.with { $0[0] = first }) == .unknownVersion)
}

@Test func `a payload length of zero is refused`() {
  #expect(decode(golden.with { $0.replaceSubrange(6...7, with: [0, 0]) }) == .zeroLength)
  #expect(decode(golden.with { $0.replaceSubrange(6...7, with: [0, 1]) }) == nil)
}

@Test func `a payload length above the limit is refused`() {
  #expect(decode(golden.with { $0.replaceSubrange(6...7, with: [0x41, 0x00]) }) == nil)
  #expect(decode(golden.with { $0.replaceSubrange(6...7, with: [0x41, 0x01]) }) == .overLength)
  #expect(decode(golden.with { $0.replaceSubrange(6...7, with: [0xff, 0xff]) }) == .overLength)
}

@Test func `a frame with a hop limit of zero is refused`() {
  #expect(decode(golden.with { $0[3] = 0 }) == .ttlZero)
}

@Test func `reserved bits and undefined numbers are malformed`() {
  #expect(decode(golden.with { $0[2] = 2 }) == .malformed)
  #expect(decode(golden.with { $0[4] = 4 }) == .malformed)
  #expect(decode(golden.with { $0[5] = 1 }) == .malformed)
}

@Test func `a frame with a null source id is malformed`() {
  #expect(decode(golden.with { $0.replaceSubrange(24..<40, with: [UInt8](repeating: 0, count: 16)) }) == .malformed)
}

@Test func `an unknown frame type is valid, so that it can be skipped`() throws {
  let header = try FrameHeader(golden.with { $0[1] = 99 }.span.bytes)
  #expect(header.type == 99 && header.knownType == nil && header.frameByteCount == 306)
}

@Test func `the length of a frame is known from its first eight bytes`() throws {
  for byteCount in 0...golden.count {
    let known = try FrameHeader.frameByteCount(beginning: [UInt8](golden.prefix(byteCount)).span.bytes)
    #expect(known == (byteCount < 8 ? nil : 306))
  }
  let whole = FrameHeader.frameByteCount(of: golden.span.bytes)
  let inPieces = FrameHeader.frameByteCount { golden[$0] }
  #expect(whole == 306 && inPieces == 306)
}

@Test func `an invalid beginning is refused as soon as a wrong byte is received`() {
  func refused(_ bytes: [UInt8]) -> FrameError? {
    refusal { () throws(FrameError) in _ = try FrameHeader.frameByteCount(beginning: bytes.span.bytes) }
  }
  #expect(refused([0x16]) == .unknownVersion && refused([0x81]) == nil)
  #expect(refused(golden.with { $0.replaceSubrange(6...7, with: [0x41, 0x01]) }) == .overLength)
  #expect(refused(golden.with { $0.replaceSubrange(6...7, with: [0x41, 0x00]) }) == nil)
}

@Test func `a flag distinguishes sealed frames from others`() {
  let sealed = FrameHeader.isSealed(golden.span.bytes)
  let clear = FrameHeader.isSealed(golden.with { $0[2] = 0 }.span.bytes)
  #expect(sealed && !clear)
}

@Test func `every refusal has its own counter and name`() {
  var counters = RefusalCounters()
  var names: Set<String> = []
  for raw in 0..<UInt8(FrameError.count) {
    let refusal = FrameError(rawValue: raw)!
    for _ in 0...raw { counters.count(refusal) }
    names.insert("\(refusal.name)")
  }
  #expect(FrameError(rawValue: UInt8(FrameError.count)) == nil)
  #expect((0..<UInt8(FrameError.count)).allSatisfy { counters[FrameError(rawValue: $0)!] == UInt64($0) + 1 })
  #expect(names.count == FrameError.count)
}
