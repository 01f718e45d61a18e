import Primitives
import Testing

@testable import Node

private func id(_ number: Int) -> NodeID { NodeID(high: UInt64(number), low: 7) }

@Test func `the bytes of each source are counted`() {
  var sources = TopSources()
  for (number, bytes) in [(1, 100), (2, 50), (1, 20)] { sources.count(bytes, of: id(number)) }
  #expect(sources.all.map { $0.node } == [id(1), id(2)] && sources.all.map { $0.bytes } == [120, 50])
}

@Test func `a source beyond the limit replaces the one that sent least`() {
  var sources = TopSources()
  for number in 1...TopSources.entriesMax { sources.count(100 - number, of: id(number)) }
  sources.count(10, of: id(99))
  #expect(sources.all.count == TopSources.entriesMax && !sources.all.contains { $0.node == id(TopSources.entriesMax) })
  #expect(sources.all.first { $0.node == id(99) }?.bytes == 10, "the weight that it took over is not its own")
}

@Test func `invented sources do not hide a source that sends much`() {
  var sources = TopSources()
  for number in 1...10_000 {
    sources.count(1000, of: id(1_000_000 + number))
    if number % 8 == 0 { sources.count(1000, of: id(1)) }
  }
  let much = sources.all.first { $0.node == id(1) }
  #expect(much?.bytes == 1_250_000)
}
