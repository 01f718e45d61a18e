/// Removes secrets from text that leaves a box, and shortens information that identifies people and places.
///
/// Each known secret, and the rest of a line after the word “passphrase”, always becomes “***”. Unless
/// `keepsIdentities` is true, these are shortened too:
///
/// - Quoted text, such as names and rejected values, becomes “…”.
/// - The last three bytes of a MAC address, and all groups of an IPv6 address but the first, become “x”.
/// - Only the first 8 digits of an id are kept.
public struct Redaction {
  /// Whether names, ids and addresses are kept.
  public let keepsIdentities: Bool
  private var secrets: [[UInt8]] = []

  public init(keepsIdentities: Bool) { self.keepsIdentities = keepsIdentities }

  /// The minimum length of a secret in bytes. A shorter secret is ignored, because it would match too much other text.
  public static let secretBytesMin = 4

  public mutating func add(secret: [UInt8]) {
    guard secret.count >= Self.secretBytesMin, !secrets.contains(secret) else { return }
    // Longer secrets come first, because a longer secret can start with a shorter one.
    secrets.insert(secret, at: secrets.firstIndex { $0.count < secret.count } ?? secrets.count)
  }

  public func applied(to text: String) -> String { String(decoding: applied(to: Array(text.utf8)), as: UTF8.self) }

  public func applied(to text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var offset = 0
    while offset < text.count {
      if let length = secretLength(text, at: offset) {
        result += hidden
        offset += length
      } else if begins(text, with: passphrase, at: offset) {
        let isEntry = begins(text, with: entrySign, at: offset + passphrase.count)
        result += passphrase + (isEntry ? entrySign : []) + hidden
        offset = text[offset...].firstIndex(of: 0x0A) ?? text.count
      } else if !keepsIdentities, let end = quoteEnd(text, from: offset) {
        result += Array("“…”".utf8)
        offset = end
      } else if !keepsIdentities, let kept = interfaceLength(text, at: offset) {
        result += text[offset..<(offset + kept)] + Array("xxxxxx".utf8)
        offset += kept + 6
      } else if !keepsIdentities, isNumberPart(text[offset]), offset == 0 || !isWordPart(text[offset - 1]) {
        let end = text[offset...].firstIndex { !isNumberPart($0) } ?? text.count
        result += isWordEnd(text, end) ? shortened(Array(text[offset..<end])) : Array(text[offset..<end])
        offset = end
      } else {
        result.append(text[offset])
        offset += 1
      }
    }
    return result
  }

  private func secretLength(_ text: [UInt8], at offset: Int) -> Int? {
    secrets.first { $0[0] == text[offset] && begins(text, with: $0, at: offset) }?.count
  }

  /// The length of the kept part of an interface name that contains a MAC address (systemd.net-naming-scheme(7)).
  private func interfaceLength(_ text: [UInt8], at offset: Int) -> Int? {
    guard offset == 0 || !isWordPart(text[offset - 1]), text.count - offset >= 15,
      interfacePrefixes.contains(where: { begins(text, with: $0, at: offset) }),
      text[(offset + 3)..<(offset + 15)].allSatisfy({ hexDigit($0) != nil }), isWordEnd(text, offset + 15)
    else { return nil }
    return 9
  }

  /// The end of the quotation that starts at `offset`, or the end of its line if the quotation is not closed. Nil if
  /// none starts here.
  private func quoteEnd(_ text: [UInt8], from offset: Int) -> Int? {
    guard begins(text, with: quote, at: offset) else { return nil }
    var end = offset + quote.count
    while end < text.count, text[end] != 0x0A, !begins(text, with: quoteClosing, at: end) { end += 1 }
    return begins(text, with: quoteClosing, at: end) ? end + quoteClosing.count : end
  }
}

private let hidden = Array("***".utf8)
private let passphrase = Array("passphrase ".utf8)
/// The sign between a key and its value in the configuration file.
private let entrySign = Array("= ".utf8)
private let quote = Array("“".utf8)
private let interfacePrefixes = [Array("enx".utf8), Array("wlx".utf8)]
private let quoteClosing = Array("”".utf8)

private func begins(_ text: [UInt8], with part: [UInt8], at offset: Int) -> Bool {
  text.count - offset >= part.count && text[offset..<(offset + part.count)].elementsEqual(part)
}

private func isNumberPart(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ":") || hexDigit(byte) != nil }

private func isWordPart(_ byte: UInt8) -> Bool {
  isNumberPart(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
}

private func isWordEnd(_ text: [UInt8], _ end: Int) -> Bool { end == text.count || !isWordPart(text[end]) }

/// Shortens a run of digits and colons if it is an address or an id.
private func shortened(_ run: [UInt8]) -> [UInt8] {
  // A single colon at the end is punctuation of the sentence. “::” at the end belongs to an address.
  let isSentence = run.last == UInt8(ascii: ":") && !run.suffix(2).elementsEqual("::".utf8)
  let number = isSentence ? Array(run.dropLast()) : run
  let end = isSentence ? Array(":".utf8) : []
  let groups = number.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
  if groups.count == 6 && groups.allSatisfy({ $0.count == 2 }) {
    return Array(number.prefix(9)) + Array("xx:xx:xx".utf8) + end
  }
  if groups.count == 8 || groups.dropFirst().dropLast().contains(where: { $0.isEmpty }) {
    return Array(groups[0]) + Array("::x".utf8) + end
  }
  if groups.count == 1 && number.count == 32 { return Array(number.prefix(8)) + Array("…".utf8) + end }
  return run
}
