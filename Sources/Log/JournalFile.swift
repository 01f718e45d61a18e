import CSystem
import Journal
import Primitives
import Reactor
import Text

/// The daemon's journal: a mapped file, open and locked for the lifetime of the process.
///
/// The address of the mapping is fixed. If the file is truncated, or the disk is full, the mapping remains valid
/// memory. `restore` creates a truncated or removed file again.
public final class JournalFile {
  public let journal: Journal
  /// The reason why records are kept only in memory, or nil if they are in the file.
  public private(set) var problem: String?
  private let path: String
  private let memory: UnsafeMutableRawBufferPointer
  private let filter: UnsafeMutablePointer<RepeatFilter>
  private var descriptor: CInt

  /// Maps the journal at `path` with a size of `sizeKiB`, and creates a missing directory. A readable journal of that
  /// size is continued. Any other file is replaced by a new file, so that readers can finish reading the old file. From
  /// now on, a trap is also recorded in this journal.
  ///
  /// If the file system has no space for the file, the journal is kept in memory, and `problem` has the reason. Throws
  /// if the directory cannot be created, if permission is denied, or if another daemon writes this journal.
  public init(path: String, sizeKiB: Int, level: Level) throws(AccessError) {
    let size = max(sizeKiB * 1024, JournalLayout.fileBytes(capacity: JournalLayout.capacityMin))
    makeDirectory(of: path)
    var descriptor = try Self.openLocked(path)
    var information = stat()
    if fstat(descriptor, &information) != 0 || information.st_size != 0 && information.st_size != size {
      unlink(path)
      close(descriptor)
      descriptor = try Self.openLocked(path)
    }
    problem = Self.reserve(size, descriptor, path)
    guard let mapped = map(problem == nil ? descriptor : -1, size, PROT_READ | PROT_WRITE) else {
      close(descriptor)
      throw .system("\(path): cannot be mapped")
    }
    self.path = path
    self.descriptor = descriptor
    memory = UnsafeMutableRawBufferPointer(start: mapped, count: size)
    csystem_keep_mapping(mapped, size)
    filter = .allocate(capacity: 1)
    filter.initialize(to: RepeatFilter(level: level, capacity: size / JournalLayout.recordBytes))
    journal = Journal(memory, level: level, wallOffset: wallClockOffset(), boot: machineBoot(), filter: filter)
    panicJournal = journal
  }

  deinit {
    panicJournal = .none
    csystem_keep_mapping(nil, 0)
    munmap(memory.baseAddress, memory.count)
    filter.deallocate()
    close(descriptor)
  }

  /// Checks that the file exists and has its size. If not, creates the file again with the contents of the memory. Call
  /// this function regularly. After a failure `problem` has the reason, and the next call tries again.
  public func restore(at now: Instant) {
    if problem == nil && isIntact { return }
    do throws(AccessError) {
      journal.restoreHeader(wallOffset: wallClockOffset(), boot: machineBoot())
      let isLost = csystem_mapping_is_lost()
      try replaceFile()
      problem = nil
      journal.record(.warning, .journalRestored, at: now, isLost ? 1 : 0)
    } catch {
      problem = error.text
    }
  }

  private var isIntact: Bool {
    var own = stat(), named = stat()
    return !csystem_mapping_is_lost() && fstat(descriptor, &own) == 0 && own.st_size == memory.count
      && stat(path, &named) == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev
  }

  private func replaceFile() throws(AccessError) {
    makeDirectory(of: path)
    var own = stat(), named = stat()
    // Another daemon may have created the file at the path. While that daemon runs, it locks the file, and `openLocked`
    // throws.
    if stat(path, &named) == 0,
      fstat(descriptor, &own) != 0 || named.st_ino != own.st_ino || named.st_dev != own.st_dev
    {
      close(try Self.openLocked(path))
    }
    // The rename is atomic, so a reader finds a complete journal at the path: the old or the new one.
    let temporary = path + ".new"
    unlink(temporary)
    let fresh = try Self.openLocked(temporary)
    do throws(AccessError) {
      try fill(fresh)
    } catch {
      unlink(temporary)
      close(fresh)
      throw error
    }
    close(descriptor)
    descriptor = fresh
    if rename(temporary, path) != 0 { throw .system(path) }
  }

