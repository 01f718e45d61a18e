import Session
import Testing

@Test func `bytes are appended after the existing ones`() {
  var bytes: [UInt8] = []
  var expected: [UInt8] = []
  for count in [0, 1, 3, 5_000, 0, 40_000, 7] {
    let more = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ count) }
    bytes.append(copying: more)
    expected += more
    #expect(bytes == expected)
  }
}

@Test func `appending does not change an array with which the bytes are shared`() {
  let held: [UInt8] = [1, 2, 3]
  var bytes = held
  bytes.append(copying: [4])
  #expect(held == [1, 2, 3])
  #expect(bytes == [1, 2, 3, 4])
}

@Test func `a span is copied from its first byte to its last`() {
  let bytes: [UInt8] = [1, 2, 3, 4, 5]
  #expect(bytes.span.bytes.extracting(1..<4).copied == [2, 3, 4])
}
