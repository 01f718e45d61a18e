import Text
import Primitives

extension StaticString {
  public var bytes: [UInt8] { withUTF8Buffer { [UInt8]($0) } }
}

/// The bytes of a literal.
public func utf8(_ text: StaticString) -> [UInt8] { text.bytes }

extension TextBuilder {
  /// Creates a text from untrusted text, such as a name, and a statement about it.
  public init(_ word: [UInt8], _ text: StaticString) {
    self.init()
    add(untrusted: word)
    add(text)
  }

  /// Creates a text from untrusted text in quotation marks and a statement about it.
  public init(quoting word: [UInt8], _ text: StaticString) {
    self.init()
    add("“")
    add(untrusted: word)
    add("”")
    add(text)
  }

  public init(_ text: StaticString) {
    self.init()
    add(text)
  }
}

/// The text of the error for a name that matches several nodes.
public func severalText(_ word: [UInt8], _ nodes: [NodeID]) -> TextBuilder {
  var text = TextBuilder("several peers are called “")
  text.add(untrusted: word)
  for (index, node) in nodes.enumerated() {
    text.add(index == 0 ? "”: " : ", " as StaticString)
    text.add(node.text)
  }
  text.add("; give the first digits of an id")
  return text
}
