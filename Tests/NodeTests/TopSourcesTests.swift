import Primitives
import Testing

@testable import Node

private func id(_ number: Int) -> NodeID { NodeID(high: UInt64(number), low: 7) }

@Test func `each source has its bytes`() {
  var talkers = TopSources()
  for (number, bytes) in [(1, 100), (2, 50), (1, 20)] { talkers.count(bytes, of: id(number)) }
  #expect(talkers.all.map { $0.node } == [id(1), id(2)] && talkers.all.map { $0.bytes } == [120, 50])
}

@Test func `a source beyond the table replaces the one that sent least`() {
  var talkers = TopSources()
  for number in 1...TopSources.entriesMax { talkers.count(100 - number, of: id(number)) }
  talkers.count(10, of: id(99))
  #expect(talkers.all.count == TopSources.entriesMax && !talkers.all.contains { $0.node == id(TopSources.entriesMax) })
  #expect(talkers.all.first { $0.node == id(99) }?.bytes == 10, "the weight that it took over is not its own")
}

@Test func `invented sources do not hide who sends much`() {
  var talkers = TopSources()
  for number in 1...10_000 {
    talkers.count(1000, of: id(1_000_000 + number))
    if number % 8 == 0 { talkers.count(1000, of: id(1)) }
  }
  let much = talkers.all.first { $0.node == id(1) }
  #expect(much?.bytes == 1_250_000)
}
