import CMbedTLS
import CSystem

/// The directory of the persistent state: the node's key, and the state files of other modules.
///
/// A file is read completely and with a size limit. Writing is atomic: a power cut leaves either the old or the new
/// contents. A temporary file is written and synchronised, then renamed over the old file, and the directory is
/// synchronised. The replaced file remains as `NAME.old`, in case the file system loses the new file in spite of these
/// steps.
public final class StateDirectory {
  public let path: String
  /// For tests only: the number of system calls of writes that still succeed. Later calls fail with EIO, as if the
  /// process had been killed.
  var stepsLeft = CInt.max
  private var lockDescriptor: CInt = -1

  /// Creates the directory (mode 0700) if only the last component of its path is missing.
  public init(_ path: String) throws(IdentityError) {
    self.path = path
    var status = stat()
    if stat(path, &status) == 0 {
      if status.st_mode & mode_t(S_IFMT) != mode_t(S_IFDIR) { throw .directory(path: path, code: ENOTDIR) }
      return
    }
    if mkdir(path, 0o700) != 0, csystem_errno() != EEXIST { throw .directory(path: path, code: csystem_errno()) }
  }

  deinit { if lockDescriptor >= 0 { close(lockDescriptor) } }

  /// Locks the directory while this object exists, so that this process is the only writer. Returns false if another
  /// process has locked the directory.
  public func lock() throws(IdentityError) -> Bool {
    if lockDescriptor >= 0 { return true }
    let descriptor = csystem_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    if descriptor < 0 { throw .directory(path: path, code: csystem_errno()) }
    if flock(descriptor, CInt(LOCK_EX | LOCK_NB)) != 0 {
      let code = csystem_errno()
      close(descriptor)
      if code == EWOULDBLOCK { return false }
      throw .directory(path: path, code: code)
    }
    lockDescriptor = descriptor
    return true
  }

  public func file(_ name: String) -> String { path + "/" + name }

  /// Whether a directory entry with this name exists. A symbolic link whose target is missing also exists in this
  /// sense.
  public func has(_ name: String) -> Bool {
    var status = stat()
    return lstat(file(name), &status) == 0
  }

  /// The bytes of a file, or nil if the file does not exist. A `secret` file must not be accessible to group or others.
  public func read(_ name: String, bytesMax: Int, secret: Bool = false) throws(IdentityError) -> [UInt8]? {
    try readFile(file(name), bytesMax: bytesMax, secret: secret)
  }

  /// Replaces the file `name`. The previous contents remain as `NAME.old`.
  public func write(_ bytes: [UInt8], to name: String, mode: mode_t) throws(IdentityError) {
    let code = bytes.withUnsafeBytes { csystem_replace_file(path, name, $0.baseAddress, $0.count, mode, &stepsLeft) }
    if code != 0 { throw .unwritable(path: file(name), code: code) }
  }
}

/// The bytes of a file, or nil if the file does not exist. Throws if the file is unreadable, is a symbolic link whose
/// target is missing, or is not a regular file. Also throws if the file has more than `bytesMax` bytes, or if a
/// `secret` file is accessible to group or others.
public func readFile(_ path: String, bytesMax: Int, secret: Bool = false) throws(IdentityError) -> [UInt8]? {
  let descriptor = csystem_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
  if descriptor < 0 {
    let code = csystem_errno()
    if code != ENOENT { throw .unreadable(path: path, code: code) }
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & mode_t(S_IFMT) == mode_t(S_IFLNK) {
      throw .deadLink(path: path)
    }
    return nil
  }
  defer { close(descriptor) }
  var status = stat()
  if fstat(descriptor, &status) != 0 { throw .unreadable(path: path, code: csystem_errno()) }
  if status.st_mode & mode_t(S_IFMT) != mode_t(S_IFREG) { throw .notAFile(path: path) }
  if secret, status.st_mode & 0o077 != 0 { throw .keyOpenToOthers(path: path, mode: status.st_mode & 0o777) }
  if status.st_size > bytesMax { throw .tooLarge(path: path, bytesMax: bytesMax) }

  var bytes = [UInt8](repeating: 0, count: bytesMax)
  var count = 0
  while count < bytes.count {
    let n = bytes.withUnsafeMutableBytes { CSystem.read(descriptor, $0.baseAddress! + count, $0.count - count) }
    if n > 0 {
      count += n
    } else if n == 0 {
      break
    } else if csystem_errno() != EINTR {
      throw .unreadable(path: path, code: csystem_errno())
    }
  }
  bytes.removeLast(bytes.count - count)
  return bytes
}

extension StateDirectory {
  /// The result of reading a file with a checksum.
  public enum Checked: Equatable {
    /// The file never existed.
    case absent
    case current([UInt8])
    /// The newest generation is damaged or missing, and the value is the contents of the previous generation.
    case previous([UInt8])
    /// The file exists or existed, but neither generation is readable.
    case lost
  }

  /// The number of bytes after the contents of a checksummed file: its SHA-256.
  static let checksumBytes = 32

  /// Replaces the file by `bytes` and their SHA-256. The previous contents remain as `NAME.old`.
  public func writeChecked(_ bytes: [UInt8], to name: String) throws(IdentityError) {
    try write(bytes + sha256(bytes), to: name, mode: Self.checkedMode)
  }

  static let checkedMode: mode_t = 0o600

  /// The contents of a file that `writeChecked` wrote, or of the previous generation of the file. A generation whose
  /// checksum is wrong is damaged.
  public func readChecked(_ name: String, bytesMax: Int) -> Checked {
    var wasThere = false
    for candidate in [name, name + ".old"] {
      do throws(IdentityError) {
        guard let bytes = try read(candidate, bytesMax: bytesMax + Self.checksumBytes) else { continue }
        wasThere = true
        let contents = Array(bytes.dropLast(Self.checksumBytes))
        guard bytes.count >= Self.checksumBytes, bytes.suffix(Self.checksumBytes).elementsEqual(sha256(contents)) else {
          continue
        }
        return candidate.utf8.count == name.utf8.count ? .current(contents) : .previous(contents)
      } catch {
        wasThere = true
      }
    }
    return wasThere ? .lost : .absent
  }
}

/// The SHA-256 (FIPS 180-4) of the bytes: 32 bytes.
public func sha256(_ bytes: [UInt8]) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: 32)
  // Software SHA-256 over memory cannot fail.
  mbedtls_sha256(bytes, bytes.count, &digest, 0)
  return digest
}