  /// Copies the contents of the memory to a new file, and maps this file at the address of the memory.
  private func fill(_ fresh: CInt) throws(AccessError) {
    if let problem = Self.reserve(memory.count, fresh, path) { throw AccessError(problem) }
    guard let target = memory.baseAddress, let mapped = map(fresh, memory.count, PROT_READ | PROT_WRITE) else {
      throw .system("\(path): cannot be mapped")
    }
    // Copy by the processor, not by write(2). If the old file was truncated, the access to a missing page raises
    // SIGBUS, and the handler maps memory there.
    mapped.copyMemory(from: target, byteCount: memory.count)
    guard csystem_move_mapping(mapped, memory.count, target) else {
      let error = AccessError.system("\(path): cannot be mapped")
      munmap(mapped, memory.count)
      throw error
    }
    csystem_keep_mapping(target, memory.count)
  }

  /// Reserves blocks, not only the size, because a write to a mapped page raises SIGBUS when the file system is full.
  /// Returns the error, or nil.
  private static func reserve(_ size: Int, _ descriptor: CInt, _ path: String) -> String? {
    let reserved = posix_fallocate(descriptor, 0, off_t(size))
    if reserved == 0 { return nil }
    let reason = SystemError(code: reserved).text
    return "\(path): cannot reserve \(size) bytes: \(reason); free some, or set a smaller [journal] size"
  }

  private static func openLocked(_ path: String) throws(AccessError) -> CInt {
    let descriptor = csystem_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o640)
    if descriptor < 0 {
      throw .system(path, "; [node] runtime-directory must be a directory that this user may write to")
    }
    // The file's group must be able to read the log, whatever the umask is.
    _ = fchmod(descriptor, 0o640)
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      close(descriptor)
      throw AccessError("\(path): in use; another causeway runs with this runtime-directory: stop it first")
    }
    return descriptor
  }
}

/// A journal opened for reading, whether or not a daemon still writes it. The file is read with pread instead of a
/// mapping, because a mapping raises SIGBUS if the file is truncated.
public final class JournalMapping {
  private let reader: JournalReader
  private let descriptor: CInt
  /// A copy of the parts of the file that were read. `record` reads its record again each time.
  private let memory: UnsafeMutableRawBufferPointer
  private let inode: UInt64

  /// Opens the journal. Throws if the file is absent, if permission is denied, or if the file is not a journal of this
  /// version.
  public init(path: String) throws(AccessError) {
    let descriptor = csystem_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
    if descriptor < 0 {
      let absent = csystem_errno() == ENOENT
      throw .system(path, absent ? "; has “causeway run” been started with this runtime-directory?" : "")
    }
    let memory: UnsafeMutableRawBufferPointer
    do throws(AccessError) {
      var information = stat()
      guard fstat(descriptor, &information) == 0 else { throw .system(path) }
      if information.st_mode & mode_t(S_IFMT) != mode_t(S_IFREG) {
        throw AccessError("\(path): not a regular file")
      }
      let size = Int(information.st_size)
      if size == 0 { throw AccessError("\(path): empty; this is not a journal") }
      inode = UInt64(information.st_ino)
      // Map as much memory as the file has. Pages that are never written use no memory.
      guard let mapped = map(-1, size, PROT_READ | PROT_WRITE) else { throw .system("\(path): cannot be read") }
      memory = UnsafeMutableRawBufferPointer(start: mapped, count: size)
    } catch {
      close(descriptor)
      throw error
    }
    _ = pread(descriptor, memory.baseAddress, min(memory.count, JournalLayout.headerBytes), 0)
    do throws(JournalError) {
      reader = try JournalReader(UnsafeRawBufferPointer(memory))
    } catch {
      munmap(memory.baseAddress, memory.count)
      close(descriptor)
      throw AccessError("\(path): \(Self.text(of: error))")
    }
    self.descriptor = descriptor
    self.memory = memory
  }

  deinit {
    munmap(memory.baseAddress, memory.count)
    close(descriptor)
  }

  /// The sequence number of the newest record, or 0 if there is none.
  public var newest: UInt64 {
    read(0, JournalLayout.headerBytes)
    return reader.newest
  }

  /// The sequence number of the oldest record that was not overwritten.
  public var oldest: UInt64 {
    read(0, JournalLayout.headerBytes)
    return reader.oldest
  }

  /// The record with this sequence number, or nil if it was overwritten, is being written, was truncated or never
  /// existed.
  public func record(_ sequence: UInt64) -> JournalRecord? {
    guard let offset = reader.offset(of: sequence) else { return nil }
    // Read the record's mark (its first 8 bytes) again after the record. The mark shows whether the daemon overwrote
    // the record between the two reads (`JournalReader.record`).
    guard read(offset, JournalLayout.recordBytes), let record = reader.record(sequence), read(offset, 8) else {
      return nil
    }
    return reader.record(sequence) == nil ? nil : record
  }

