/// Decides how much of a configuration line an error or a support bundle may show.
///
/// Errors are shown in the log, in the status, and to users who may not read the file. After a typing error, a
/// passphrase can be anywhere in a line. So the complete line is examined before any message about the line is built:
///
/// - If a line contains a word for a secret, nothing of the line is shown.
/// - If a line contains no word for a secret, only words that cannot be a secret are shown: known keys, words that are
///   similar to a known key or section, and text that is too short for a secret.
///
/// The rules are the same in every section, because a passphrase can be in a line of any section.
struct ShownLine {
  /// Whether the line contains a word for a secret. If the line contains a word for a secret, nothing of the line is
  /// shown.
  let mayHoldSecret: Bool
  /// Whether the complete line is too short for a secret. A short word of a longer line can be a part of a secret that
  /// contains a blank, “=” or “:”.
  private let isShort: Bool
  private let keys: [ConfigurationKey]

  /// Words that usually precede a secret. The names of secret keys are treated in the same way. The comparison ignores
  /// case and blanks.
  private static let markers: [StaticString] = ["pass", "psk", "secret", "key=", "key:"]
  /// The minimum length of a secret in bytes. This minimum is the minimum length of a WPA passphrase.
  private static let secretBytesMin = 8
  /// The maximum length in bytes of an unknown key or section that is shown.
  private static let nameBytesMax = 24

  init(_ line: ArraySlice<UInt8>, _ keys: [ConfigurationKey]) {
    self.keys = keys
    let text = Self.folded(line)
    isShort = text.bytes.count < Self.secretBytesMin
    mayHoldSecret =
      Self.markers.contains { text.contains($0) } || keys.contains { $0.isSecret && text.contains($0.name) }
  }

  /// Whether the text contains a secret key that is followed by “=” or “:”, as in a second entry on the same line.
  static func hasSecretEntry(_ bytes: ArraySlice<UInt8>, _ keys: [ConfigurationKey]) -> Bool {
    let text = folded(bytes).bytes
    for key in keys where key.isSecret {
      for start in text.indices where ByteString(text[start...]).hasPrefix(key.name) {
        let end = start + key.name.utf8CodeUnitCount
        if end < text.endIndex, text[end] == UInt8(ascii: "=") || text[end] == UInt8(ascii: ":") { return true }
      }
    }
    return false
  }

  /// The value in quotes, or the words “this value” if the value may be a secret.
  func quoted(_ value: ByteString, of key: ConfigurationKey) -> String {
    shows(value, of: key) ? "“\(value.string)”" : "this value"
  }

  /// Whether a rejected value is shown. The value must be one word that is too short for a secret.
  func shows(_ value: ByteString, of key: ConfigurationKey) -> Bool {
    if mayHoldSecret || key.isSecret { return false }
    let isWord = value.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    return isWord && value.bytes.count < Self.secretBytesMin
  }

  /// An unknown key in quotes, or nil if the key must not be shown. The key is shown if it is similar to a known key of
  /// any section.
  func quoted(key name: ByteString) -> String? {
    guard !mayHoldSecret, isName(name), isShort || nearest(name, in: ByteString([])) != nil else { return nil }
    return "“\(name.string)”"
  }

  /// The known key that the operator probably meant, or nil if no known key is similar. An empty `section` stands for
  /// all sections. A known key can always be shown.
  func nearest(_ name: ByteString, in section: ByteString) -> StaticString? {
    var best: (name: StaticString, distance: Int)?
    for key in keys where section.isEmpty || section.equals(key.section) {
      let distance = Self.distance(name, key.name)
      if distance <= Self.distanceMax(key.name), distance < best?.distance ?? .max { best = (key.name, distance) }
    }
    return best?.name
  }

  /// An unknown section name up to its first blank. “…” replaces text that is not shown.
  func section(_ section: ByteString) -> String {
    let end = section.bytes.firstIndex { $0 == 0x20 || $0 == 0x09 } ?? section.bytes.endIndex
    let word = ByteString(section.bytes[..<end])
    let isNear = keys.contains { Self.distance(word, $0.section) <= Self.distanceMax($0.section) }
    guard !mayHoldSecret, isName(word), isShort || isNear else { return "…" }
    return end == section.bytes.endIndex ? word.string : "\(word.string) …"
  }

  /// Whether the text consists of letters and hyphens.
  private func isName(_ text: ByteString) -> Bool {
    (1...Self.nameBytesMax).contains(text.bytes.count)
      && text.bytes.allSatisfy { (0x61...0x7A).contains(Self.lowercased($0)) || $0 == UInt8(ascii: "-") }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte + 0x20 : byte }

  /// The text in lower case, without blanks and tabs.
  private static func folded(_ bytes: ArraySlice<UInt8>) -> ByteString {
    var folded: [UInt8] = []
    for byte in bytes where byte != 0x20 && byte != 0x09 { folded.append(lowercased(byte)) }
    return ByteString(folded[...])
  }

  /// The maximum edit distance between a misspelt name and a known name. For short names only one edit is allowed,
  /// because they are similar to each other.
  private static func distanceMax(_ name: StaticString) -> Int { name.utf8CodeUnitCount < 5 ? 1 : 2 }

  /// The Levenshtein distance of two names in bytes, ignoring case. Returns `Int.max` if the lengths differ by more
  /// than 2.
  private static func distance(_ name: ByteString, _ known: StaticString) -> Int {
    guard abs(name.bytes.count - known.utf8CodeUnitCount) <= 2 else { return .max }
    var row = Array(0...known.utf8CodeUnitCount)
    for byte in name.bytes {
      var diagonal = row[0]
      row[0] += 1
      for column in 1..<row.count {
        let isSame = lowercased(byte) == known.utf8Start[column - 1]
        let replaced = diagonal + (isSame ? 0 : 1)
        diagonal = row[column]
        row[column] = min(replaced, diagonal + 1, row[column - 1] + 1)
      }
    }
    return row[row.count - 1]
  }
}
