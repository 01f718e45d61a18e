import Primitives
import Testing

@Suite struct StableOrderTests {
  @Test func `equal elements keep their order`() {
    var random = SeededRandom(seed: 7)
    for count in 0...70 {
      let values = (0..<count).map { _ in random.below(8) }
      var order = [Int](values.indices)
      var span = order.mutableSpan
      putInOrder(&span) { values[$0] < values[$1] }
      #expect(order == values.indices.sorted { values[$0] != values[$1] ? values[$0] < values[$1] : $0 < $1 })
    }
  }
}
