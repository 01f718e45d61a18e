import Foundation
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Discovery

@Suite struct SystemBusTests {
  private let root = FileManager.default.temporaryDirectory.appending(path: "bus-\(UUID())")
  private let loop: EventLoop

  private final class Attempts {
    var count = 0
    var bus: SystemBus?
  }

  init() throws {
    loop = try EventLoop()
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  private var path: String { root.appending(path: "dbus/socket").path }

  private func makeSocket() throws {
    try? FileManager.default.createDirectory(at: root.appending(path: "dbus"), withIntermediateDirectories: false)
    try? FileManager.default.removeItem(atPath: path)
    try Data().write(to: URL(filePath: path))
  }

  /// A system bus that refuses every attempt to connect.
  private func seek() -> Attempts {
    let attempts = Attempts()
    let bus = SystemBus(loop, address: "unix:path=\(path),guid=0") {
      attempts.count += 1
      attempts.bus?.refused()
    }
    attempts.bus = bus
    bus.seek()
    return attempts
  }

  @Test func `no connection is attempted while the bus is absent`() throws {
    let attempts = seek()
    defer { attempts.bus?.stop() }
    serve(loop, for: .milliseconds(400))
    #expect(attempts.count == 0)
  }

  @Test func `a bus that appears is tried at once, even if its directory was absent too`() throws {
    let attempts = seek()
    defer { attempts.bus?.stop() }
    try makeSocket()
    let began = monotonicNow()
    serve(loop) { attempts.count == 1 }
    #expect(attempts.count == 1)
    #expect(monotonicNow() - began < .seconds(10))
  }

  @Test func `a bus that refuses is tried again after growing pauses`() throws {
    try makeSocket()
    let attempts = seek()
    defer { attempts.bus?.stop() }
    let began = monotonicNow()
    serve(loop) { attempts.count == 3 }
    #expect(monotonicNow() - began >= .seconds(3))
  }

  @Test func `a new socket ends the pause, and other files beside it do not`() throws {
    try makeSocket()
    let attempts = seek()
    defer { attempts.bus?.stop() }
    serve(loop) { attempts.count == 2 }
    // The pause is 2 s by now, and a file with another name does not end it.
    try Data().write(to: root.appending(path: "dbus/other"))
    serve(loop, for: SystemBus.settleTime + .milliseconds(100))
    #expect(attempts.count == 2)
    let began = monotonicNow()
    try makeSocket()
    serve(loop) { attempts.count == 3 }
    #expect(monotonicNow() - began < .milliseconds(1500))
  }

  @Test func `a connected bus is not tried until it is needed again`() throws {
    try makeSocket()
    var attempts = 0
    var connected: () -> Void = {}
    let bus = SystemBus(loop, address: "unix:path=\(path)") {
      attempts += 1
      connected()
    }
    connected = { bus.connected() }
    bus.seek()
    try makeSocket()
    serve(loop, for: SystemBus.settleTime + .milliseconds(100))
    #expect(attempts == 1)
    bus.seek()
    #expect(attempts == 2)
    bus.stop()
  }
}
