import Primitives
import Testing

/// Characters that look like ASCII letters and digits, and names that look like a node id.
struct LookAlikeTests {
  @Test func `letters of other scripts have the ASCII letter that they look like`() {
    for (text, expected) in [
      ("аеорсухѕіјԛԝһԁ", "aeopcyxsijqwhd"), ("внкмт", "bhkmt"), ("αοιρνϲϳ", "aolpvcj"), ("սօցհզ", "uoghq"),
      ("ҽք", "ef"),
      ("ᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ", "abcdeghljklmnoprtuvwyz"), ("ＡｚＺ０９", "azz09"), ("𝐀𝑧𝟎𝟿", "az09"), ("ⓐⒶ①⁹", "aa19"),
    ] {
      let found = text.unicodeScalars.map { asciiLookAlike($0.value).map { UnicodeScalar($0) } ?? "?" }
      #expect(String(String.UnicodeScalarView(found)) == expected, "\(text)")
    }
  }

  @Test func `other characters look like no ASCII character`() {
    for scalar in "aZ09 жфäßøあ日ख\u{1F600}".unicodeScalars { #expect(asciiLookAlike(scalar.value) == nil, "\(scalar)") }
    for value: UInt32 in [0, 0x7F, 0x80, 0x10FFFF] { #expect(asciiLookAlike(value) == nil) }
  }

  @Test(arguments: [
    ("deadbeef", true), ("DEADBEEF", true), ("01234567", true), ("d\u{435}adb\u{435}\u{435}f", true),
    ("ｄｅａｄｂｅｅｆ", true), ("𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕", true), ("dead\u{200B}beef", true), ("\u{2060}deadbeef\u{FE0F}", true),
    ("ⅾeadbeef", true), ("deadbeefdeadbeefdeadbeefdeadbeef", true), ("dеadbeefdeadbeefdeadbeefdeadbeef", true),
    ("foolable", false), ("deadbee", false), ("deadbeef0", false), ("dead beef", false), ("deadbéef", false),
    ("lab00042", false), ("", false), ("日本", false),
  ])
  func `a name that looks like eight or thirty-two hexadecimal digits resembles an id`(name: String, expected: Bool) {
    #expect(resembles(Array(name.utf8)) == expected)
  }

  @Test func `text that is not UTF-8 resembles no id`() {
    #expect(!resembles(Array("deadbee".utf8) + [0xFF]))
  }

  private func resembles(_ bytes: [UInt8]) -> Bool { resemblesNodeID(bytes.span.bytes) }
}
