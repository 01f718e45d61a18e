import BearerIP

/// wpa_supplicant's reply to a command.
public struct SupplicantReply {
  /// The reply without trailing line feeds.
  public let bytes: [UInt8]

  init(_ message: ArraySlice<UInt8>) {
    var text = message
    while text.last == 0x0A { text.removeLast() }
    bytes = Array(text)
  }

  public var isOK: Bool { bytes.elementsEqual("OK".utf8) }
  /// Whether the reply is an error, such as FAIL, FAIL-NO-IFNAME-MATCH, FAIL-PBC-OVERLAP or UNKNOWN COMMAND.
  public var isFailure: Bool { bytes[...].after("FAIL") != nil || bytes[...].after("UNKNOWN") != nil }
  /// The first 80 bytes, for the log.
  public var text: String { string(bytes.prefix(80)) }

  /// The lines of a reply such as the reply to INTERFACES.
  public var lines: [String] { bytes.split(separator: 0x0A).map { string($0) } }

  /// The value of a "name=value" line in a reply such as the reply to STATUS.
  public func value(_ name: StaticString) -> String? {
    for line in bytes.split(separator: 0x0A) {
      if let rest = line.after(name), rest.first == UInt8(ascii: "=") { return string(rest.dropFirst()) }
    }
    return nil
  }
}
