#if hasFeature(Embedded)
  import CSystem
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A child process that is started without a shell. The standard input and output of the process are /dev/null, and its
/// standard error is written to a file. A port to another operating system changes this file and `Files`.
final class ChildProcess {
  private let number: pid_t
  private(set) var hasEnded = false

  /// The environment variables passed to the program: paths, proxies and trusted certificates.
  private static let passedOn = [
    "PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
    "NO_PROXY",
    "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR",
  ]

  /// Starts the program with this name from PATH. `complaints` is the path of the file for standard error. Throws
  /// ENOENT if PATH has no program with this name.
  init(_ program: String, _ arguments: [String], complaints: String) throws(FileError) {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, complaints, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The child has its own process group, so that a signal of the terminal does not end it. The child does not inherit
    // the set of signals that this process blocks.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETPGROUP))
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    var environment =
      Self.passedOn.compactMap { name in
        getenv(name).flatMap { strdup("\(name)=\(String(cString: $0))") }
      } as [UnsafeMutablePointer<CChar>?] + [nil]
    defer { for word in words + environment { free(word) } }
    var child: pid_t = 0
    let failure = posix_spawnp(&child, program, &actions, &attributes, &words, &environment)
    guard failure == 0 else { throw FileError(failure) }
    number = child
  }

  deinit { kill() }

  /// Returns the exit code of the process. If a signal killed the process, returns 128 plus the signal number. While
  /// the process runs, waits for `milliseconds` and returns nil.
  func wait(milliseconds: Int32) -> Int32? {
    if hasEnded { return nil }
    var status: Int32 = 0
    if waitpid(number, &status, WNOHANG) == 0 {
      poll(nil, 0, milliseconds)
      return nil
    }
    hasEnded = true
    let signal = status & 0x7f
    return signal == 0 ? status >> 8 & 0xff : 128 + signal
  }

  /// Kills the process and waits for its end.
  func kill() {
    if hasEnded { return }
    _ = systemKill(number, SIGKILL)
    var status: Int32 = 0
    while waitpid(number, &status, 0) < 0 && lastError == EINTR {}
    hasEnded = true
  }
}

/// A private folder for data that is stored in a file before being offered. The folder and its content are removed when
/// the last reference to this object is released.
final class SpoolFolder: Sendable {
  let path: String

  /// Creates the folder in `parent`. If `parent` is nil, the folder is created in TMPDIR; without TMPDIR in /var/tmp,
  /// which unlike /tmp is usually on a disk.
  init(in parent: String? = nil) throws(FileError) {
    let directory = parent ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
    var template = Array("\(directory)/causeway-XXXXXX".utf8) + [0]
    let isMade = template.withUnsafeMutableBytes { mkdtemp($0.baseAddress!.assumingMemoryBound(to: CChar.self)) != nil }
    guard isMade else { throw FileError(saying: "\(directory): \(String(cString: strerror(lastError)))") }
    path = String(decoding: template.dropLast(), as: UTF8.self)
  }

  deinit {
    let bytes = Array(path.utf8)
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")),
      let parent = try? Files.folder(path: String(decoding: bytes[...slash], as: UTF8.self))
    else { return }
    try? Files.removeAll(Array(bytes[(slash + 1)...]), in: parent)
  }
}

// `lastError` replaces a macro of C. `systemKill` calls kill(2), whose name the member `kill` hides.
#if hasFeature(Embedded)
  private var lastError: Int32 { csystem_errno() }
#else
  private var lastError: Int32 { errno }
#endif
private func systemKill(_ process: pid_t, _ signal: Int32) -> Int32 { kill(process, signal) }
