import CSystem
import Reactor

/// Reads the files of a machine, below the directory `root`.
struct Machine {
  let root: String

  func path(_ path: String) -> String { root + path }

  func exists(_ path: String) -> Bool { access(self.path(path), F_OK) == 0 }

  /// The first 16 KiB of a file without trailing white space, or nil if the file cannot be read.
  func contents(_ path: String) -> [UInt8]? {
    let descriptor = csystem_open(self.path(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 16_384)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { return nil }
    bytes.removeLast(bytes.count - count)
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    return bytes
  }

  /// Whether the content of a file, without trailing white space, equals `text`.
  func holds(_ path: String, _ text: StaticString) -> Bool {
    contents(path).map { text.isEqual(to: $0) } ?? false
  }

  /// The words of a file, separated by white space.
  func words(_ path: String) -> [[UInt8]] {
    (contents(path) ?? []).split(whereSeparator: { $0 <= 0x20 }).map { Array($0) }
  }

  /// The names of the entries of a directory, sorted and without hidden entries. Empty if the directory cannot be read.
  func names(_ directory: String) -> [String] {
    guard let stream = opendir(path(directory)) else { return [] }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name.first != UInt8(ascii: ".") { names.append(name) }
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The id of a process with this name, or nil if no visible process has the name. `name` is compared with
  /// /proc/ID/comm, which holds at most 15 bytes.
  func process(named name: StaticString) -> String? {
    names("/proc").first { entry in
      entry.utf8.allSatisfy { (0x30...0x39).contains($0) } && holds("/proc/\(entry)/comm", name)
    }
  }

  /// Tries to connect to the Unix socket at `path`. Returns 0 if a process has the socket open, otherwise an errno.
  func connectError(_ path: String, _ type: __socket_type) -> CInt {
    let descriptor = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return csystem_errno() }
    defer { close(descriptor) }
    let result = withUnixAddress(self.path(path)) { connect(descriptor, $0, $1) }
    return result == 0 ? 0 : csystem_errno()
  }
}

extension StaticString {
  func isEqual(to bytes: some Collection<UInt8>) -> Bool {
    withUTF8Buffer { $0.elementsEqual(bytes) }
  }
}
