import Testing
import Transfer

@Test func `joined parts follow each other in order`() {
  let bytes: [UInt8] = [1, 2, 3, 4]
  #expect(joined(bytes[1..<3], [], bytes[...]) == [2, 3, 1, 2, 3, 4])
  #expect(joined() == [])
}
