import Frame
import Primitives
import TestSupport
import Testing

private let point = [4] + (0..<64).map { UInt8($0) }
private let signature = (0..<64).map { UInt8(0x80 + $0) }
/// In order: the kind, a reserved byte, the lifetime of 180 s, the epoch, and the sequence number.
private let topologyHead = hex("01 00 00b4 0000000700000009 0000000000000002")
private let topologyBytes = hex(
  """
  01 02 0000
  000102030405060708090a0b0c0d0e0f 000a 4100 01 00 0000
  101112131415161718191a1b1c1d1e1f 1f40 1000 04 00 0000
  """)
private let topology = topologyHead + point + topologyBytes + signature
private let profileHead = hex("02 00 0e10 0000000000000001 0000000000000001")
private let profileBytes = hex("03 626f62 04 63686174 02 06 6c616e673d65 02 613d")
private let profile = profileHead + point + profileBytes + signature

private let neighbours = [
  Neighbour(
    node: NodeID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f), cost: 10, payloadBytesMax: 16_640,
    bearer: .ethernet),
  Neighbour(
    node: NodeID(high: 0x1011_1213_1415_1617, low: 0x1819_1a1b_1c1d_1e1f), cost: 8000, payloadBytesMax: 4096,
    bearer: .bluetoothLE),
]

private func decode(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try AdvertisementView(bytes.span.bytes) }
}
private func decodeTopology(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try TopologyView(bytes.span.bytes) }
}
private func decodeProfile(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try ProfileView(bytes.span.bytes) }
}

// MARK: The whole advertisement

@Test func `an advertisement is encoded byte for byte as the protocol specifies`() {
  let written = encoded { output in
    Advertisement.writeHead(
      .topology, lifetimeSeconds: 180, epoch: 7 << 32 | 9, sequence: 2, point: point.span.bytes, to: &output)
  }
  #expect(written == topologyHead + point)
}

@Test func `an advertisement is decoded field by field`() throws {
  let view = try AdvertisementView(topology.span.bytes)
  #expect(view.kind == .topology)
  #expect(view.lifetimeSeconds == 180)
  #expect(view.epoch == 0x7_0000_0009)
  #expect(view.sequence == 2)
  let parts = (view.point.array, view.body.array, view.signature.array, view.signed.array)
  #expect(parts.0 == point && parts.1 == topologyBytes && parts.2 == signature)
  #expect(parts.3 == topologyHead + point + topologyBytes)
}

/// A truncated advertisement has bytes of its body where the signature should be. The decoder refuses a truncated
/// advertisement at a later field, or as truncated.
@Test(arguments: 0..<topology.count) func `a truncated topology advertisement is refused`(byteCount: Int) {
  let reason = decode([UInt8](topology.prefix(byteCount)))
  #expect(reason == (byteCount < 20 + 65 + 64 ? .truncated : reason))
  #expect(reason != nil)
}

@Test(arguments: 0..<profile.count) func `a truncated profile advertisement is refused`(byteCount: Int) {
  #expect(decode([UInt8](profile.prefix(byteCount))) != nil)
}

@Test func `an advertisement longer than the limit is refused`() {
  #expect(decode([UInt8](repeating: 1, count: 2049)) == .overLength)
  #expect(decode([UInt8](repeating: 1, count: 2048)) != .overLength)
}

@Test func `an unknown kind is malformed`() {
  #expect(decode(topology.with { $0[0] = 0 }) == .malformed)
  #expect(decode(topology.with { $0[0] = 4 }) == .malformed)
}

@Test func `the reserved byte of the head must be zero`() {
  #expect(decode(topology.with { $0[1] = 1 }) == .malformed)
}

@Test func `a key that is not an uncompressed point is malformed`() {
  #expect(decode(topology.with { $0[20] = 2 }) == .malformed)
}

@Test func `a lifetime is between one second and one hour`() {
  #expect(decode(topology.with { $0.replaceSubrange(2...3, with: [0, 0]) }) == .malformed)
  #expect(decode(topology.with { $0.replaceSubrange(2...3, with: [0, 1]) }) == nil)
  #expect(decode(topology.with { $0.replaceSubrange(2...3, with: [0x0e, 0x10]) }) == nil)
  #expect(decode(topology.with { $0.replaceSubrange(2...3, with: [0x0e, 0x11]) }) == .malformed)
}

@Test func `a body of another advertisement kind is refused`() {
  #expect(decode(topology.with { $0[0] = 2 }) != nil)
  #expect(decode(profile.with { $0[0] = 1 }) != nil)
}

// MARK: Topology

@Test func `a topology is encoded byte for byte as the protocol specifies`() {
  #expect(topologyBody(neighbours) == topologyBytes)
}

