/// A configuration file without its secrets, for a support bundle.
public struct ConfigurationExcerpt {
  /// The sections and known keys with their values. Comments, and lines that are not understood, are omitted.
  public private(set) var text: [UInt8] = []
  /// The values of secret keys, including values in comments.
  public private(set) var secrets: [[UInt8]] = []

  /// Keys that reveal the owner or the owner's location.
  private static let personalKeys: [StaticString] = ["display-name", "discovery-info", "ssid"]

  /// - `keepsIdentities`: whether the text contains the values of personal keys.
  public init(of file: [UInt8], keepsIdentities: Bool) {
    let keys = configurationKeys
    var number = 0
    var section = ByteString([])
    for whole in file.split(separator: 0x0A, omittingEmptySubsequences: false) {
      number += 1
      let mark = ConfigurationLines.byteOrderMark
      let line = number == 1 && whole.starts(with: mark) ? whole.dropFirst(mark.count) : whole
      let plain = trimmed(line.filter { $0 != 0x0D })
      let isComment = plain.bytes.first == UInt8(ascii: "#") || plain.bytes.first == UInt8(ascii: ";")
      let entry = isComment ? trimmed(plain.bytes.drop { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: ";") }) : plain
      let separator = entry.bytes.firstIndex { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }
      let name = trimmed(entry.bytes[..<(separator ?? entry.bytes.endIndex)])
      let value = separator.map { trimmed(entry.bytes[($0 + 1)...]) }
      let isSecret = keys.contains { $0.isSecret && name.equals($0.name) }
      if isSecret, let value, !value.isEmpty { secrets.append(Array(value.bytes)) }
      if isComment || plain.isEmpty { continue }
      let shown = ShownLine(line, keys)
      if plain.bytes.first == UInt8(ascii: "["), let end = plain.bytes.firstIndex(of: UInt8(ascii: "]")) {
        section = ByteString(plain.bytes[..<end].dropFirst())
        let isKnown = keys.contains { section.equals($0.section) }
        if !isKnown { section = ByteString([]) }
        text += isKnown ? Array("[\(section.string)]\n".utf8) : leftOut(number)
      } else if isSecret, value != nil {
        text += Array("\(name.string) = ***\n".utf8)
      } else if shown.mayHoldSecret {
        text += Array("; line \(number) may hold a secret, and is left out\n".utf8)
      } else if let value, let key = keys.first(where: { section.equals($0.section) && name.equals($0.name) }),
        isAccepted(value, key) || shown.shows(value, of: key)
      {
        let isHidden = !keepsIdentities && Self.personalKeys.contains { name.equals($0) }
        text += Array("\(key.name) = ".utf8) + (isHidden ? Array("***".utf8) : Array(value.bytes)) + [0x0A]
      } else {
        text += leftOut(number)
      }
    }
  }
}

private func leftOut(_ line: Int) -> [UInt8] { Array("; line \(line) is not understood, and left out\n".utf8) }

/// Whether a key accepts the value. A rejected value can be a part of a secret that was typed into the wrong line.
private func isAccepted(_ value: ByteString, _ key: ConfigurationKey) -> Bool {
  var unused = Configuration()
  return key.set(&unused, value)
}

private func trimmed(_ bytes: some Sequence<UInt8>) -> ByteString { ByteString(Array(bytes)[...]).trimmed }
