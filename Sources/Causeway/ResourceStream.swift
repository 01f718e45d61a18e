internal import Transfer

/// The names of streams that carry resources. docs/resources.md, “Streams”.
enum ResourceStream: Equatable {
  /// From the sender: the resource by the first 8 bytes of its manifest's digest, and this attempt's number.
  case offer(resource: String, attempt: String)
  /// From the receiver, for an attempt.
  case answer(attempt: String)

  /// Ordinary streams have no name that begins so.
  static let prefix = "causeway:"

  static func isReserved(_ name: String) -> Bool { name.hasPrefix(prefix) }

  /// Nil for a name that is reserved and not known.
  init?(_ name: String) {
    let parts = name.split(separator: ":", omittingEmptySubsequences: false).map { String($0) }
    switch parts.count {
    case 4 where parts[0] == "causeway" && parts[1] == "resource" && Self.isNumber(parts[2]) && Self.isNumber(parts[3]):
      self = .offer(resource: parts[2], attempt: parts[3])
    case 3 where parts[0] == "causeway" && parts[1] == "answer" && Self.isNumber(parts[2]):
      self = .answer(attempt: parts[2])
    default: return nil
    }
  }

  var name: String {
    switch self {
    case .offer(let resource, let attempt): "causeway:resource:\(resource):\(attempt)"
    case .answer(let attempt): "causeway:answer:\(attempt)"
    }
  }

  static func resource(_ manifest: Digest) -> String {
    String(decoding: manifest.hexadecimal(bytes: 8), as: UTF8.self)
  }

  static func newAttempt() -> String { hexadecimal(UInt64.random(in: .min ... .max), digits: 16) }

  private static func isNumber(_ text: String) -> Bool {
    text.utf8.count == 16 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
