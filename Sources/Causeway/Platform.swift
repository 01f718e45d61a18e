#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// All system calls of the library. A port to another system changes only this file. The file does not need Foundation.
enum Platform {
  /// The socket path of a daemon with the default configuration.
  static let socketPath = "/run/causeway/api.sock"

  #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
  #else
    private static let streamType = SOCK_STREAM
  #endif
  #if canImport(Darwin)
    private static let sendFlags: Int32 = 0
  #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
  #endif

  /// Connects to a Unix socket. The descriptor is non-blocking and close-on-exec.
  static func connect(_ path: String) throws(CausewayError) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8), room = MemoryLayout.size(ofValue: address.sun_path)
    guard bytes.count < room, !bytes.contains(0) else {
      throw CausewayError(.invalid, "the path of a socket has at most \(room - 1) bytes")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let descriptor = socket(AF_UNIX, streamType, 0)
    guard descriptor >= 0 else { throw CausewayError(.noDaemon, errorText(errno)) }
    // The peer is on this machine, so the kernel accepts or refuses the connection at once.
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        retrying { systemConnect(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size)) }
      }
    }
    guard result == 0 else {
      let text = "\(path): \(errorText(errno)); check that the daemon runs and that this user may use it"
      close(descriptor)
      throw CausewayError(.noDaemon, text)
    }
    prepare(descriptor)
    return descriptor
  }

  /// Makes a descriptor non-blocking and close-on-exec, and suppresses SIGPIPE.
  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    #if canImport(Darwin)
      var on: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
  }

  /// A pipe that wakes a waiting thread. The thread polls the read end `listener`, and `ring` writes to the write end
  /// `rope`.
  static func bell() throws(CausewayError) -> (listener: Int32, rope: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw CausewayError(.noDaemon, errorText(errno)) }
    for end in ends { prepare(end) }
    return (ends[0], ends[1])
  }

  static func ring(_ rope: Int32) {
    var byte: UInt8 = 1
    // A full pipe wakes the thread too, so the result is ignored.
    _ = retrying { systemWrite(rope, &byte, 1) }
  }

  static func silence(_ listener: Int32) {
    var bytes = [UInt8](repeating: 0, count: 64)
    while systemRead(listener, &bytes, bytes.count) == bytes.count {}
  }

  /// Waits without a timeout until the connection is readable or writable, or the bell rings.
  static func wait(_ stream: Int32, wantsWrite: Bool, _ listener: Int32) -> (canRead: Bool, canWrite: Bool) {
    var entries = [
      pollfd(fd: stream, events: Int16(POLLIN) | (wantsWrite ? Int16(POLLOUT) : 0), revents: 0),
      pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&entries, nfds_t(entries.count), -1) > 0 else { return (false, false) }
    if entries[1].revents != 0 { silence(listener) }
    let ended = Int16(POLLHUP) | Int16(POLLERR)
    return (
      entries[0].revents & (Int16(POLLIN) | ended) != 0,
      wantsWrite && entries[0].revents & (Int16(POLLOUT) | ended) != 0
    )
  }

  /// Reads without blocking. Returns the number of bytes read, 0 at the end of the stream, or nil if no bytes are
  /// available.
  static func read(_ stream: Int32, into buffer: inout [UInt8]) -> Int? {
    let count = retrying { systemRead(stream, &buffer, buffer.count) }
    return count >= 0 ? count : errno == EAGAIN ? nil : 0
  }

  /// Writes without blocking. Returns the number of bytes written, 0 if the socket is full, or nil if the peer has
  /// closed the connection.
  static func write(_ stream: Int32, _ bytes: ArraySlice<UInt8>) -> Int? {
    let count = bytes.withUnsafeBytes { bytes in
      retrying { send(stream, bytes.baseAddress, bytes.count, sendFlags) }
    }
    return count >= 0 ? count : errno == EAGAIN ? 0 : nil
  }

  /// Reads standard input and blocks until bytes are available. Returns the number of bytes read, or 0 at the end of
  /// the input.
  static func readInput(_ buffer: inout [UInt8]) -> Int { max(0, retrying { systemRead(0, &buffer, buffer.count) }) }

  static func close(_ descriptor: Int32) { _ = systemClose(descriptor) }

  /// Runs `body` on a new detached thread, so that no task of the application blocks in a system call. Returns false if
  /// the system starts no more threads.
  static func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    let box = Unmanaged.passRetained(ThreadBody(body))
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    #if canImport(Darwin)
      var thread: pthread_t?
      let result = pthread_create(&thread, &attributes, { threadMain($0) }, box.toOpaque())
    #else
      var thread = pthread_t()
      let result = pthread_create(&thread, &attributes, { threadMain($0!) }, box.toOpaque())
    #endif
    if result != 0 { box.release() }
    return result == 0
  }

  private static func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// glibc declares the address of `connect` as a pointer or, with _GNU_SOURCE, as a union of pointers. Both types that
/// glibc declares have the size of one pointer, so the bit cast is valid.
private func call<Pointer>(
  _ function: (Int32, Pointer, socklen_t) -> Int32, _ a: Int32, _ b: UnsafePointer<sockaddr>, _ c: socklen_t
) -> Int32 {
  function(a, unsafeBitCast(b, to: Pointer.self), c)
}

private final class ThreadBody: Sendable {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func threadMain(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().body()
  return nil
}

private func retrying<Value: SignedInteger>(_ call: () -> Value) -> Value {
  var result = call()
  while result == -1 && errno == EINTR { result = call() }
  return result
}

// System calls whose names are shadowed by members of `Platform`.
private func systemConnect(_ a: Int32, _ b: UnsafePointer<sockaddr>, _ c: socklen_t) -> Int32 {
  call(connect, a, b, c)
}
private func systemRead(_ a: Int32, _ b: UnsafeMutableRawPointer, _ c: Int) -> Int { read(a, b, c) }
private func systemWrite(_ a: Int32, _ b: UnsafeRawPointer, _ c: Int) -> Int { write(a, b, c) }
private func systemClose(_ a: Int32) -> Int32 { close(a) }
