import CSystem
import FileSupport
import Testing

@testable import SecureTransport

/// A running openssl process. The input of the process is a FIFO, and its output is collected in a file.
final class OpenSSL {
  private let scratch: Scratch
  private let process: pid_t
  private let input: Int32

  init(_ scratch: Scratch, _ arguments: String) throws {
    self.scratch = scratch
    unlink(scratch.file("input"))
    try #require(mkfifo(scratch.file("input"), 0o600) == 0)
    input = csystem_open(scratch.file("input"), O_RDWR | O_CLOEXEC, 0)
    let started = shell("cd \(scratch.path) && { openssl \(arguments) < input > output 2>&1 & echo $!; }")
    process = try #require(pid_t(started.output.dropLast()))
  }

  var output: String { String(decoding: scratch.bytes("output") ?? [], as: UTF8.self) }
  func type(_ text: String) { _ = CSystem.write(input, text, text.utf8.count) }

  /// Waits until openssl has printed `text`. Returns false after `waitSecondsMax`. openssl reports about a connection
  /// after the end of the connection.
  func prints(_ text: String) -> Bool {
    for _ in 0..<100 * waitSecondsMax {
      if output.contains(text) { return true }
      usleep(10_000)
    }
    return false
  }

  /// The port on which openssl listens, as reported by openssl.
  func port() throws -> UInt16 {
    for _ in 0..<100 * waitSecondsMax {
      if let line = output.split(separator: "\n").first(where: { $0.hasPrefix("ACCEPT ") }),
        let port = line.split(separator: ":").last.flatMap({ UInt16($0) })
      {
        return port
      }
      usleep(10_000)
    }
    return try #require(nil, "openssl s_server does not listen: \(output)")
  }

  /// Sends SIGKILL, because openssl inherits from the test runner that SIGTERM is blocked.
  func stop() { kill(process, SIGKILL) }
  deinit {
    stop()
    close(input)
  }
}

func loopback(port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return address
}

func connect(port: UInt16) throws -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = loopback(port: port)
  let code = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16)
    }
  }
  try #require(code == 0)
  return descriptor
}

final class Listener {
  let descriptor: Int32
  let port: UInt16

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(port: 0)
    var length = socklen_t(16)
    let descriptor = descriptor
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16) | listen(descriptor, 1)
          | getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &length)
      }
    }
    try #require(code == 0)
    port = UInt16(bigEndian: address.sin_port)
  }
  deinit { close(descriptor) }

  func accept() throws -> Int32 {
    var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    try #require(poll(&wait, 1, CInt(1000 * waitSecondsMax)) == 1, "openssl does not connect")
    return CSystem.accept(descriptor, __SOCKADDR_ARG(__sockaddr__: nil), nil)
  }
}

/// Moves bytes between a stream and the stream's socket.
final class Driver {
  private let end: End
  private let descriptor: Int32

  init(_ end: End, _ descriptor: Int32) {
    self.end = end
    self.descriptor = descriptor
  }
  deinit { close(descriptor) }

  /// Runs until the condition holds, the stream has ended, or `waitSecondsMax` have passed.
  func run(until isDone: () -> Bool) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let deadline = monotonicSeconds() + waitSecondsMax
    while monotonicSeconds() < deadline {
      while !end.stream.outgoing.isEmpty {
        let bytes = end.stream.outgoing
        let n = send(descriptor, bytes.baseAddress!, bytes.count, Int32(MSG_NOSIGNAL))
        if n <= 0 { return }
        end.stream.consume(n)
      }
      if isDone() { return }
      if case .closed = end.stream.state { return }
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&wait, 1, 20) == 1 {
        let n = recv(descriptor, &buffer, buffer.count, 0)
        if n <= 0 {
          end.stream.receiveEnd()
          return
        }
        end.receive(Array(buffer[..<n]))
      }
    }
  }
}

/// The limit of each wait, in seconds. A passing test waits no longer than necessary. The limit is long, because other
/// work on the machine can delay openssl by seconds.
let waitSecondsMax = 30

func monotonicSeconds() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec
}
