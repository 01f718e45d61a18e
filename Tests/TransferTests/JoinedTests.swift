import Testing
import Transfer

@Test func `parts are behind each other`() {
  let bytes: [UInt8] = [1, 2, 3, 4]
  #expect(joined(bytes[1..<3], [], bytes[...]) == [2, 3, 1, 2, 3, 4])
  #expect(joined() == [])
}
