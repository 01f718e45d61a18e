import Session
import Testing

@Test func bytesAreAppendedBehindThoseThatAreHere() {
  var bytes: [UInt8] = []
  var expected: [UInt8] = []
  for count in [0, 1, 3, 5_000, 0, 40_000, 7] {
    let more = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ count) }
    bytes.append(copying: more)
    expected += more
    #expect(bytes == expected)
  }
}

@Test func bytesThatSomebodyElseHoldsStayAsTheyWere() {
  let held: [UInt8] = [1, 2, 3]
  var bytes = held
  bytes.append(copying: [4])
  #expect(held == [1, 2, 3])
  #expect(bytes == [1, 2, 3, 4])
}

@Test func aSpanIsCopiedFromItsFirstByteToItsLast() {
  let bytes: [UInt8] = [1, 2, 3, 4, 5]
  #expect(bytes.span.bytes.extracting(1..<4).copied == [2, 3, 4])
}
