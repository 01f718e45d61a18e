/// A configuration file as strangers may see it.
public struct ConfigurationExcerpt {
  /// Sections, and the keys that there are with their values. Comments, and lines that are not understood, are left out.
  public private(set) var text: [UInt8] = []
  /// Values of secret keys, also those in comments.
  public private(set) var secrets: [[UInt8]] = []

  /// What says who and where its owner is.
  private static let personalKeys: [StaticString] = ["display-name", "discovery-info", "ssid"]

  /// - `keepsIdentities`: personal values stay.
  public init(of file: [UInt8], keepsIdentities: Bool) {
    let keys = configurationKeys
    var number = 0
    for line in file.split(separator: 0x0A, omittingEmptySubsequences: false) {
      number += 1
      let plain = trimmed(line.filter { $0 != 0x0D })
      let isComment = plain.bytes.first == UInt8(ascii: "#") || plain.bytes.first == UInt8(ascii: ";")
      let entry = isComment ? trimmed(plain.bytes.drop { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: ";") }) : plain
      let place = entry.bytes.firstIndex { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }
      let name = trimmed(entry.bytes[..<(place ?? entry.bytes.endIndex)])
      let value = place.map { trimmed(entry.bytes[($0 + 1)...]) }
      let isSecret = keys.contains { $0.isSecret && name.equals($0.name) }
      if isSecret, let value, !value.isEmpty { secrets.append(Array(value.bytes)) }
      if isComment || plain.isEmpty { continue }
      if keys.contains(where: { plain.equals(Text("[\($0.section)]")) }) {
        text += plain.bytes + [0x0A]
      } else if let value, let key = keys.first(where: { name.equals($0.name) }) {
        let isHidden = isSecret || !keepsIdentities && Self.personalKeys.contains { name.equals($0) }
        text += Array("\(key.name) = ".utf8) + (isHidden ? Array("***".utf8) : Array(value.bytes)) + [0x0A]
      } else {
        text += Array("; line \(number) is not understood, and left out\n".utf8)
      }
    }
  }
}

private func trimmed(_ bytes: some Sequence<UInt8>) -> Text { Text(Array(bytes)[...]).trimmed }
