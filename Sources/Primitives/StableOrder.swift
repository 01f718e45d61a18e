/// Sorts indices by the elements to which they refer. `precede` returns whether the element at the first index precedes
/// the element at the second index. Among equal elements the lower index comes first. The algorithm is heapsort
/// (Williams, 1964): O(n log n) comparisons and no memory.
///
/// This single function serves all element types. The compiler specialises the standard library's `sorted` for each
/// element type, which adds 4 to 5 kB of code each time.
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
