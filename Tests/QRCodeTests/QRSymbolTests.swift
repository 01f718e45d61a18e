import QRCode
import Testing

private let text = Array("WIFI:T:WPA;S:attic;P:correct horse;;".utf8)

@Test func `a symbol has its three finder patterns`() throws {
  let symbol = try #require(QRSymbol(text))
  let last = symbol.sideModules - 7
  for (left, top) in [(0, 0), (last, 0), (0, last)] {
    for offset in 0..<7 {
      #expect(symbol.isDark(column: left + offset, row: top) && symbol.isDark(column: left, row: top + offset))
    }
    #expect(!symbol.isDark(column: left + 1, row: top + 1) && symbol.isDark(column: left + 3, row: top + 3))
  }
}

@Test func `the longest invitation fits in eighty columns`() throws {
  // The longest invitation: every byte of the name and the passphrase needs an escape, and the fingerprint is present.
  let most = [UInt8](repeating: 0x5C, count: 13 + 64 + 3 + 126 + 4 + 32 + 2)
  let symbol = try #require(QRSymbol(most))
  #expect(symbol.columns <= 80)
}

@Test func `a text that is too long yields no symbol`() {
  #expect(QRSymbol([UInt8](repeating: 0x61, count: 321)) != nil)
  #expect(QRSymbol([UInt8](repeating: 0x61, count: 322)) == nil)
  #expect(QRSymbol([UInt8](repeating: 0x61, count: 4000)) == nil)
  #expect(QRSymbol([]) == nil)
}

@Test func `two rows of modules are a line of text`() throws {
  let symbol = try #require(QRSymbol(text))
  let lines = String(decoding: symbol.lines(isColoured: false), as: UTF8.self).split(separator: "\n")
  #expect(lines.count == (symbol.columns + 1) / 2)
  #expect(lines.allSatisfy { $0.count == symbol.columns })
  #expect(lines[0].allSatisfy { $0 == "█" } && lines[1].allSatisfy { $0 == "█" })
  // This line shows the first two rows of the upper finder patterns, one at each side.
  #expect(lines[2].hasPrefix("████ ▄▄▄▄▄ █") && lines[2].hasSuffix("█ ▄▄▄▄▄ ████"))
  // The number of rows is odd. So only the upper half of the last line belongs to the symbol's margin.
  #expect(lines[lines.count - 1].allSatisfy { $0 == "▀" })
}

@Test func `coloured lines are white on black and reset the colours`() throws {
  let symbol = try #require(QRSymbol(text))
  let plain = String(decoding: symbol.lines(isColoured: false), as: UTF8.self).split(separator: "\n")
  let coloured = String(decoding: symbol.lines(isColoured: true), as: UTF8.self).split(separator: "\n")
  #expect(coloured == plain.map { "\u{1B}[40;37;1m\($0)\u{1B}[0m" })
}
