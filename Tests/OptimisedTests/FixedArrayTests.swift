// This target is built with -O in every configuration, because the tests are about code that the optimiser produces.
// With a bare `InlineArray` instead of `FixedArray`, these tests pass in a debug build and fail in this build.
import Primitives
import Testing

private struct Stretch {
  var start: UInt64
  var end: UInt64
}

/// Ascending ranges of positions. The ranges below a given position can be removed.
private struct Stretches {
  private var stretches = FixedArray<32, Stretch>(repeating: Stretch(start: 0, end: 0))
  private(set) var count = 0

  subscript(index: Int) -> Stretch {
    precondition(index < count)
    return stretches[index]
  }

  mutating func append(_ stretch: Stretch) {
    stretches[count] = stretch
    count += 1
  }

  mutating func removeBelow(_ position: UInt64) {
    var gone = 0
    while gone < count, stretches[gone].end <= position { gone += 1 }
    removeFirst(gone)
    if count > 0, stretches[0].start < position { stretches[0].start = position }
  }

  private mutating func removeFirst(_ gone: Int) {
    guard gone > 0 else { return }
    for index in gone..<max(gone, count) { stretches[index - gone] = stretches[index] }
    count -= gone
  }
}

/// Reads the first range, makes a call that moves the ranges, and reads the first range again.
private final class Receiver {
  private(set) var position: UInt64 = 0
  private var stretches = Stretches()

  func append(_ start: UInt64, _ end: UInt64) { stretches.append(Stretch(start: start, end: end)) }

  func advance(to high: UInt64) {
    position = high
    while stretches.count > 0, stretches[0].start <= position {
      position = max(position, stretches[0].end)
      stretches.removeBelow(position)
    }
  }
}

@Test func `an element that a call has moved is read again`() {
  let receiver = Receiver()
  for start in [10, 20, 30] as [UInt64] { receiver.append(start, start + 5) }
  receiver.advance(to: 10)
  #expect(receiver.position == 15)
  receiver.advance(to: 19)
  #expect(receiver.position == 19)
  receiver.advance(to: 22)
  #expect(receiver.position == 25)
}
