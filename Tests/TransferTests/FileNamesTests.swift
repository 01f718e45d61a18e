import Testing

@testable import Transfer

@Test(arguments: [
  "a", "foto.jpg", "…", ".hidden", "-", "a b", "日本語.txt", "...", "\\", String(repeating: "x", count: 255),
])
func `an ordinary file name is legal`(name: String) { #expect(FileNames.isLegal(bytes(name))) }

@Test(arguments: [
  "", ".", "..", "/", "a/b", "/etc/passwd", "a\0", "a\nb", "\u{7f}", "\u{9b}2J", "\u{202e}gpj.exe", "\u{2028}",
  String(repeating: "x", count: 256),
])
func `a name that may be a path or deceive is illegal`(name: String) { #expect(!FileNames.isLegal(bytes(name))) }

@Test(
  arguments: [
    [0x80], [0xc0, 0xaf], [0xc1, 0x81], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80],
    [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82], [0xff],
  ] as [[UInt8]])
func `a name is well-formed UTF-8`(name: [UInt8]) { #expect(!FileNames.isLegal(name)) }

@Test func `a name in use gets a number before its extension`() {
  for (name, number, expected) in [
    ("foto.jpg", 1, "foto.jpg"), ("foto.jpg", 2, "foto-2.jpg"), ("foto.jpg", 999, "foto-999.jpg"),
    ("notes", 2, "notes-2"),
    (".profile", 2, ".profile-2"), ("a.tar.gz", 3, "a.tar-3.gz"), ("x.", 2, "x-2."),
  ] { #expect(FileNames.numbered(bytes(name), number) == bytes(expected)) }
}

@Test func `a long name is truncated between characters and keeps its extension`() {
  let name = bytes(String(repeating: "ä", count: 125) + ".jpg")
  #expect(name.count == 254)
  let second = FileNames.numbered(name, 2)
  #expect(second.count <= 255 && FileNames.isLegal(second) && second.suffix(6) == bytes("-2.jpg")[...])
  let long = FileNames.numbered([UInt8](repeating: UInt8(ascii: "x"), count: 255), 999)
  #expect(long.count == 255 && long.suffix(4) == bytes("-999")[...])
}

@Test func `no offered name becomes a hidden file or a command-line option`() {
  for (name, expected) in [(".bashrc", "_bashrc"), ("-rf", "_rf"), ("a-b.c", "a-b.c")] {
    #expect(FileNames.visible(bytes(name)) == bytes(expected))
  }
}

@Test func `the name of a partial file is hashed if it is too long`() {
  let key = SHA256.digest([])
  let short = FileNames.partial(bytes("foto.jpg"), key)
  #expect(short == bytes(".foto.jpg.e3b0c44298fc1c149afbf4c8996fb924.causeway-part"))
  let long = FileNames.partial([UInt8](repeating: UInt8(ascii: "x"), count: 255), key)
  #expect(long == bytes(".e3b0c44298fc1c149afbf4c8996fb924.causeway-part"))
  #expect(FileNames.isPartial(short) && FileNames.isPartial(long))
  #expect(!FileNames.isPartial(bytes("foto.jpg")) && !FileNames.isPartial(bytes(".causeway-part")))
}

@Test func `an explanation has at most 200 bytes and no control characters`() {
  #expect(FileNames.explanation(bytes("no")) == bytes("no"))
  let long = FileNames.explanation(bytes(String(repeating: "ä", count: 150) + "x"))
  #expect(long.count == 200)
  #expect(FileNames.explanation(bytes("a\u{1b}[2J")) == [])
}
