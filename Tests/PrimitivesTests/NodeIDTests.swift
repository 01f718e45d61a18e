import Primitives
import Testing

@Test func `a node id yields its bytes in wire order`() {
  let id = NodeID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f)
  #expect((0..<16).map { id.byte($0) } == (0..<16).map { UInt8($0) })
}

@Test func `node ids are ordered like their bytes`() {
  let ids = [
    NodeID(high: 1, low: 9), NodeID(high: 2, low: 0), NodeID(high: 2, low: 1), NodeID(high: 1 << 63, low: 0),
  ]
  #expect(ids.shuffled().sorted() == ids)
  #expect(!(ids[0] < ids[0]))
}

@Test func `slower bearers have higher costs`() {
  let bearers: [BearerKind] = [.loopback, .ethernet, .wifi, .wifiDirect, .bluetoothLE]
  #expect(bearers.sorted { $0.cost < $1.cost } == bearers)
  #expect(Set(bearers.map(\.cost)).count == bearers.count)
}
