import Terminal
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Types the keys into the editor. Returns the action that the last key caused.
@discardableResult private func type(_ keys: String, _ editor: inout LineEditor) -> LineEditor.Action {
  var action = LineEditor.Action.none
  for byte in keys.utf8 { action = editor.take(byte) }
  return action
}

private func typed(_ keys: String) -> String {
  var editor = LineEditor(byteCountMax: 1_000)
  type(keys, &editor)
  return String(decoding: editor.text, as: UTF8.self)
}

private let left = "\u{1B}[D", right = "\u{1B}[C", up = "\u{1B}[A", down = "\u{1B}[B"

@Suite struct LineEditorTests {
  @Test func `enter submits the line and starts the next one`() {
    var editor = LineEditor(byteCountMax: 1_000)
    #expect(type("hello\r", &editor) == .line(bytes("hello")))
    #expect(editor.text.isEmpty)
    #expect(type("\n", &editor) == .line([]))
  }

  @Test func `keys move the cursor and edit inside the line`() {
    #expect(typed("ac\(left)b") == "abc")
    #expect(typed("bc\u{1}a") == "abc")
    #expect(typed("ac\u{2}b\u{5}d") == "abcd")
    #expect(typed("abc\u{1B}[H\u{1B}[3~") == "bc")
    #expect(typed("abc\(left)\(left)\(right)\u{7F}") == "ac")
    #expect(typed("one two\u{17}") == "one ")
    #expect(typed("one two\u{15}three") == "three")
    #expect(typed("one two\u{1}\u{6}\u{B}") == "o")
    #expect(typed("abc\u{1}\u{4}") == "bc")
  }

  @Test func `a character is deleted and passed as a whole, with its combining marks`() {
    #expect(typed("aé\u{7F}") == "a")
    #expect(typed("ae\u{301}\u{7F}") == "a")
    #expect(typed("日本\(left)\u{7F}") == "本")
    #expect(typed("e\u{301}x\u{1}\u{4}") == "x")
  }

  @Test func `invalid UTF-8 bytes are ignored`() {
    var editor = LineEditor(byteCountMax: 1_000)
    for byte: UInt8 in [0xFF, 0xC0, 0x80, 0xE2, 0x82] { _ = editor.take(byte) }
    type("a", &editor)
    #expect(editor.text == bytes("a"))
    // The three bytes encode a surrogate, which is not valid in UTF-8.
    for byte: UInt8 in [0xED, 0xA0, 0x80] { _ = editor.take(byte) }
    #expect(editor.text == bytes("a"))
  }

  @Test func `a line has at most the bytes of a message, and no incomplete character`() {
    var editor = LineEditor(byteCountMax: 3)
    type("aé", &editor)
    #expect(type("b", &editor) == .refused)
    var other = LineEditor(byteCountMax: 2)
    type("aé", &other)
    #expect(other.text == bytes("a"))
  }

  @Test func `history lines are recalled, and the draft is kept after them`() {
    var editor = LineEditor(byteCountMax: 1_000)
    type("one\rtwo\rdraft", &editor)
    type(up, &editor)
    #expect(editor.text == bytes("two"))
    type(up + up, &editor)
    #expect(editor.text == bytes("one"))
    type(down + down, &editor)
    #expect(editor.text == bytes("draft"))
    #expect(type(down, &editor) == .refused)
  }

  @Test func `the number of history lines is limited`() {
    var editor = LineEditor(byteCountMax: 100_000)
    for number in 0..<100 { type("line \(number)\r", &editor) }
    for _ in 0..<200 { type(up, &editor) }
    #expect(editor.text == bytes("line 68"))
    type("\u{15}" + String(repeating: "x", count: 5_000) + "\r" + up, &editor)
    #expect(editor.text == bytes("line 99"))
  }

  @Test func `a line that could not be sent is restored`() {
    var editor = LineEditor(byteCountMax: 1_000)
    type("one\rtwo\r", &editor)
    editor.restore(bytes("two"))
    #expect(editor.text == bytes("two"))
    type(up, &editor)
    #expect(editor.text == bytes("one"))
  }

  @Test func `Ctrl-D ends the input only on an empty line`() {
    var editor = LineEditor(byteCountMax: 1_000)
    #expect(type("a\u{4}", &editor) == .refused)
    #expect(type("\u{15}\u{4}", &editor) == .end)
  }

  @Test func `an unknown or endless escape sequence types nothing`() {
    #expect(typed("a\u{1B}[200~b\u{1B}[5;3Zc") == "abc")
    #expect(typed("\u{1B}[" + String(repeating: "1", count: 16) + "x") == "x")
  }

  @Test func `the part of a long line around the cursor is shown`() {
    var editor = LineEditor(byteCountMax: 1_000)
    type("0123456789", &editor)
    #expect(editor.view(columns: 20).text == bytes("0123456789"))
    #expect(editor.view(columns: 20).cursor == 10)
    let end = editor.view(columns: 6)
    #expect(end.text == bytes("56789") && end.cursor == 5)
    type("\u{1}", &editor)
    let start = editor.view(columns: 6)
    #expect(start.text == bytes("01234") && start.cursor == 0)
  }

  @Test func `the view is never wider than its columns, wherever the cursor is`() {
    var editor = LineEditor(byteCountMax: 1_000)
    type("ab日本語cd\u{1F600}éf", &editor)
    for _ in 0..<12 {
      for columns in 2...16 {
        let view = editor.view(columns: columns)
        #expect(textWidth(view.text) < columns && view.cursor < columns, "\(columns)")
      }
      type(left, &editor)
    }
  }

  @Test func `character widths match those of a terminal`() {
    #expect(textWidth(bytes("abc")) == 3)
    #expect(textWidth(bytes("日本")) == 4)
    #expect(textWidth(bytes("e\u{301}")) == 1)
    #expect(textWidth(bytes("\u{1F600}")) == 2)
    #expect(prefixLength(bytes("日本"), columns: 3) == 3)
  }
}