  @discardableResult private func read(_ offset: Int, _ count: Int) -> Bool {
    guard offset + count <= memory.count else { return false }
    return pread(descriptor, memory.baseAddress! + offset, count, off_t(offset)) == count
  }

  /// Whether the daemon has replaced the file at `path`, so that this object reads the old file.
  public func isReplaced(at path: String) -> Bool {
    var information = stat()
    return stat(path, &information) == 0 && UInt64(information.st_ino) != inode
  }

  private static func text(of fault: JournalError) -> String {
    switch fault {
    case .truncated: "shorter than its header states; it was truncated, or is not a journal"
    case .foreign: "not a Causeway journal"
    case .version: "a journal of another version of Causeway; read it with the version that wrote it"
    case .corrupt: "its header is inconsistent; the journal is damaged"
    }
  }
}

/// Notifies the journal when the wall clock is set, so that later records are shown with the correct time.
public final class WallClockWatch: EventSource {
  private let loop: EventLoop
  private let journal: Journal
  private let descriptor: CInt

  /// Starts the watch. Throws the errors of timerfd_create and epoll_ctl.
  public init(_ loop: EventLoop, _ journal: Journal) throws(SystemError) {
    self.loop = loop
    self.journal = journal
    descriptor = timerfd_create(CLOCK_REALTIME, CInt(TFD_CLOEXEC | TFD_NONBLOCK))
    if descriptor < 0 { throw SystemError.last }
    arm()
    _ = try loop.add(descriptor, .read, .clock, self)
  }

  public func ready(_ events: UInt32) {
    // The descriptor becomes ready when the clock is set, and the read fails with ECANCELED (timerfd_create(2),
    // TFD_TIMER_CANCEL_ON_SET).
    var expirations: UInt64 = 0
    _ = read(descriptor, &expirations, 8)
    journal.wallClockStepped(offset: wallClockOffset(), at: loop.now)
    arm()
  }

  private func arm() {
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(Int32.max)
    let flags = CInt(TFD_TIMER_ABSTIME) | csystem_timer_cancel_on_set
    timerfd_settime(descriptor, flags, &setting, nil)
  }
}

extension JournalText {
  /// Creates a journal text from the start of a string, cut between characters.
  public init(_ text: String) {
    var bytes = Array(text.utf8.prefix(Self.byteCount))
    // Removes an incomplete character; continuation bytes are 0b10xxxxxx.
    if text.utf8.count > bytes.count, let next = text.utf8.dropFirst(bytes.count).first, next & 0xC0 == 0x80 {
      while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
    }
    self = bytes.withUnsafeBytes { JournalText($0) }
  }
}

/// Maps a complete file as shared memory and loads its pages. Maps anonymous memory if `descriptor` is -1. Returns nil
/// and sets errno on failure.
private func map(_ descriptor: CInt, _ size: Int, _ protection: CInt) -> UnsafeMutableRawPointer? {
  let flags = descriptor < 0 ? CInt(MAP_PRIVATE) | CInt(MAP_ANONYMOUS) : CInt(MAP_SHARED) | CInt(MAP_POPULATE)
  let mapped = mmap(nil, size, protection, flags, descriptor, 0)
  return mapped == UnsafeMutableRawPointer(bitPattern: -1) ? nil : mapped
}

/// The wall clock minus the monotonic clock, in nanoseconds.
func wallClockOffset() -> Int64 {
  var wall = timespec()
  clock_gettime(CLOCK_REALTIME, &wall)
  let nanoseconds = Int64(wall.tv_sec) &* 1_000_000_000 &+ Int64(wall.tv_nsec)
  return nanoseconds &- Int64(monotonicNow().nanoseconds)
}

/// The kernel's random id of this boot, or zero if it cannot be read.
private func machineBoot() -> MachineBoot {
  let descriptor = csystem_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0)
  guard descriptor >= 0 else { return MachineBoot(high: 0, low: 0) }
  defer { close(descriptor) }
  var text = [UInt8](repeating: 0, count: 64)
  let count = text.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
  var boot = MachineBoot(high: 0, low: 0)
  for byte in text[..<max(count, 0)] {
    guard let digit = hexDigit(byte) else { continue }
    boot.high = boot.high << 4 | boot.low >> 60
    boot.low = boot.low << 4 | UInt64(digit)
  }
  return boot
}

/// Creates the parent directory of the file, one level only.
private func makeDirectory(of path: String) {
  let bytes = Array(path.utf8)
  guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")), slash > 0 else { return }
  mkdir(String(decoding: bytes[..<slash], as: UTF8.self), 0o755)
}
