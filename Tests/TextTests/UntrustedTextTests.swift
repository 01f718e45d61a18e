import Primitives
import Testing
import Text

private func message(_ text: String) -> String {
  var builder = TextBuilder()
  builder.add(message: text.utf8)
  return String(decoding: builder.bytes, as: UTF8.self)
}

private func verbatim(_ text: String) -> String {
  var builder = TextBuilder()
  builder.add(verbatim: text.utf8)
  return String(decoding: builder.bytes, as: UTF8.self)
}

private func untrusted(_ bytes: [UInt8]) -> String {
  var text = TextBuilder()
  text.add(untrusted: bytes)
  return String(decoding: text.bytes, as: UTF8.self)
}

@Suite struct UntrustedTextTests {
  @Test func `control characters, direction marks and invisible characters are removed from untrusted text`() {
    for scalar in [
      0x00, 0x0A, 0x0D, 0x1B, 0x7F, 0x85, 0x9B, 0xAD, 0x61C, 0x200B, 0x200E, 0x2028, 0x202E, 0x2066, 0xFEFF,
    ]
      as [UInt32]
    {
      let character = String(UnicodeScalar(scalar)!)
      #expect(untrusted(Array("a\(character)b".utf8)) == "a?b", "\(scalar)")
    }
    #expect(untrusted(Array("\u{1B}]0;title\u{7}\u{1B}[2J".utf8)) == "?]0;title??[2J")
    #expect(untrusted(Array("na\u{EF}ve Ж 日本 ❤\u{FE0F} 👩\u{200D}🚀".utf8)) == "na\u{EF}ve Ж 日本 ❤\u{FE0F} 👩\u{200D}🚀")
  }

  @Test func `bytes that are not UTF-8 cannot control an 8-bit terminal`() {
    // The byte 0x9B alone starts a control sequence (CSI) on a terminal that uses ISO 8859-1.
    #expect(untrusted([0x9B, 0x33, 0x31, 0x6D]) == "?31m")
    #expect(untrusted([0x61, 0xC3]) == "a?")
    #expect(untrusted([0x61, 0xC2, 0x9B, 0xC3, 0xA9]) == "a?é")
    #expect(untrusted([0xED, 0xA0, 0x80, 0x62]).hasSuffix("b"))
  }

  @Test func `untrusted text cannot end the quotation that contains it`() {
    #expect(shown("x”: 1 file. Accept? [y/N] y “z") == "x': 1 file. Accept? [y/N] y 'z")
    for mark in ["\"", "“", "”", "„", "‟", "″", "‶", "ʺ", "❝", "❞", "〝", "〞", "〟", "＂"] {
      #expect(shown("a\(mark)b") == "a'b", "\(mark)")
    }
    #expect(shown("it's «good» ‘too’") == "it's «good» ‘too’")
  }

  @Test func `consecutive spaces of any kind become one`() {
    for blank in ["\u{20}", "\u{A0}", "\u{1680}", "\u{2003}", "\u{202F}", "\u{205F}", "\u{2800}", "\u{3000}"] {
      #expect(shown("a" + String(repeating: blank, count: 80) + "b") == "a b", "\(blank.unicodeScalars)")
    }
    #expect(shown("a \u{3000}\u{2800}\u{A0} b c") == "a b c")
  }

  @Test func `up to three consecutive combining marks are kept`() {
    let mark = "\u{301}"
    #expect(shown("a" + String(repeating: mark, count: 3) + "b") == "a\u{301}\u{301}\u{301}b")
    #expect(shown("a" + String(repeating: mark, count: 80) + "b") == "a\u{301}\u{301}\u{301}?b")
    for other in [0x489, 0x670, 0x94D, 0xE4D, 0xF74, 0x1AB0, 0x20DD, 0xA8E0, 0xFE20, 0x1E8D0] as [UInt32] {
      let mark = String(UnicodeScalar(other)!)
      #expect(shown("a" + String(repeating: mark, count: 9)).unicodeScalars.count == 5, "\(other)")
    }
  }

  @Test func `names in all scripts are shown unchanged`() {
    for name in ["Zoë", "Đặng Thị Hồng", "कृष्ण", "สมชายที่นี่", "שָׁלוֹם", "محمّد", "தமிழ்", "නිමල්", "김철수", "田中", "e\u{323}\u{302}"]
    {
      #expect(shown(name) == name)
      #expect(shown(name).utf8.elementsEqual(name.utf8))
    }
  }

  @Test func `a message keeps its quotation marks, but not consecutive spaces`() {
    #expect(message("“bob” is here") == "“bob” is here")
    #expect(
      message("he said \"hi\"" + String(repeating: "\u{3000}", count: 60) + "<bob> yes") == "he said \"hi\" <bob> yes")
    #expect(message("a\u{1B}[2Jb\u{202E}") == "a?[2Jb?")
  }

  @Test func `typed text keeps its spaces and cannot control the terminal`() {
    #expect(verbatim("a   “b”") == "a   “b”")
    #expect(verbatim("a\u{1B}[2J") == "a?[2J")
  }

  @Test func `a name in a table cannot add columns or lines`() {
    var table = TextTable(["PEER", "DETAIL"])
    table.add(["“bob”\u{3000}\u{3000}yes" + String(repeating: "\u{301}", count: 40), "mesh “hall”"])
    var text = TextBuilder()
    table.write(to: &text)
    let mark = "\u{301}"
    #expect(
      String(decoding: text.bytes, as: UTF8.self).split(separator: "\n").last?.utf8.elementsEqual(
        "'bob' yes\(mark)\(mark)\(mark)?  mesh “hall”".utf8) == true)
  }
}
