import Bearer
import CSystem
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

/// A wpa_supplicant that belongs to the test: a datagram socket that answers commands and sends events.
final class FakeSupplicant: EventSource {
  let path: String
  /// All commands received so far.
  private(set) var commands: [String] = []
  /// Returns the answer to a command. Nil means that the command gets no answer.
  var answer: (String) -> String? = { _ in "OK" }
  private let loop: EventLoop
  private var descriptor: CInt
  private var registration: Registration?
  private var client = sockaddr_un()
  private var clientLength: socklen_t = 0

  init(_ loop: EventLoop, _ path: String) throws {
    self.loop = loop
    self.path = path
    descriptor = socket(AF_UNIX, CInt(bitPattern: SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    try #require(descriptor >= 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    unlink(path)
    let bound = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0)
    registration = try loop.add(descriptor, .read, .diagnostics, self)
  }

  func ready(_ events: UInt32) {
    var buffer: [UInt8] = [UInt8](repeating: 0, count: 4096)
    while registration != nil {
      clientLength = socklen_t(MemoryLayout<sockaddr_un>.size)
      let count = withUnsafeMutablePointer(to: &client) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          recvfrom(descriptor, &buffer, buffer.count, 0, __SOCKADDR_ARG(__sockaddr__: $0), &clientLength)
        }
      }
      if count < 0 { return }
      let command = String(decoding: buffer[..<count], as: UTF8.self)
      commands.append(command)
      if let answer = answer(command) { say(answer + "\n") }
    }
  }

  /// Sends `text` to the client that sent the last command.
  func say(_ text: String) {
    let bytes = Array(text.utf8)
    _ = withUnsafePointer(to: client) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, bytes, bytes.count, 0, __CONST_SOCKADDR_ARG(__sockaddr__: $0), clientLength)
      }
    }
  }

  /// Closes the socket and leaves its file, as a killed wpa_supplicant does.
  func die() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    close(descriptor)
  }

  func count(_ prefix: String) -> Int { commands.filter { $0.hasPrefix(prefix) }.count }
}

/// A temporary directory that is removed with its test.
final class Scratch {
  let path: String
  init() throws {
    var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }
  deinit {
    if let directory = opendir(path) {
      while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
          String(cString: $0.baseAddress!.assumingMemoryBound(to: CChar.self))
        }
        unlink("\(path)/\(name)")
      }
      closedir(directory)
    }
    rmdir(path)
  }
}

/// Records what the radio reports to its delegate.
final class Recorder: BearerDelegate {
  var found: [Candidate] = []
  var lost: [Candidate] = []
  var reports: [(text: String, isFault: Bool)] = []

  func bearerOpened(_ stream: StreamHandoff) {}
  func bearerDialFailed(token: UInt32, reason: String) {}
  func bearerFound(_ candidate: Candidate) { found.append(candidate) }
  func bearerLost(_ candidate: Candidate) { lost.append(candidate) }
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) { reports.append((text, isFault)) }
}
