/// The names of the streams that carry resources (files and folders to be sent). See docs/resources.md, “Streams”.
public enum ResourceStream: Equatable, Sendable {
  /// The stream from the sender. `resource` is the first 8 bytes of the manifest's digest. `attempt` is a random number
  /// that the sender chooses for each attempt.
  case offer(resource: UInt64, attempt: UInt64)
  /// The stream from the receiver, with the `attempt` of the sender's stream.
  case answer(attempt: UInt64)

  /// The prefix of stream names that is reserved for resources.
  public static let prefix = Array("causeway:".utf8)
  private static let offerPrefix = Array("causeway:resource:".utf8)
  private static let answerPrefix = Array("causeway:answer:".utf8)
  private static let digits = 16

  /// Parses the name of a stream. Returns nil for any other name, with or without the reserved prefix.
  public init?(_ name: [UInt8]) {
    if name.starts(with: Self.offerPrefix), name.count == Self.offerPrefix.count + 2 * Self.digits + 1 {
      let numbers = name[Self.offerPrefix.count...], colon = numbers.startIndex + Self.digits
      guard numbers[colon] == UInt8(ascii: ":"), let resource = Self.number(numbers[..<colon]),
        let attempt = Self.number(numbers[(colon + 1)...])
      else { return nil }
      self = .offer(resource: resource, attempt: attempt)
    } else if name.starts(with: Self.answerPrefix), name.count == Self.answerPrefix.count + Self.digits {
      guard let attempt = Self.number(name[Self.answerPrefix.count...]) else { return nil }
      self = .answer(attempt: attempt)
    } else {
      return nil
    }
  }

  public var name: [UInt8] {
    switch self {
    case .offer(let resource, let attempt):
      Self.offerPrefix + Self.text(resource) + [UInt8(ascii: ":")] + Self.text(attempt)
    case .answer(let attempt): Self.answerPrefix + Self.text(attempt)
    }
  }

  public static func resource(_ manifest: Digest) -> UInt64 {
    manifest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Parses lower-case hexadecimal digits, of which the caller passes 16. Returns nil for any other character.
  private static func number(_ text: ArraySlice<UInt8>) -> UInt64? {
    var number: UInt64 = 0
    for byte in text {
      switch byte {
      case 0x30...0x39: number = number << 4 | UInt64(byte - 0x30)
      case 0x61...0x66: number = number << 4 | UInt64(byte - 0x61 + 10)
      default: return nil
      }
    }
    return number
  }

  private static func text(_ number: UInt64) -> [UInt8] {
    (0..<digits).map { index in
      let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * index)) & 15
      return digit < 10 ? 0x30 + digit : 0x61 + digit - 10
    }
  }
}
