import Board
import CSystem
import Foundation
import Reactor
import Testing

/// The service manager's end of the notification socket.
private final class Manager {
  let path: String
  private let descriptor: CInt

  init(_ path: String) {
    self.path = path
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    #expect(withUnixAddress(path) { bind(descriptor, $0, $1) } == 0)
  }

  deinit {
    close(descriptor)
    if !path.hasPrefix("@") { unlink(path) }
  }

  /// The datagrams received so far.
  func heard() -> [String] {
    var all: [String] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
      all.append(String(decoding: buffer[..<count], as: UTF8.self))
    }
    return all
  }
}

@Suite struct ServiceManagerTests {
  private static var path: String {
    FileManager.default.temporaryDirectory.appending(path: "notify-\(UUID().uuidString.prefix(8))").path
  }

  @Test func `each state is sent as its own datagram`() throws {
    let manager = Manager(Self.path)
    let service = try #require(ServiceManager(socketPath: manager.path))
    service.ready()
    service.alive()
    service.reloading(microseconds: 17)
    service.stopping()
    #expect(manager.heard() == ["READY=1", "WATCHDOG=1", "RELOADING=1\nMONOTONIC_USEC=17", "STOPPING=1"])
  }

  @Test func `an unchanged status line is sent once`() throws {
    let manager = Manager(Self.path)
    let service = try #require(ServiceManager(socketPath: manager.path))
    for status in ["0 links", "0 links", "1 link", "0 links"] { service.show(status) }
    #expect(manager.heard() == ["STATUS=0 links", "STATUS=1 link", "STATUS=0 links"])
  }

  @Test func `a line feed in the status line does not start another assignment`() throws {
    let manager = Manager(Self.path)
    try #require(ServiceManager(socketPath: manager.path)).show("wifi: a\nMAINPID=1")
    #expect(manager.heard() == ["STATUS=wifi: a?MAINPID=1"])
  }

  @Test func `a socket in the abstract namespace is supported`() throws {
    let manager = Manager("@causeway-test-\(UUID())")
    try #require(ServiceManager(socketPath: manager.path)).ready()
    #expect(manager.heard() == ["READY=1"])
  }

  @Test func `a socket without a listener and a path that is too long are ignored`() throws {
    try #require(ServiceManager(socketPath: Self.path)).ready()
    try #require(ServiceManager(socketPath: "/" + String(repeating: "x", count: 200))).ready()
  }
}
