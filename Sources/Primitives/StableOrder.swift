/// Brings indices into order, as the elements that they stand for `precede` each other; of equal ones the lower index comes
/// first. Heapsort (Williams, 1964): n log n comparisons at most, and no memory.
///
/// The library's `sorted` is specialised for each type of element, 4 to 5 kB each time. This is one function for all.
public func putInOrder(_ indices: inout MutableSpan<Int>, _ precede: (_ one: Int, _ other: Int) -> Bool) {
  func sift(_ indices: inout MutableSpan<Int>, _ start: Int, _ end: Int) {
    var parent = start
    while 2 * parent + 1 < end {
      var child = 2 * parent + 1
      if child + 1 < end, comesFirst(indices[child], indices[child + 1]) { child += 1 }
      if !comesFirst(indices[parent], indices[child]) { return }
      indices.swapAt(parent, child)
      parent = child
    }
  }
  func comesFirst(_ one: Int, _ other: Int) -> Bool { precede(one, other) || one < other && !precede(other, one) }
  let count = indices.count
  for start in (0..<count / 2).reversed() { sift(&indices, start, count) }
  for end in (0..<count).reversed() {
    indices.swapAt(0, end)
    sift(&indices, 0, end)
  }
}
