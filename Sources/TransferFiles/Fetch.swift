import Transfer

/// Stores data in a file, so that the data can be offered. The data are the content of an http or https URL, which the
/// program curl fetches, or standard input.
public enum Fetch {
  /// The argument that stands for standard input.
  public static let standardInput = "-"

  /// The maximum length of a URL, in bytes.
  static let urlBytesMax = 8192
  /// The maximum number of redirections that curl follows.
  private static let redirectsMax = 10
  /// If a server sends less than a byte per second for this time, the fetch fails.
  private static let stallSeconds = 60
  private static let connectSeconds = 30
  /// The number of bytes that a fetch leaves free on the disk.
  private static let bytesLeftFree: UInt64 = 16 << 20
  /// The interval at which the size of the fetched file is checked.
  private static let lookMilliseconds: Int32 = 50
  private static let readBytes = 256 << 10

  /// Whether an argument is an http or https URL and not a path. The scheme is case-insensitive (RFC 3986, section
  /// 3.1).
  public static func isURL(_ argument: String) -> Bool {
    let start = String(
      decoding: argument.utf8.prefix(8).map { (0x41...0x5a).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
    return start.utf8.starts(with: "http://".utf8) || start.utf8.elementsEqual("https://".utf8)
  }

  /// The name under which the content of a URL is offered: the last component of the URL's path, percent-decoded (RFC
  /// 3986, section 2.1). “download” if that is not a legal name. A name that the server suggests is ignored.
  static func name(_ url: String) -> [UInt8] {
    let bytes = Array(url.utf8)
    let start = bytes.firstIndex(of: UInt8(ascii: ":")).map { $0 + 3 } ?? 0
    let path = bytes.dropFirst(start).prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return unnamed }
    let name = decoded(path[(slash + 1)...])
    return FileNames.isLegal(name) ? name : unnamed
  }

  private static let unnamed = Array("download".utf8)

  private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var out: [UInt8] = []
    var at = text.startIndex
    while at < text.endIndex {
      if text[at] == UInt8(ascii: "%"), at + 2 < text.endIndex, let high = digit(text[at + 1]),
        let low = digit(text[at + 2])
      {
        out.append(high << 4 | low)
        at += 3
      } else {
        out.append(text[at])
        at += 1
      }
    }
    return out
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }

