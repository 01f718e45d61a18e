import CSystem
import Journal
import Primitives
import Reactor

/// A failed access to a file or socket, ready to be shown.
public struct DiagnosticsError: Error {
  /// One line: what was wrong, and what to do.
  public let text: String
  public init(_ text: String) { self.text = text }

  static func system(_ what: String, _ advice: String = "") -> DiagnosticsError {
    DiagnosticsError("\(what): \(SystemError.last.text)\(advice)")
  }
}

/// The daemon's journal: a mapped file, kept open and locked for as long as the process lives.
public final class JournalFile {
  public let journal: Journal
  private let descriptor: CInt
  private let memory: UnsafeMutableRawBufferPointer

  /// Map the journal at `path`, `sizeKiB` large. A readable journal of that size is continued; anything else
  /// is replaced by a new file, so that whoever reads the old one keeps it. The directory is made if it is
  /// missing. Afterwards `panic` writes here too.
  /// Errors: no such directory, no space, no permission, or another daemon writes this journal.
  public init(path: String, sizeKiB: Int, level: Level) throws(DiagnosticsError) {
    let size = max(sizeKiB * 1024, JournalLayout.fileBytes(capacity: JournalLayout.capacityMin))
    makeDirectory(of: path)
    var descriptor = try Self.openLocked(path)
    var information = stat()
    if fstat(descriptor, &information) != 0 || information.st_size != 0 && information.st_size != size {
      unlink(path)
      close(descriptor)
      descriptor = try Self.openLocked(path)
    }
    // Reserved, not only announced: writing to a mapped page that a full file system cannot give kills.
    let reserved = posix_fallocate(descriptor, 0, off_t(size))
    if reserved != 0 {
      close(descriptor)
      let reason = SystemError(code: reserved).text
      throw DiagnosticsError(
        "\(path): cannot reserve \(size) bytes: \(reason); free some, or set a smaller [journal] size")
    }
    guard let mapped = map(descriptor, size, PROT_READ | PROT_WRITE) else {
      close(descriptor)
      throw .system("\(path): cannot be mapped")
    }
    self.descriptor = descriptor
    memory = UnsafeMutableRawBufferPointer(start: mapped, count: size)
    journal = Journal(memory, level: level, wallOffset: wallClockOffset(), boot: machineBoot())
    panicJournal = journal
  }

  deinit {
    panicJournal = .none
    munmap(memory.baseAddress, memory.count)
    close(descriptor)
  }

  private static func openLocked(_ path: String) throws(DiagnosticsError) -> CInt {
    let descriptor = csystem_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o640)
    if descriptor < 0 {
      throw .system(path, "; [node] runtime-directory must be a directory that this user may write to")
    }
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      close(descriptor)
      throw DiagnosticsError("\(path): in use; another causeway runs with this runtime-directory: stop it first")
    }
    return descriptor
  }
}

/// A journal mapped to be read, whoever writes it, or wrote it.
public final class JournalMapping {
  private let reader: JournalReader
  private let memory: UnsafeRawBufferPointer
  private let inode: UInt64

  /// Errors: absent, not permitted, or not a journal of this version.
  public init(path: String) throws(DiagnosticsError) {
    let descriptor = csystem_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
    if descriptor < 0 {
      let absent = csystem_errno() == ENOENT
      throw .system(path, absent ? "; has “causeway run” been started with this runtime-directory?" : "")
    }
    defer { close(descriptor) }
    var information = stat()
    guard fstat(descriptor, &information) == 0 else { throw .system(path) }
    if information.st_mode & mode_t(S_IFMT) != mode_t(S_IFREG) { throw DiagnosticsError("\(path): not a regular file") }
    let size = Int(information.st_size)
    if size == 0 { throw DiagnosticsError("\(path): empty; this is not a journal") }
    guard let mapped = map(descriptor, size, PROT_READ) else { throw .system("\(path): cannot be mapped") }
    let memory = UnsafeRawBufferPointer(start: mapped, count: size)
    do throws(JournalFault) {
      reader = try JournalReader(memory)
    } catch {
      munmap(mapped, size)
      throw DiagnosticsError("\(path): \(Self.text(of: error))")
    }
    self.memory = memory
    inode = UInt64(information.st_ino)
  }

  deinit { munmap(UnsafeMutableRawPointer(mutating: memory.baseAddress), memory.count) }

  /// See `JournalReader`; the mapping is there for as long as this object.
  public var newest: UInt64 { withExtendedLifetime(self) { reader.newest } }
  public var oldest: UInt64 { withExtendedLifetime(self) { reader.oldest } }
  public func record(_ sequence: UInt64) -> JournalRecord? { withExtendedLifetime(self) { reader.record(sequence) } }

  /// Whether `path` has become another file since: the daemon was started with another size.
  public func isReplaced(at path: String) -> Bool {
    var information = stat()
    return stat(path, &information) == 0 && UInt64(information.st_ino) != inode
  }

  private static func text(of fault: JournalFault) -> String {
    switch fault {
    case .truncated: "shorter than its header says; it was cut, or is not a journal"
    case .foreign: "not a Causeway journal"
    case .version: "a journal of another version of Causeway; read it with the version that wrote it"
    case .corrupt: "its header contradicts itself; the journal is damaged"
    }
  }
}

/// Tells the journal when somebody sets the wall clock, so that the times it shows stay right.
public final class WallClockWatch: EventSource {
  private let loop: EventLoop
  private let journal: Journal
  private let descriptor: CInt

  /// Errors: timerfd_create's and epoll_ctl's.
  public init(_ loop: EventLoop, _ journal: Journal) throws(SystemError) {
    self.loop = loop
    self.journal = journal
    descriptor = timerfd_create(CLOCK_REALTIME, CInt(TFD_CLOEXEC | TFD_NONBLOCK))
    if descriptor < 0 { throw SystemError.last }
    arm()
    _ = try loop.add(descriptor, .read, .clock, self)
  }

  public func ready(_ events: UInt32) {
    // ECANCELED says that the clock was set (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
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
  /// The start of a text, at a character's end.
  public init(_ text: String) {
    var bytes = Array(text.utf8.prefix(Self.byteCount))
    // A cut character is left out: its bytes after the first are 0b10xxxxxx.
    if text.utf8.count > bytes.count, let next = text.utf8.dropFirst(bytes.count).first, next & 0xC0 == 0x80 {
      while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
    }
    self = bytes.withUnsafeBytes { JournalText($0) }
  }
}

/// A shared mapping of a whole file, its pages at hand; nil with errno set.
private func map(_ descriptor: CInt, _ size: Int, _ protection: CInt) -> UnsafeMutableRawPointer? {
  let mapped = mmap(nil, size, protection, CInt(MAP_SHARED) | CInt(MAP_POPULATE), descriptor, 0)
  return mapped == UnsafeMutableRawPointer(bitPattern: -1) ? nil : mapped
}

/// Wall clock minus monotonic clock, in nanoseconds.
func wallClockOffset() -> Int64 {
  var wall = timespec()
  clock_gettime(CLOCK_REALTIME, &wall)
  let nanoseconds = Int64(wall.tv_sec) &* 1_000_000_000 &+ Int64(wall.tv_nsec)
  return nanoseconds &- Int64(monotonicNow().nanoseconds)
}

/// The kernel's random id of this boot; zero where it cannot be read.
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

/// The last component's parent, one level deep; whoever needs more made it by hand.
private func makeDirectory(of path: String) {
  let bytes = Array(path.utf8)
  guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")), slash > 0 else { return }
  mkdir(String(decoding: bytes[..<slash], as: UTF8.self), 0o755)
}
