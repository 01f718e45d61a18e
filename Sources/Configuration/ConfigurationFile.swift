import Bearer
import CFormats
import CSystem

extension Configuration {
  public static let defaultPath = "/etc/causeway/causeway.conf"
  /// The maximum size of a configuration file in bytes.
  public static let fileBytesMax = 65_536

  /// Reads a configuration file. The display name defaults to the host name.
  ///
  /// - `path`: the file that the command line names. If `path` is nil, `defaultPath` is read, and this file may be
  ///   absent.
  public static func load(path: String?) throws(ConfigurationError) -> Configuration {
    let name = path ?? defaultPath
    var configuration = Configuration()
    if let bytes = try read(name, mayBeAbsent: path == nil) {
      configuration = try parse(bytes, file: name)
    }
    if configuration.node.displayName.utf8.isEmpty { configuration.node.displayName = hostName() }
    return configuration
  }

  /// Parses the bytes of a configuration file. `file` is the name of the file in error texts.
  public static func parse(_ bytes: [UInt8], file: String) throws(ConfigurationError) -> Configuration {
    // A power cut during a write to a FAT partition leaves an empty file. The defaults would admit everyone.
    if !bytes.contains(where: { !isBlank($0) }) {
      throw ConfigurationError(
        "\(file): empty; was it cut? restore it, or write a comment into it to use the defaults, which accept every node"
      )
    }
    try ConfigurationLines.check(bytes, file)
    let reader = ConfigurationReader(file, bytes)
    let line = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: CChar.self) { text in
        guard let start = text.baseAddress else { return CInt(0) }
        return cformats_parse_ini(start, text.count, handleEntry, Unmanaged.passUnretained(reader).toOpaque())
      }
    }
    if let error = reader.error { throw error }
    if line != 0 {
      throw ConfigurationError(
        "\(file):\(line): not understood; expected “[section]”, “key = value” or “# comment”")
    }
    try reader.configuration.checkTogether(file)
    return reader.configuration
  }

  /// Whether a byte is white space or a part of a byte order mark.
  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte) || ConfigurationLines.byteOrderMark.contains(byte)
  }

  private mutating func checkTogether(_ file: String) throws(ConfigurationError) {
    if mesh.isEnabled {
      let missing: StaticString? = mesh.ssid.utf8.isEmpty ? "ssid" : mesh.passphrase.utf8.isEmpty ? "passphrase" : nil
      if let missing { throw ConfigurationError("\(file): [mesh] has no \(missing): set it, the same on all boxes") }
      if !ip.isEnabled { throw ConfigurationError("\(file): [mesh] needs IP: set [ip] enabled = yes") }
    }
    if wifiDirect.isEnabled, !ip.isEnabled {
      wifiDirect.isEnabled = false
      warnings.append(
        "[ip] enabled = no also disables [wifi-direct], whose links use TCP; to keep only that, set interfaces = p2p-*"
      )
    }
    let lacksGroup = bluetooth.joinsGroup && !(wifiDirect.isEnabled && wifiDirect.mode == .groupOwner)
    if !bluetooth.networkBridge.utf8.isEmpty, !bluetooth.isClassic || lacksGroup {
      bluetooth.networkBridge = ""
      warnings.append(
        bluetooth.isClassic
          ? "[bluetooth] nap = group is off: set [wifi-direct] enabled = yes and mode = group-owner"
          : "[bluetooth] classic = no also disables nap; set classic = yes")
    }
    var bytes = 0
    for pair in node.discoveryInfo { bytes += pair.key.utf8.count + pair.value.utf8.count + 2 }
    if bytes > DiscoveryPair.totalBytesAdvised {
      warnings.append(
        "[node] discovery-info: \(bytes) bytes in all; above \(DiscoveryPair.totalBytesAdvised) "
          + "some networks drop the announcement")
    }
  }

  /// The bytes of a configuration file. Returns nil if the file is absent and `mayBeAbsent` is true.
  public static func read(_ path: String, mayBeAbsent: Bool) throws(ConfigurationError) -> [UInt8]? {
    let descriptor = csystem_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
    if descriptor < 0 {
      let code = csystem_errno()
      if mayBeAbsent && code == ENOENT {
        // A box without a file uses the defaults, which admit everyone. So a file that exists but cannot be reached
        // must not be treated as absent.
        if let link = unreachablePart(of: path) {
          throw ConfigurationError(
            "\(path): \(link) is a dangling link; restore its target, or remove it to use the defaults")
        }
        if let name = misnamed(path) {
          throw ConfigurationError(
            "there is “\(name)” and no \(path); rename the file, or remove it to use the defaults, which accept every node"
          )
        }
        return nil
      }
      throw ConfigurationError(
        "\(path): \(errorText(code)); \(code == EACCES ? "run this as root, or " : "")name a readable file after --config",
        isDenied: code == EACCES)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) else {
      throw ConfigurationError("\(path): not a regular file; name a readable file after --config")
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = chunk.withUnsafeMutableBytes { CSystem.read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 { throw ConfigurationError("\(path): \(errorText(csystem_errno()))") }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
      if bytes.count > fileBytesMax {
        throw ConfigurationError("\(path): more than \(fileBytesMax) bytes; this is not a configuration")
      }
    }
  }

  /// The dangling link that makes a path unreachable: the file itself, or the closest directory above the file that
  /// cannot be followed. Returns nil if the file is absent and no dangling link exists.
  private static func unreachablePart(of path: String) -> String? {
    var bytes = Array(path.utf8)
    while !bytes.isEmpty {
      let part = String(decoding: bytes, as: UTF8.self)
      var status = stat()
      if lstat(part, &status) == 0 {
        return bytes.count == path.utf8.count || stat(part, &status) != 0 ? part : nil
      }
      if csystem_errno() != ENOENT { return part }
      bytes.removeLast(bytes.count - (bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0))
    }
    return nil
  }

  /// The path of a file that was probably meant to be the missing file `path`, in the same directory. Windows hides the
  /// end of causeway.conf.txt. Names with a leading dot are those of editors.
  private static func misnamed(_ path: String) -> String? {
    let bytes = Array(path.utf8)
    let directory = String(decoding: bytes[..<(bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)], as: UTF8.self)
    guard let stream = opendir(directory) else { return nil }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      let folded = name.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
      let isMeant =
        folded.starts(with: "causeway.conf".utf8) || folded.elementsEqual("causeway.txt".utf8)
        || folded.elementsEqual("causeway".utf8) || folded.suffix(5).elementsEqual(".conf".utf8)
      if isMeant && name.first != UInt8(ascii: ".") { return "\(directory)/\(String(decoding: name, as: UTF8.self))" }
    }
    return nil
  }

  private static func errorText(_ code: CInt) -> String { String(cString: strerror(code)) }

  /// The host name, truncated to the maximum length of a display name. Returns "causeway" if the host name is not a
  /// valid display name.
  private static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    _ = name.withUnsafeMutableBufferPointer { gethostname($0.baseAddress!, $0.count - 1) }
    var bytes: [UInt8] = []
    for character in name {
      if character == 0 || bytes.count == DisplayNameSyntax.bytesMax { break }
      bytes.append(UInt8(bitPattern: character))
    }
    return DisplayNameSyntax.parse(bytes[...]) ?? "causeway"
  }
}

