import Testing

@testable import Operator

@Test func `an archive has the layout that POSIX specifies`() {
  var archive = Archive(folder: "b", seconds: 0o14000000000)
  let isAdded = archive.add("a.txt", Array("hello\n".utf8))
  let bytes = archive.bytes
  #expect(isAdded && bytes.count == 4 * 512)
  func field(_ range: Range<Int>) -> String { String(decoding: bytes[range].prefix { $0 != 0 }, as: UTF8.self) }
  #expect(field(0..<100) == "b/a.txt")
  #expect(field(100..<108) == "0000600" && field(108..<116) == "0000000" && field(116..<124) == "0000000")
  #expect(field(124..<136) == "00000000006" && field(136..<148) == "14000000000")
  #expect(Array(bytes[156..<265]) == Array("0".utf8) + [UInt8](repeating: 0, count: 100) + Array("ustar\u{0}00".utf8))
  #expect(field(265..<297) == "root" && field(297..<329) == "root")
  // The header's checksum is computed as if the eight bytes of the checksum field were spaces.
  let sum = (bytes[..<148] + bytes[156..<512]).reduce(8 * 0x20) { $0 + Int($1) }
  #expect(field(148..<156) == "0" + String(sum, radix: 8).leftPadded(5))
  #expect(bytes[154] == 0 && bytes[155] == 0x20)
  #expect(Array(bytes[512..<518]) == Array("hello\n".utf8) && bytes[518...].allSatisfy { $0 == 0 })
}

@Test func `a file that does not fit is not added`() {
  var archive = Archive(folder: "b", seconds: 0)
  let sizes = [Archive.bytesMax, Archive.bytesMax - 3 * 512, 0]
  let areAdded = sizes.map { archive.add("a", [UInt8](repeating: 1, count: $0)) }
  #expect(areAdded == [false, true, false])
  #expect(archive.bytes.count == Archive.bytesMax)
}

@Test func `a name that is too long is not added`() {
  var archive = Archive(folder: "b", seconds: 0)
  let areAdded = [99, 98].map { archive.add(String(repeating: "n", count: $0), []) }
  #expect(areAdded == [false, true])
}

extension String {
  fileprivate func leftPadded(_ count: Int) -> String {
    String(repeating: "0", count: max(count - utf8.count, 0)) + self
  }
}
