#if hasFeature(Embedded)
  import CSystem
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The error of a file operation.
public struct FileError: Error {
  public let code: Int32
  /// The error in one line, for people. The caller puts the file's name before this text.
  public let text: String

  init(_ code: Int32? = nil) {
    let code = code ?? lastError
    self.code = code
    text = String(cString: strerror(code))
  }

  public init(saying text: String) { (code, self.text) = (0, text) }

  public var isFull: Bool { code == ENOSPC || code == EDQUOT }
  var isMissing: Bool { code == ENOENT }
  /// Whether the operation failed because the name is a symbolic link, which `Files` does not follow.
  var isLink: Bool { code == ELOOP }
  var isThere: Bool { code == EEXIST || code == ENOTEMPTY }
}

/// An open file or folder, which is closed when the last reference to this object is released.
public final class OpenFile: Sendable {
  let number: Int32

  init(_ number: Int32) { self.number = number }

  deinit { close(number) }
}

/// An exclusive lock on a file. The lock is released when the last reference to this object is released. In `deinit`,
/// the lock is released explicitly, because a child process that was just forked may still have a copy of the
/// descriptor.
final class FileLock: Sendable {
  private let file: OpenFile

  /// Returns nil if another process, or another transfer of this process, has the lock.
  init?(_ file: OpenFile) {
    guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else { return nil }
    self.file = file
  }

  deinit { _ = flock(file.number, LOCK_UN) }
}

/// System calls on files. A port to another operating system changes this file and the library's `Platform`.
///
/// Each call with a `name` opens that file in an open folder, accepts one name without a slash, and follows no symbolic
/// link. So a call with a `name` never reaches a file outside the folder that was opened first. The library `Causeway`
/// makes these calls on threads of its own, because they can block.
public enum Files {
  /// The metadata of an open file.
  struct Information: Equatable {
    let isFile: Bool
    let isFolder: Bool
    let size: UInt64
    /// The time of the last modification, in nanoseconds since 1970.
    let changed: Int64
  }

  private static let common = O_CLOEXEC | O_NONBLOCK

  /// Opens a path that the application chose, for reading. Symbolic links in the path are followed.
  static func open(path: String) throws(FileError) -> OpenFile {
    guard !path.utf8.contains(0) else { throw FileError(EINVAL) }
    return try opened(systemOpen(path, O_RDONLY | common))
  }

  public static func folder(path: String) throws(FileError) -> OpenFile {
    guard !path.utf8.contains(0) else { throw FileError(EINVAL) }
    return try opened(systemOpen(path, O_RDONLY | O_DIRECTORY | common))
  }

  /// Creates a new file for writing, with mode 0600. Fails if the file exists.
  @discardableResult static func make(path: String) throws(FileError) -> OpenFile {
    guard !path.utf8.contains(0) else { throw FileError(EINVAL) }
    return try opened(systemMake(path, O_WRONLY | O_CREAT | O_EXCL | common))
  }

  static func makeFolder(path: String) throws(FileError) {
    guard !path.utf8.contains(0) else { throw FileError(EINVAL) }
    try check(mkdir(path, 0o700))
  }

  /// The size of a file in bytes; nil if the file does not exist.
  static func size(path: String) throws(FileError) -> UInt64? {
    do {
      return try information(open(path: path)).size
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  static func beginning(path: String, count: Int) throws(FileError) -> [UInt8] {
    try read(open(path: path), offset: 0, count: count)
  }

  /// Reads at most `count` bytes of standard input. Returns an empty array at the end of the input, or nil if no bytes
  /// arrive within `milliseconds`.
  static func readInput(count: Int, milliseconds: Int32) throws(FileError) -> [UInt8]? {
    var entry = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) > 0 else { return nil }
    var got = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      got = systemRead(0, buffer.baseAddress!, count)
      filled = max(got, 0)
    }
    if got >= 0 { return bytes }
    if lastError == EINTR || lastError == EAGAIN { return nil }
    throw FileError()
  }