/// The state of one run of libinih, passed to its callback `handleEntry`.
private final class ConfigurationReader {
  let file: String
  var configuration = Configuration()
  var error: ConfigurationError?
  private let bytes: [UInt8]
  private var keysSeen: [Int] = []

  init(_ file: String, _ bytes: [UInt8]) {
    self.file = file
    self.bytes = bytes
  }

  func entry(_ section: ByteString, _ name: ByteString, _ value: ByteString, line: CInt) -> Bool {
    let keys = configurationKeys
    let index = keys.firstIndex { section.equals($0.section) && name.equals($0.name) }
    guard let index else {
      let shown = shown(line, keys)
      let typed = shown.quoted(key: name)
      if section.isEmpty {
        return fail(line, "\(typed ?? "a key") precedes the first [section]", accepted: sectionNames(keys))
      }
      let meant = shown.nearest(name, in: section).map { " (did you mean “\($0)”?)" } ?? ""
      return fail(
        line, "[\(section.string)] has no \(typed.map { "key \($0)" } ?? "such key")\(meant)",
        accepted: keyNames(keys, section))
    }
    let key = keys[index]
    if !key.isRepeatable && keysSeen.contains(index) {
      return fail(line, "[\(section.string)] \(name.string): given twice", accepted: "a single line")
    }
    keysSeen.append(index)
    if key.set(&configuration, value) {
      configuration.given.append(("[\(section.string)] \(name.string)", value.string))
      return true
    }
    // A rejected secret is often the right secret with a typing error, so the message does not show the value.
    let shown = shown(line, keys).quoted(value, of: key)
    let hasComment = value.string.utf8.split(separator: UInt8(ascii: " ")).dropFirst().contains { $0.first == 0x23 }
    return fail(
      line, "[\(section.string)] \(name.string): \(shown) is not accepted",
      accepted: "\(key.accepted)\(hasComment ? "; a comment needs a line of its own" : "")")
  }

  /// The rules for showing a line. If the parser's line number is not in the file, the rules consider the complete
  /// file, so they hide more.
  private func shown(_ line: CInt, _ keys: [ConfigurationKey]) -> ShownLine {
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    let index = Int(line) - 1
    return ShownLine(lines.indices.contains(index) ? lines[index] : bytes[...], keys)
  }

  private func fail(_ line: CInt, _ problem: String, accepted: String) -> Bool {
    error = ConfigurationError("\(file):\(line): \(problem); expected \(accepted)")
    return false
  }

  private func keyNames(_ keys: [ConfigurationKey], _ section: ByteString) -> String {
    var names = ""
    for key in keys where section.equals(key.section) {
      names += names.utf8.isEmpty ? "\(key.name)" : ", \(key.name)"
    }
    return names
  }
}

func sectionNames(_ keys: [ConfigurationKey]) -> String {
  var names = ""
  for (index, key) in keys.enumerated()
  where index == 0 || key.section.utf8Start != keys[index - 1].section.utf8Start {
    names += names.utf8.isEmpty ? "[\(key.section)]" : ", [\(key.section)]"
  }
  return names
}

private func handleEntry(
  _ user: UnsafeMutableRawPointer?, _ section: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>,
  _ value: UnsafePointer<CChar>, _ line: CInt
) -> CInt {
  let reader = Unmanaged<ConfigurationReader>.fromOpaque(user!).takeUnretainedValue()
  return reader.entry(
    ByteString(zeroTerminated: section), ByteString(zeroTerminated: name), ByteString(zeroTerminated: value), line: line
  )
    ? 1 : 0
}
