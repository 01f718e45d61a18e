import Primitives

extension Array {
  /// The sorted elements. Equal elements keep their relative order.
  func inOrder(_ precede: (_ one: Element, _ other: Element) -> Bool) -> [Element] {
    var order = [Int](indices)
    var span = order.mutableSpan
    putInOrder(&span) { precede(self[$0], self[$1]) }
    return order.map { self[$0] }
  }
}
