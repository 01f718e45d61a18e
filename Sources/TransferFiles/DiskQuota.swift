#if hasFeature(Embedded)
  import CSystem
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Disk quotas of users and groups. Project quotas are not queried by this type, because the free space of statvfs(3)
/// already includes them.
enum DiskQuota {
  /// The number of bytes that this process may still write to the file system of a folder under the quotas of its user
  /// and group. `.max` if there is no quota or the quota is unknown.
  static func room(_ folder: OpenFile) -> UInt64 {
    min(room(folder, ofUsers, geteuid()), room(folder, ofGroups, getegid()))
  }

  private static let ofUsers: Int32 = 0, ofGroups: Int32 = 1

  /// Queries one quota with Q_GETQUOTA (quotactl(2)), which returns a `struct if_dqblk` of 72 bytes. The hard limit is
  /// at offset 0, in blocks of 1 KiB; 0 means no limit. The number of used bytes is at offset 16.
  private static func room(_ folder: OpenFile, _ kind: Int32, _ id: UInt32) -> UInt64 {
    let getQuota: Int32 = 0x80_0007
    var answer = [UInt64](repeating: 0, count: 9)
    let isKnown = answer.withUnsafeMutableBytes { bytes in
      quotactl(folder.number, getQuota << 8 | kind, id, bytes.baseAddress!) == 0
    }
    guard isKnown, answer[0] != 0 else { return .max }
    let (limit, isMore) = answer[0].multipliedReportingOverflow(by: 1024)
    return isMore ? .max : limit - min(limit, answer[2])
  }
}

#if hasFeature(Embedded)
  private func quotactl(_ file: Int32, _ command: Int32, _ id: UInt32, _ answer: UnsafeMutableRawPointer) -> Int {
    csystem_quotactl_fd(file, command, id, answer)
  }
#elseif os(Linux)
  /// Calls quotactl_fd by its number. The C library has no function for that system call, and Swift does not import the
  /// variadic syscall(2).
  private func quotactl(_ file: Int32, _ command: Int32, _ id: UInt32, _ answer: UnsafeMutableRawPointer) -> Int {
    typealias Call = @convention(c) (Int, Int32, Int32, UInt32, UnsafeMutableRawPointer) -> Int
    guard let call = dlsym(nil, "syscall") else { return -1 }
    let quotactlFD = 443  // In Linux 5.14, on all architectures.
    return unsafeBitCast(call, to: Call.self)(quotactlFD, file, command, id, answer)
  }
#else
  private func quotactl(_ file: Int32, _ command: Int32, _ id: UInt32, _ answer: UnsafeMutableRawPointer) -> Int { -1 }
#endif
