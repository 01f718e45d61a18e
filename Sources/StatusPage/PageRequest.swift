/// The head of an HTTP/1.1 request (RFC 9112), reduced to what the status page needs. Each connection serves one
/// request, so everything after the head is ignored.
public enum PageRequest: Equatable, Sendable {
  /// The head is not complete.
  case incomplete
  /// The peer requests the page (GET), or only the head of the response (HEAD).
  case page(isHeadOnly: Bool)
  case refused(PageRefusal, isHeadOnly: Bool)

  /// The maximum length of a head in bytes. Browsers send about 1 KiB, and an attacker can send the maximum.
  public static let headBytesMax = 4096

  /// Parses the head in `bytes`, which are all bytes received on the connection so far. `host` is the address that
  /// serves the page.
  ///
  /// A request for another host is refused. A request for another host comes from a foreign Web site whose name
  /// resolves to this address (DNS rebinding). The foreign site must not read the page.
  public init(_ bytes: [UInt8], host: String) {
    guard let lines = headLines(bytes) else {
      // A peer that speaks another protocol is refused immediately.
      let isText = bytes.allSatisfy { isPlain($0) || $0 == 0x0A || $0 == 0x0D }
      self =
        !isText
        ? .refused(.malformed, isHeadOnly: false)
        : bytes.count < Self.headBytesMax ? .incomplete : .refused(.tooLong, isHeadOnly: false)
      return
    }
    let words = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
    guard lines.allSatisfy({ $0.allSatisfy { isPlain($0) } }), words.count == 3, isToken(words[0]),
      let version = Version(words[2])
    else {
      self = .refused(.malformed, isHeadOnly: false)
      return
    }
    let isHeadOnly = words[0].elementsEqual("HEAD".utf8)
    if let refusal = refusal(of: words[0], words[1], version, lines.dropFirst(), host: Array(host.utf8)) {
      self = .refused(refusal, isHeadOnly: isHeadOnly)
    } else {
      self = .page(isHeadOnly: isHeadOnly)
    }
  }
}

/// The reason why a request is refused. The raw value is the HTTP status code (RFC 9110, section 15; RFC 6585, section
/// 5).
public enum PageRefusal: UInt16, Sendable, CaseIterable {
  case malformed = 400
  case notFound = 404
  case methodNotAllowed = 405
  /// The request names a host other than this server.
  case misdirected = 421
  case tooLong = 431
  case versionNotSupported = 505

  /// The reason phrase of the status line.
  public var text: StaticString {
    switch self {
    case .malformed: "Bad Request"
    case .notFound: "Not Found"
    case .methodNotAllowed: "Method Not Allowed"
    case .misdirected: "Misdirected Request"
    case .tooLong: "Request Header Fields Too Large"
    case .versionNotSupported: "HTTP Version Not Supported"
    }
  }
}

private enum Version {
  case before11
  /// HTTP/1.1 and later versions 1.x, which require a Host field.
  case since11
  case other

  /// Parses the version in the request line (RFC 9112, section 2.3).
  init?(_ word: ArraySlice<UInt8>) {
    guard word.count == 8, word.starts(with: "HTTP/".utf8) else { return nil }
    let major = word[word.startIndex + 5], minor = word[word.startIndex + 7]
    guard isDigit(major), word[word.startIndex + 6] == UInt8(ascii: "."), isDigit(minor) else { return nil }
    self = major != UInt8(ascii: "1") ? .other : minor == UInt8(ascii: "0") ? .before11 : .since11
  }
}

private func refusal(
  of method: ArraySlice<UInt8>, _ target: ArraySlice<UInt8>, _ version: Version,
  _ fields: ArraySlice<ArraySlice<UInt8>>, host: [UInt8]
) -> PageRefusal? {
  if case .other = version { return .versionNotSupported }
  var hosts: [ArraySlice<UInt8>] = []
  for field in fields {
    // A field name is directly followed by its colon, without white space (RFC 9112, section 5.1).
    guard let colon = field.firstIndex(of: UInt8(ascii: ":")), isToken(field[..<colon]) else { return .malformed }
    if isSameWord(field[..<colon], "host") { hosts.append(trimmed(field[(colon + 1)...])) }
  }
  // Exactly one Host field is required since HTTP/1.1. In earlier versions the field is optional (RFC 9112, section
  // 3.2).
  if hosts.count > 1 { return .malformed }
  if case .since11 = version, hosts.isEmpty { return .malformed }
  if !method.elementsEqual("GET".utf8) && !method.elementsEqual("HEAD".utf8) { return .methodNotAllowed }
  var path = target
  // A target in absolute form contains the host, which replaces the Host field (RFC 9112, section 3.2.2).
  if target.count > 7, isSameWord(target.prefix(7), "http://") {
    let rest = target.dropFirst(7)
    let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    hosts = [rest[..<end]]
    path = rest[end...]
  }
  if let asked = hosts.first, !asked.elementsEqual(host) && !asked.elementsEqual(host + Array(":80".utf8)) {
    return .misdirected
  }
  let isRoot = path.first == UInt8(ascii: "/") && (path.count == 1 || path.dropFirst().first == UInt8(ascii: "?"))
  return isRoot ? nil : .notFound
}

/// The lines of a complete head without line terminators, or nil if the head is incomplete or too long. Leading empty
/// lines are skipped, and a line feed without carriage return also ends a line (RFC 9112, section 2.2).
private func headLines(_ bytes: [UInt8]) -> [ArraySlice<UInt8>]? {
  var lines: [ArraySlice<UInt8>] = []
  var start = 0
  while let end = bytes[start...].firstIndex(of: 0x0A) {
    if end >= PageRequest.headBytesMax { return nil }
    let line = end > start && bytes[end - 1] == 0x0D ? bytes[start..<(end - 1)] : bytes[start..<end]
    start = end + 1
    if !line.isEmpty {
      lines.append(line)
    } else if !lines.isEmpty {
      return lines
    }
  }
  return nil
}

/// Whether a word is a token (RFC 9110, section 5.6.2).
private func isToken(_ word: ArraySlice<UInt8>) -> Bool {
  !word.isEmpty
    && word.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
      case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"): true
      case UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
      case UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"): true
      default: isDigit(byte)
      }
    }
}

/// Whether a byte is allowed in a head: a tab, or any byte that is not a control character.
private func isPlain(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

/// Whether an ASCII word equals `lowercase`, ignoring case.
private func isSameWord(_ word: ArraySlice<UInt8>, _ lowercase: StaticString) -> Bool {
  guard word.count == lowercase.utf8CodeUnitCount else { return false }
  for (index, byte) in word.enumerated() {
    let folded = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    if folded != lowercase.utf8Start[index] { return false }
  }
  return true
}

private func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
  var value = value
  while let byte = value.first, byte == 0x20 || byte == 0x09 { value = value.dropFirst() }
  while let byte = value.last, byte == 0x20 || byte == 0x09 { value = value.dropLast() }
  return value
}
