import CSystem

/// The small files of the state directory: read whole and bounded, written so that a power cut leaves
/// either the old or the new contents.
enum IdentityFiles {
  /// Larger than a chain of ten certificates in PEM.
  static let bytesMax = 16384

  /// Makes the directory if only its last component is missing.
  static func prepare(directory: String) throws(IdentityError) {
    var status = stat()
    if stat(directory, &status) == 0 {
      if status.st_mode & mode_t(S_IFMT) != mode_t(S_IFDIR) { throw .directory(path: directory, code: ENOTDIR) }
      return
    }
    if mkdir(directory, 0o700) != 0, csystem_errno() != EEXIST {
      throw .directory(path: directory, code: csystem_errno())
    }
  }

  /// The file's bytes, or nil when there is no such file. A `secret` file must not be open to group or others.
  static func read(_ path: String, secret: Bool = false) throws(IdentityError) -> [UInt8]? {
    let descriptor = csystem_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
    if descriptor < 0 {
      if csystem_errno() == ENOENT { return nil }
      throw .unreadable(path: path, code: csystem_errno())
    }
    defer { close(descriptor) }
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw .unreadable(path: path, code: csystem_errno()) }
    if status.st_mode & mode_t(S_IFMT) != mode_t(S_IFREG) { throw .unreadable(path: path, code: EINVAL) }
    if secret, status.st_mode & 0o077 != 0 {
      throw .keyOpenToOthers(path: path, mode: status.st_mode & 0o777)
    }
    if status.st_size > bytesMax { throw .tooLarge(path: path) }

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

  /// Replaces the file: a temporary file beside it, synchronised, renamed over it, directory synchronised.
  static func write(_ bytes: [UInt8], to name: String, in directory: String, mode: mode_t) throws(IdentityError) {
    let path = directory + "/" + name
    let temporary = path + ".new"
    unlink(temporary)
    let descriptor = csystem_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    if descriptor < 0 { throw .unwritable(path: temporary, code: csystem_errno()) }
    let failure = writeAll(bytes, descriptor)
    close(descriptor)
    if failure != 0 {
      unlink(temporary)
      throw .unwritable(path: temporary, code: failure)
    }
    if rename(temporary, path) != 0 {
      let code = csystem_errno()
      unlink(temporary)
      throw .unwritable(path: path, code: code)
    }
    let parent = csystem_open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    if parent < 0 { throw .unwritable(path: directory, code: csystem_errno()) }
    defer { close(parent) }
    if fsync(parent) != 0 { throw .unwritable(path: directory, code: csystem_errno()) }
  }

  /// Zero, or the errno of the step that failed.
  private static func writeAll(_ bytes: [UInt8], _ descriptor: Int32) -> Int32 {
    var done = 0
    while done < bytes.count {
      let n = bytes.withUnsafeBytes { CSystem.write(descriptor, $0.baseAddress! + done, $0.count - done) }
      if n >= 0 {
        done += n
      } else if csystem_errno() != EINTR {
        return csystem_errno()
      }
    }
    return fsync(descriptor) == 0 ? 0 : csystem_errno()
  }
}