@Test func `a neighbour over Bluetooth classic is encoded as one over Bluetooth`() {
  var classic = neighbours[1]
  classic.bearer = .bluetoothClassic
  #expect(topologyBody([neighbours[0], classic]) == topologyBytes)
}

@Test func `a topology is decoded neighbour by neighbour`() throws {
  let view = try TopologyView(topologyBytes.span.bytes)
  #expect(view.flags == TopologyFlags(relays: true, encryption: .required))
  #expect(view.count == 2)
  let entries = [try view.entry(0), try view.entry(1)]
  #expect(entries == neighbours)
}

@Test func `a topology without neighbours is valid`() throws {
  #expect(decodeTopology(hex("00 00 0000")) == nil)
}

@Test(arguments: 0..<topologyBytes.count) func `a truncated topology is refused`(byteCount: Int) {
  #expect(decodeTopology([UInt8](topologyBytes.prefix(byteCount))) == .truncated)
}

@Test func `bytes after the last neighbour are malformed`() {
  #expect(decodeTopology(topologyBytes + [0]) == .malformed)
}

@Test func `more neighbours than the limit are refused`() {
  #expect(decodeTopology(topologyBody([Neighbour](repeating: neighbours[0], count: 64))) == nil)
  #expect(decodeTopology(topologyBody([Neighbour](repeating: neighbours[0], count: 65))) == .overLength)
}

@Test func `reserved bytes of a topology must be zero`() {
  for offset in [2, 3, 4 + 21, 4 + 22, 4 + 23, 28 + 23] {
    #expect(decodeTopology(topologyBytes.with { $0[offset] = 1 }) == .malformed, "byte \(offset)")
  }
}

@Test func `a neighbour with an impossible field is malformed`() {
  // The cases in order: cost 0, a frame length below the length of an advertisement, unknown bearers, the null node id.
  #expect(decodeTopology(topologyBytes.with { $0.replaceSubrange(20...21, with: [0, 0]) }) == .malformed)
  #expect(decodeTopology(topologyBytes.with { $0.replaceSubrange(22...23, with: [0x07, 0xff]) }) == .malformed)
  for bearer in [0, 6, 7, 9] as [UInt8] {
    #expect(decodeTopology(topologyBytes.with { $0[24] = bearer }) == .malformed, "\(bearer)")
  }
  #expect(
    decodeTopology(topologyBytes.with { $0.replaceSubrange(4..<20, with: [UInt8](repeating: 0, count: 16)) })
      == .malformed)
}

// MARK: Profile

@Test func `a profile is decoded field by field`() throws {
  let view = try ProfileView(profileBytes.span.bytes)
  let service = view.serviceType.array
  var pairs: [[UInt8]] = []
  view.info.forEach { pairs.append($0.array) }
  #expect(view.name == DisplayName("bob"))
  #expect(service == [UInt8]("chat".utf8))
  #expect(pairs == [[UInt8]("lang=e".utf8), [UInt8]("a=".utf8)])
  #expect(view.info.count == 2)
}

@Test(arguments: 0..<profileBytes.count) func `a truncated profile is refused`(byteCount: Int) {
  #expect(decodeProfile([UInt8](profileBytes.prefix(byteCount))) == .truncated)
}

@Test func `bytes after the last pair are malformed`() {
  #expect(decodeProfile(profileBytes + [0]) == .malformed)
}

@Test func `a profile with an invalid text is malformed`() {
  #expect(decodeProfile(profileBody(name: [])) == .malformed)
  #expect(decodeProfile(profileBody(name: [0xff])) == .malformed)
  #expect(decodeProfile(profileBody(service: [UInt8]("Chat".utf8))) == .malformed)
  #expect(decodeProfile(profileBody(service: [])) == .malformed)
  #expect(decodeProfile(profileBody(pairs: [[UInt8]("novalue".utf8)])) == .malformed)
  #expect(decodeProfile(profileBody(pairs: [[]])) == .malformed)
}

@Test func `a profile with a text that is too long is refused`() {
  #expect(decodeProfile(profileBody(name: [UInt8](repeating: 0x61, count: 64))) == .overLength)
  #expect(decodeProfile(profileBody(service: [UInt8](repeating: 0x61, count: 16))) == .overLength)
}

@Test func `the total length of discovery info is limited`() {
  let pair = [UInt8]("k=".utf8) + [UInt8](repeating: 0x76, count: 253)
  let rest = [UInt8]("k=".utf8) + [UInt8](repeating: 0x76, count: 1300 - 5 * 256 - 1 - 2)
  #expect(decodeProfile(profileBody(pairs: [pair, pair, pair, pair, pair, rest])) == nil)
  #expect(decodeProfile(profileBody(pairs: [pair, pair, pair, pair, pair, rest + [0x76]])) == .overLength)
}
