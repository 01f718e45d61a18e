import Primitives

/// A bounded set of disjoint, ascending ranges of stream positions. Ranges that touch are merged.
struct RangeSet {
  typealias Ranges = FixedArray<32, ByteRange>
  private var ranges = Ranges(repeating: ByteRange(start: 0, end: 0))
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  subscript(index: Int) -> ByteRange {
    precondition(index < count)
    return ranges[index]
  }

  /// Adds `range` and returns the number of its bytes that are new. Returns nil and changes nothing if the set is full
  /// and `range` touches none of its ranges.
  mutating func insert(_ range: ByteRange) -> UInt64? {
    var first = 0
    while first < count, ranges[first].end < range.start { first += 1 }
    var last = first
    var merged = range
    var known: UInt64 = 0
    while last < count, ranges[last].start <= range.end {
      merged.start = min(merged.start, ranges[last].start)
      merged.end = max(merged.end, ranges[last].end)
      known += ranges[last].byteCount
      last += 1
    }
    if first == last {
      guard count < ChannelLimits.rangesMax else { return nil }
      var index = count
      while index > first {
        ranges[index] = ranges[index - 1]
        index -= 1
      }
      count += 1
    } else {
      close(gapFrom: first + 1, to: last)
    }
    ranges[first] = merged
    return merged.byteCount - known
  }

  /// Removes all positions below `position`.
  mutating func removeBelow(_ position: UInt64) {
    var gone = 0
    while gone < count, ranges[gone].end <= position { gone += 1 }
    close(gapFrom: 0, to: gone)
    if count > 0, ranges[0].start < position { ranges[0].start = position }
  }

  mutating func removeAll() { count = 0 }

  /// The number of positions of the set within `start ..< end`.
  func bytes(from start: UInt64, to end: UInt64) -> UInt64 {
    var sum: UInt64 = 0
    for index in 0..<count {
      let low = max(ranges[index].start, start)
      let high = min(ranges[index].end, end)
      if low < high { sum += high - low }
    }
    return sum
  }

  /// The first gap at or after `position`: the start of the gap, and its end if a range follows.
  func gap(from position: UInt64) -> (start: UInt64, end: UInt64?) {
    var start = position
    for index in 0..<count {
      if ranges[index].start > start { return (start, ranges[index].start) }
      start = max(start, ranges[index].end)
    }
    return (start, nil)
  }

  /// The index of the range that contains `position`; nil if none does.
  func index(holding position: UInt64) -> Int? {
    for index in 0..<count where ranges[index].start <= position && position < ranges[index].end { return index }
    return nil
  }

  private mutating func close(gapFrom first: Int, to last: Int) {
    let width = last - first
    guard width > 0 else { return }
    for index in last..<max(last, count) { ranges[index - width] = ranges[index] }
    count -= width
  }
}
