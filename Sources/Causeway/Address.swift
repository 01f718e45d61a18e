/// The id of a node: the first 16 bytes of the SHA-256 of the node's public key (docs/protocol.md). Another node cannot
/// use the id, because only this node has the private key.
public struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
  let high, low: UInt64

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Parses 32 hexadecimal digits, the format of `description`. Returns nil for other text.
  public init?(_ text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 32, let high = hexadecimal(digits[..<16]), let low = hexadecimal(digits[16...]) else {
      return nil
    }
    self.init(high: high, low: low)
  }

  public static func < (a: NodeID, b: NodeID) -> Bool { (a.high, a.low) < (b.high, b.low) }

  /// The id as 32 hexadecimal digits.
  public var description: String { hexadecimal(high, digits: 16) + hexadecimal(low, digits: 16) }
}

/// The address of an application. Other applications invite the application at this address, and the address identifies
/// the application in a session.
///
/// The address stays the same when the application, its node or its connection restarts, so the address can be stored
/// in a file. Two applications of the same name on two nodes have different addresses.
public struct Address: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The node that the application runs on.
  public let node: NodeID
  /// A number that the daemon derives from the application's user, service type and name (docs/local-api.md, “hello”).
  public let endpoint: UInt32

  init(node: NodeID, endpoint: UInt32) {
    self.node = node
    self.endpoint = endpoint
  }

  /// Parses an address in the format of `description`. Returns nil for other text.
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

  /// The node id as 32 hexadecimal digits, a slash, and the endpoint as 8 hexadecimal digits.
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