  /// Fetches a URL into a folder and returns the path of the file. The call blocks until the server has sent all bytes.
  ///
  /// - Parameter onProgress: called several times a second with the number of bytes so far. If `onProgress` returns
  ///   false, the
  ///   fetch is cancelled.
  static func fetch(_ url: String, into folder: String, onProgress: (UInt64) -> Bool) throws(ResourceError) -> String {
    // All users can see the arguments of curl and of this process, so the URL must not contain a password. The check
    // for a password comes first, because the other errors show the URL.
    if let user = userInformation(url) {
      let rest = Array(url.utf8.prefix(user.lowerBound)) + Array(url.utf8.dropFirst(user.upperBound))
      throw ResourceError(
        .invalid, String(decoding: rest, as: UTF8.self), "put user and password into ~/.netrc, not into the URL")
    }
    guard url.utf8.count <= urlBytesMax, !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
      throw ResourceError(.invalid, url, "a URL has at most \(urlBytesMax) bytes, and no blanks")
    }
    let path = "\(folder)/\(String(decoding: name(url), as: UTF8.self))", complaints = folder + ".complaints"
    let room = try room(folder, url)
    let child: ChildProcess
    do throws(FileError) {
      child = try ChildProcess(
        "curl",
        [
          "--disable", "--silent", "--show-error", "--fail", "--globoff", "--netrc-optional", "--location",
          "--max-redirs", "\(redirectsMax)",
          "--proto", "=http,https", "--proto-redir", "=http,https", "--connect-timeout", "\(connectSeconds)",
          "--speed-limit", "1", "--speed-time", "\(stallSeconds)", "--max-filesize", "\(room)", "--output", path,
          "--url", url,
        ], complaints: complaints)
    } catch {
      throw ResourceError(
        .unsupported, url, error.isMissing ? "curl is required to fetch it; install curl" : "curl: \(error.text)")
    }
    while true {
      if let code = child.wait(milliseconds: lookMilliseconds) {
        if code == 0 { break }
        throw failure(code, complaints, url)
      }
      let size = size(path)
      if size > room { throw ResourceError(.noSpace, url, noRoom) }
      if !onProgress(size) { throw ResourceError(.cancelled, url, "cancelled") }
    }
    // curl creates no file for an empty response, so the file is created here.
    do throws(FileError) {
      if try Files.size(path: path) == nil { try Files.make(path: path) }
    } catch {
      throw ResourceError(.storage, url, error.text)
    }
    return path
  }

  /// The position of the user information before the host, including the “@” (RFC 3986, section 3.2.1). nil if there is
  /// none.
  private static func userInformation(_ url: String) -> Range<Int>? {
    let bytes = Array(url.utf8)
    guard let start = bytes.firstIndex(of: UInt8(ascii: ":")).map({ $0 + 3 }), start < bytes.count else { return nil }
    let end = bytes[start...].firstIndex { [0x2f, 0x3f, 0x23].contains($0) } ?? bytes.count
    return bytes[start..<end].lastIndex(of: UInt8(ascii: "@")).map { start..<($0 + 1) }
  }

  /// Writes standard input until its end to a file in `folder`, and returns the path of the file.
  static func readInput(into folder: String, onProgress: (UInt64) -> Bool) throws(ResourceError) -> String {
    let path = "\(folder)/stdin"
    let room = try room(folder, standardInput)
    do throws(FileError) {
      let file = try Files.make(path: path)
      var count: UInt64 = 0
      while true {
        guard onProgress(count) else { throw FileError(saying: "cancelled") }
        guard let bytes = try Files.readInput(count: readBytes, milliseconds: lookMilliseconds) else { continue }
        if bytes.isEmpty { return path }
        try Files.write(file, offset: count, bytes)
        count += UInt64(bytes.count)
        if count > room { throw FileError(saying: noRoom) }
      }
    } catch {
      throw ResourceError(error.isFull ? .noSpace : .storage, "standard input", error.text)
    }
  }

  private static let noRoom = "there is not enough space for it on this disk"

  private static func room(_ folder: String, _ what: String) throws(ResourceError) -> UInt64 {
    do throws(FileError) {
      let space = try Files.space(try Files.folder(path: folder))
      guard space > bytesLeftFree else { throw FileError(saying: noRoom) }
      return space - bytesLeftFree
    } catch {
      throw ResourceError(.noSpace, what, error.text)
    }
  }

  private static func size(_ path: String) -> UInt64 { (try? Files.size(path: path)) ?? 0 }

  /// The error for an exit code of curl (curl(1), EXIT CODES), with curl's own message.
  private static func failure(_ code: Int32, _ complaints: String, _ url: String) -> ResourceError {
    let words = (try? Files.beginning(path: complaints, count: 300)) ?? []
    // The message has the form “curl: (22) The requested URL returned error: 404”; the part up to “)” is removed.
    var text = words.prefix { $0 != 0x0a }
    if text.starts(with: Array("curl: (".utf8)), let end = text.firstIndex(of: UInt8(ascii: ")")) {
      text = text[(end + 1)...].drop { $0 == 0x20 }
    }
    let said = text.isEmpty ? "curl exited with code \(code)" : String(decoding: text, as: UTF8.self)
    switch code {
    case 3: return ResourceError(.invalid, url, said)
    case 23: return ResourceError(.storage, url, said)
    case 28: return ResourceError(.timedOut, url, said)
    case 63: return ResourceError(.noSpace, url, noRoom)
    default: return ResourceError(.outOfReach, url, said)
    }
  }
}
