/// A node: one box, by the first 16 bytes of the SHA-256 of its public key (docs/protocol.md). Nobody else can have it.
public struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
  let high, low: UInt64

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads 32 hexadecimal digits, as `description` writes them.
  public init?(_ text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 32, let high = hexadecimal(digits[..<16]), let low = hexadecimal(digits[16...]) else {
      return nil
    }
    self.init(high: high, low: low)
  }

  public static func < (a: NodeID, b: NodeID) -> Bool { (a.high, a.low) < (b.high, b.low) }

  /// 32 hexadecimal digits.
  public var description: String { hexadecimal(high, digits: 16) + hexadecimal(low, digits: 16) }
}

/// A service of a node: where an application is invited, and who it is in a session. It is the same after each start
/// of the application, its box and its connection, so it may be kept in a file. Two with the same name have two
/// addresses.
public struct Address: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The box that the application is on.
  public let node: NodeID
  /// Made of user, service type and the application's name (docs/local-api.md, “hello”).
  public let endpoint: UInt32

  init(node: NodeID, endpoint: UInt32) {
    self.node = node
    self.endpoint = endpoint
  }

  /// Reads what `description` writes.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let node = NodeID(String(parts[0])) else { return nil }
    let digits = Array(parts[1].utf8)
    guard digits.count == 8, let endpoint = hexadecimal(digits[...]) else { return nil }
    self.init(node: node, endpoint: UInt32(endpoint))
  }

  public static func < (a: Address, b: Address) -> Bool {
    a.node == b.node ? a.endpoint < b.endpoint : a.node < b.node
  }

  /// The node's 32 hexadecimal digits, a slash, and 8 of the endpoint.
  public var description: String { "\(node)/" + hexadecimal(UInt64(endpoint), digits: 8) }
}

private func hexadecimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
  var value: UInt64 = 0
  for digit in digits {
    switch digit {
    case 0x30...0x39: value = value << 4 | UInt64(digit - 0x30)
    case 0x61...0x66: value = value << 4 | UInt64(digit - 0x61 + 10)
    case 0x41...0x46: value = value << 4 | UInt64(digit - 0x41 + 10)
    default: return nil
    }
  }
  return value
}

func hexadecimal(_ value: UInt64, digits: Int) -> String {
  let text = String(value, radix: 16)
  return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
}