  /// Opens the folder `name` in the folder `parent`.
  static func folder(_ name: [UInt8], in parent: OpenFile) throws(FileError) -> OpenFile {
    try opened(at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | common))
  }

  /// Opens the folder that a list of names leads to, one name after another, beginning in `parent`.
  static func folder(_ path: ArraySlice<[UInt8]>, in parent: OpenFile) throws(FileError) -> OpenFile {
    var folder = parent
    for name in path { folder = try self.folder(name, in: folder) }
    return folder
  }

  static func makeFolder(_ name: [UInt8], in parent: OpenFile) throws(FileError) {
    try check(withName(name) { mkdirat(parent.number, $0, 0o777) })
  }

  /// Opens a file or folder for reading.
  static func read(_ name: [UInt8], in parent: OpenFile) throws(FileError) -> OpenFile {
    try opened(at(parent, name, O_RDONLY | O_NOFOLLOW | common))
  }

  /// Opens a file for reading and writing, and creates it if it is missing.
  static func write(_ name: [UInt8], in parent: OpenFile) throws(FileError) -> OpenFile {
    try opened(at(parent, name, O_RDWR | O_CREAT | O_NOFOLLOW | common))
  }

  static func information(_ file: OpenFile) throws(FileError) -> Information {
    var status = stat()
    guard fstat(file.number, &status) == 0 else { throw FileError() }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    let kind = status.st_mode & kindMask
    return Information(
      isFile: kind == regular, isFolder: kind == directory, size: UInt64(max(0, status.st_size)),
      changed: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// The current time, in nanoseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// The names of the entries of a folder; at most `max` names are returned.
  static func names(in folder: OpenFile, max: Int) throws(FileError) -> [[UInt8]] {
    // The folder is opened again, because closedir closes the descriptor that it uses.
    let copy = try opened(at(folder, [UInt8(ascii: ".")], O_RDONLY | O_DIRECTORY | common))
    let own = dup(copy.number)
    guard own >= 0 else { throw FileError() }
    guard let stream = fdopendir(own) else {
      let failure = FileError()
      close(own)
      throw failure
    }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while names.count < max, let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 1) {
          Array(UnsafeRawBufferPointer(start: $0, count: strlen($0)))
        }
      }
      if name != [0x2e] && name != [0x2e, 0x2e] { names.append(name) }
    }
    return names
  }

  /// Reads `count` bytes from an offset; fewer if the file ends before.
  static func read(_ file: OpenFile, offset: UInt64, count: Int) throws(FileError) -> [UInt8] {
    var done = 0, failure: FileError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while done < count {
        let got = pread(file.number, buffer.baseAddress! + done, count - done, off_t(offset) + off_t(done))
        if got < 0 && lastError == EINTR { continue }
        if got < 0 { failure = FileError() }
        if got <= 0 { break }
        done += got
      }
      filled = done
    }
    if let failure { throw failure }
    return bytes
  }

  static func write(_ file: OpenFile, offset: UInt64, _ bytes: [UInt8]) throws(FileError) {
    var done = 0
    while done < bytes.count {
      let put = bytes.withUnsafeBytes {
        pwrite(file.number, $0.baseAddress! + done, $0.count - done, off_t(offset) + off_t(done))
      }
      if put < 0 && lastError != EINTR { throw FileError() }
      done += max(put, 0)
    }
  }

  static func truncate(_ file: OpenFile, to size: UInt64) throws(FileError) {
    try check(ftruncate(file.number, off_t(size)))
  }

  /// Writes a file's content to the disk, so that the content survives a loss of power.
  static func sync(_ file: OpenFile) throws(FileError) {
    #if canImport(Darwin)
      try check(fsync(file.number))
    #else
      try check(fdatasync(file.number))
    #endif
  }

  /// Writes a folder's entries to the disk, so that they survive a loss of power if the file system supports that.
  static func syncFolder(_ folder: OpenFile) { _ = fsync(folder.number) }

  /// Moves a file or folder to the name `new` in `target`. Returns false if `new` already exists; nothing is replaced.
  static func move(_ name: [UInt8], in folder: OpenFile, to new: [UInt8], in target: OpenFile, isFolder: Bool)
    throws(FileError) -> Bool
  {
    do {
      if isFolder {
        // An empty folder is created to reserve the name. The rename then replaces this empty folder.
        try check(withName(new) { mkdirat(target.number, $0, 0o700) })
      } else {
        let linked = withName(name) { old in
          withName(new) { linkat(folder.number, old, target.number, $0, 0) }
        }
        if linked == 0 {
          try remove(name, in: folder, isFolder: false)
          return true
        }
        if lastError == EEXIST { return false }
        // On a file system without hard links, an empty file is created to reserve the name. The rename then replaces
        // this file.
        _ = try opened(at(target, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | common))
      }
    } catch {
      if error.isThere { return false }
      throw error
    }
    do {
      try check(withName(name) { old in withName(new) { renameat(folder.number, old, target.number, $0) } })
    } catch {
      // The rename fails, for example, if another process has put a file into the reserved folder. The reservation is
      // removed.
      try? remove(new, in: target, isFolder: isFolder)
      throw error
    }
    return true
  }

  static func remove(_ name: [UInt8], in folder: OpenFile, isFolder: Bool) throws(FileError) {
    try check(withName(name) { unlinkat(folder.number, $0, isFolder ? AT_REMOVEDIR : 0) })
  }

  /// Removes a folder and its content. The removal fails if the folders are nested deeper than in any resource.
  static func removeAll(_ name: [UInt8], in parent: OpenFile, depth: Int = 0) throws(FileError) {
    guard depth < 80 else { throw FileError(ELOOP) }
    let folder = try folder(name, in: parent)
    while case let inside = try names(in: folder, max: 4_096), !inside.isEmpty {
      for inner in inside {
        do {
          try remove(inner, in: folder, isFolder: false)
        } catch {
          guard error.code == EISDIR || error.code == EPERM else { throw error }
          try removeAll(inner, in: folder, depth: depth + 1)
        }
      }
    }
    try remove(name, in: parent, isFolder: true)
  }

  /// The number of bytes that this user can still write to the file system of a folder.
  public static func space(_ folder: OpenFile) throws(FileError) -> UInt64 {
    var status = statvfs()
    guard fstatvfs(folder.number, &status) == 0 else { throw FileError() }
    let (bytes, isMore) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return min(isMore ? .max : bytes, DiskQuota.room(folder))
  }

  // MARK: Helpers

  private static func opened(_ number: Int32) throws(FileError) -> OpenFile {
    guard number >= 0 else { throw FileError() }
    return OpenFile(number)
  }

  private static func check(_ result: Int32) throws(FileError) {
    guard result == 0 else { throw FileError() }
  }

  /// Calls `body` with a name as a C string. Fails with EINVAL if the name is empty or contains a slash or NUL.
  private static func withName(_ name: [UInt8], _ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    guard !name.isEmpty, !name.contains(0), !name.contains(UInt8(ascii: "/")) else {
      setLastError(EINVAL)
      return -1
    }
    return (name + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
    }
  }

  private static func at(_ folder: OpenFile, _ name: [UInt8], _ flags: Int32) -> Int32 {
    withName(name) { openInFolder(folder.number, $0, flags) }
  }
}

// Replacements for macros and variadic functions of C, and for functions of C whose names are also members of `Files`.
#if hasFeature(Embedded)
  private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { csystem_open(path, flags, 0) }
  private func systemMake(_ path: String, _ flags: Int32) -> Int32 { csystem_open(path, flags, 0o600) }
  private func openInFolder(_ folder: Int32, _ name: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    csystem_openat(folder, name, flags, 0o666)
  }
  private var lastError: Int32 { csystem_errno() }
  private func setLastError(_ code: Int32) { csystem_set_errno(code) }
  private let kindMask = mode_t(S_IFMT), regular = mode_t(S_IFREG), directory = mode_t(S_IFDIR)
#else
  private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
  private func systemMake(_ path: String, _ flags: Int32) -> Int32 { open(path, flags, 0o600) }
  private func openInFolder(_ folder: Int32, _ name: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    openat(folder, name, flags, 0o666)
  }
  private var lastError: Int32 { errno }
  private func setLastError(_ code: Int32) { errno = code }
  private let kindMask = S_IFMT, regular = S_IFREG, directory = S_IFDIR
#endif
private func systemRead(_ a: Int32, _ b: UnsafeMutableRawPointer, _ c: Int) -> Int { read(a, b, c) }
