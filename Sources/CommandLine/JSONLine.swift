import Primitives
import Session
import Text

/// One JSON object on a line (RFC 8259), for programs that read a command's output. Untrusted text is not altered:
/// invisible characters are escaped. Only invalid UTF-8 is replaced, by U+FFFD.
public struct JSONLine {
  private var text = TextBuilder()
  private var isFirst = true

  public init(event: StaticString) {
    text.add("{")
    add("event", event)
  }

  private mutating func begin(_ key: StaticString) {
    text.add(isFirst ? "\"\(key)\":" : ",\"\(key)\":")
    isFirst = false
  }

  public mutating func add(_ key: StaticString, _ value: StaticString) {
    begin(key)
    text.add("\"\(value)\"")
  }

  public mutating func add(_ key: StaticString, _ value: [UInt8]) {
    begin(key)
    quote(value)
  }

  public mutating func add(_ key: StaticString, _ value: UInt64) {
    begin(key)
    text.add(value)
  }

  /// Adds the member, or nothing if `value` is nil.
  public mutating func add(_ key: StaticString, optional value: UInt64?) {
    if let value { add(key, value) }
  }

  public mutating func add(_ key: StaticString, _ value: Bool) {
    begin(key)
    text.add(value ? "true" : "false")
  }

  public mutating func add(_ key: StaticString, _ values: [[UInt8]]) {
    begin(key)
    text.add("[")
    for (index, value) in values.enumerated() {
      if index > 0 { text.add(",") }
      quote(value)
    }
    text.add("]")
  }

  /// Adds an address: “id” with 32 digits and “endpoint” with 8, in hexadecimal.
  public mutating func add(_ address: MemberAddress) {
    begin("id")
    text.add("\"\(address.node.text)\"")
    begin("endpoint")
    text.add("\"")
    text.add(hex: UInt64(address.endpoint), digits: 8)
    text.add("\"")
  }

  /// Prints the line on standard output.
  public func put() { Output.put(line) }

  /// Prints the line on the standard output of a console.
  public func put(on console: any Console) { console.put(line) }

  private var line: TextBuilder {
    var line = text
    line.add("}\n")
    return line
  }

  private mutating func quote(_ value: [UInt8]) {
    text.add("\"")
    var decoder = UTF8()
    var iterator = value.makeIterator()
    var isOver = false
    while !isOver {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): add(scalar)
      case .error: text.add("\u{FFFD}")
      case .emptyInput: isOver = true
      }
    }
    text.add("\"")
  }

  private mutating func add(_ scalar: Unicode.Scalar) {
    switch scalar.value {
    case 0x22: text.add("\\\"")
    case 0x5C: text.add("\\\\")
    // Escape invisible characters, so that they become visible and cannot control a terminal.
    case let value where isInvisible(value):
      for unit in UTF16.encode(scalar)! {
        text.add("\\u")
        text.add(hex: UInt64(unit), digits: 4)
      }
    default: for byte in UTF8.encode(scalar)! { text.add(byte: byte) }
    }
  }
}
