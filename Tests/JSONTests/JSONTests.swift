import JSON
import Testing

private func parsed(_ text: String) throws -> JSONView { try #require(JSONView(parsing: Array(text.utf8))) }

@Suite struct ObjectTests {
  @Test func `a written object is read back`() throws {
    let root = JSONObject()
    root.set("name", "bob")
    root.set("count", 7)
    root.set("up", true)
    let words = JSONArray()
    for word in ["a", "b"] { words.append(word) }
    root.set("words", words)
    root.set("links", JSONArray([1, 2] as [UInt64]) { number, object in object.set("slot", number) })
    let view = try #require(JSONView(parsing: root.text()))
    defer { view.release() }
    #expect(view["name"].string == "bob" && view["count"].number == 7 && view["up"].isTrue)
    var texts: [String] = [], numbers: [UInt64] = [], names: [String] = []
    view["words"].forEach { texts.append($0.string) }
    view["links"].forEach { numbers.append($0["slot"].number) }
    view.forEachMember { name, _ in names.append(name) }
    #expect(texts == ["a", "b"] && numbers == [1, 2] && names == ["name", "count", "up", "words", "links"])
  }

  @Test func `a text contains only printable ASCII and line feeds`() {
    let root = JSONObject()
    root.set("name", "b\u{202E}\u{9B}\u{7F}\u{1B}ö")
    #expect(root.text() == Array("{\n  \"name\": \"b\\u202E\\u009B\\u007f\\u001B\\u00F6\"\n}\n".utf8))
  }

  @Test func `a member may also be part of another object`() throws {
    let view = try parsed(#"{"a": {"b": 1}, "c": 2}"#)
    let part = JSONObject("a", view["a"]).text()
    #expect(part == Array("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n".utf8))
    #expect(view["a"]["b"].number == 1)
    view.release()
  }
}

@Suite struct ViewTests {
  @Test(arguments: ["", "[]", "{", "hello", "1", #"{"a": 1}}"#])
  func `a text that is not an object is refused`(_ text: String) {
    #expect(JSONView(parsing: Array(text.utf8)) == nil)
  }

  @Test func `an absent member reads as empty, zero and false`() throws {
    let view = try parsed("{}")
    defer { view.release() }
    let absent = view["a"]["b"]
    #expect(!absent.exists && absent.string.isEmpty && absent.number == 0 && !absent.isTrue && absent.text == nil)
    absent.forEach { _ in Issue.record("an element") }
    absent.forEachMember { _, _ in Issue.record("a member") }
  }

  @Test func `a negative number reads as zero`() throws {
    let view = try parsed(#"{"a": -1}"#)
    defer { view.release() }
    #expect(view["a"].exists && view["a"].number == 0)
  }

  @Test func `the content of a string can be replaced`() throws {
    let view = try parsed(#"{"a": "secret", "b": 1}"#)
    defer { view.release() }
    view["a"].set(Array("***".utf8))
    #expect(view["a"].text == Array("***".utf8) && view["b"].text == nil)
    #expect(view.jsonText() == Array("{\n  \"a\": \"***\",\n  \"b\": 1\n}\n".utf8))
  }
}
