import Primitives
import Text

/// The name of a member, as people and programs see it.
struct ShownName: Equatable {
  let name: [UInt8]
  /// The start of the node's id, if another member has the same name.
  let id: String?

  /// The name for JSON, for example: bob, or bob (11a7fce8)
  var text: [UInt8] { id.map { name + Array(" (\($0))".utf8) } ?? name }
}

extension TextBuilder {
  /// Adds a name without quotation marks around it, for example: <bob>. A name that could imitate the text around it is
  /// quoted: one with a blank or an ASCII delimiter.
  mutating func add(name: [UInt8]) {
    let isPlain = name.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80..., UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
        UInt8(ascii: "@"), UInt8(ascii: "'"):
        true
      default: false
      }
    }
    if !isPlain { add("“") }
    add(untrusted: name)
    if !isPlain { add("”") }
  }

  mutating func add(_ shown: ShownName) {
    add(name: shown.name)
    guard let id = shown.id else { return }
    add(" (")
    add(untrusted: id.utf8)
    add(")")
  }

  init(_ shown: ShownName, _ text: StaticString) {
    self.init()
    add(shown)
    add(text)
  }

  init(name: [UInt8], _ text: StaticString) {
    self.init()
    add(name: name)
    add(text)
  }
}
