import Terminal
import Testing

private func keys(_ bytes: String) -> [KeyReader.Key] {
  var reader = KeyReader()
  return bytes.utf8.compactMap { reader.take($0) }
}

@Test func `terminal escape sequences are recognised as keys`() {
  #expect(
    keys("\u{1B}[A\u{1B}OB\u{1B}[5~\u{1B}[6~\u{1B}[H\u{1B}[4~q") == [
      .special(.up), .special(.down), .special(.pageUp), .special(.pageDown), .special(.home), .special(.end),
      .character(UInt8(ascii: "q")),
    ])
}

@Test func `an unknown sequence is ignored, and the next one is recognised`() {
  #expect(keys("\u{1B}[1;5Zq") == [.character(UInt8(ascii: "q"))])
  #expect(keys("\u{1B}[" + String(repeating: "1", count: 16) + "q") == [.character(UInt8(ascii: "q"))])
}

@Test func `an escape alone does not hide the next key`() {
  #expect(keys("\u{1B}q") == [.character(UInt8(ascii: "q"))])
  #expect(keys("\u{1B}\u{1B}[B") == [.special(.down)])
}
