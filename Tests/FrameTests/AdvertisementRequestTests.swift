import Frame
import Primitives
import TestSupport
import Testing

private let nodes = [
  NodeID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f),
  NodeID(high: 0x2021_2223_2425_2627, low: 0x2829_2a2b_2c2d_2e2f),
]
private let golden = hex(
  """
  02 00 0000
  000102030405060708090a0b0c0d0e0f
  202122232425262728292a2b2c2d2e2f
  """)

private func written(_ nodes: [NodeID]) -> [UInt8] {
  encoded { output in
    AdvertisementRequest.writeHead(count: nodes.count, to: &output)
    for node in nodes { output.append(node) }
  }
}

private func decode(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try AdvertisementRequest(bytes.span.bytes) }
}

@Test func `a request is encoded byte for byte as the protocol specifies`() {
  #expect(written(nodes) == golden && golden.count == AdvertisementRequest.byteCount(2))
  #expect(FrameType.request.rawValue == 5 && FrameType.request.isLinkLocal)
}

@Test func `a request yields each requested node`() throws {
  let request = try AdvertisementRequest(golden.span.bytes)
  let read = (0..<request.count).map { request.node($0) }
  #expect(read == nodes)
}

@Test func `a request for all advertisements lists no node`() throws {
  let bytes = hex("00 00 0000")
  let request = try AdvertisementRequest(bytes.span.bytes)
  #expect(request.count == 0)
  #expect(written([]) == bytes)
}

@Test(arguments: 0..<golden.count) func `a truncated request is refused`(byteCount: Int) {
  #expect(decode([UInt8](golden.prefix(byteCount))) == .truncated)
}

@Test func `a request for more than sixty-four nodes exceeds the limit`() {
  let many = (1...65).map { NodeID(high: UInt64($0), low: 0) }
  #expect(decode(written(Array(many.prefix(64)))) == nil)
  #expect(decode(written(many)) == .overLength)
}

@Test func `a request with reserved bits, trailing bytes or a null id is malformed`() {
  for offset in 1...3 { #expect(decode(golden.with { $0[offset] = 1 }) == .malformed) }
  #expect(decode(golden + [0]) == .malformed)
  #expect(decode(golden.with { $0.replaceSubrange(4..<20, with: [UInt8](repeating: 0, count: 16)) }) == .malformed)
}
