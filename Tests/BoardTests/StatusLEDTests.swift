import Board
import CSystem
import Foundation
import Reactor
import Testing

@Suite struct StatusLEDTests {
  /// A directory with the files that the kernel shows for an LED whose trigger is `timer`.
  private let directory = FileManager.default.temporaryDirectory.appending(path: "led-\(UUID())")
  private let led: StatusLED

  init() throws {
    let files = directory.appending(path: "status")
    try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
    for file in ["trigger", "delay_on", "delay_off"] {
      try Data().write(to: files.appending(path: file))
    }
    led = StatusLED(name: "status", classDirectory: directory.path)
  }

  private func content(_ file: String) throws -> String {
    try String(decoding: Data(contentsOf: directory.appending(path: "status/\(file)")), as: UTF8.self)
  }

  @Test func `a neighbour turns the LED on`() throws {
    try led.show(.linked)
    #expect(try content("trigger") == "timer")
    #expect(try [content("delay_on"), content("delay_off")] == ["1000", "0"])
  }

  @Test func `a stopped daemon leaves the LED off`() throws {
    try led.show(.off)
    #expect(try [content("delay_on"), content("delay_off")] == ["0", "1000"])
  }

  @Test func `an active timer trigger is not set again`() throws {
    try Data("none kbd-capslock [timer] heartbeat\n".utf8).write(to: directory.appending(path: "status/trigger"))
    try led.show(.fault)
    #expect(try content("trigger") == "none kbd-capslock [timer] heartbeat\n")
  }

  @Test func `an available timer trigger is activated`() throws {
    try Data("none timer [oneshot]".utf8).write(to: directory.appending(path: "status/trigger"))
    try led.show(.fault)
    #expect(try content("trigger").hasPrefix("timer"))
  }

  @Test func `the files of the LED are given to a user`() throws {
    try led.prepare(for: getuid(), getgid())
    #expect(try content("trigger") == "timer")
    #expect(throws: SystemError(code: ENOENT)) {
      try StatusLED(name: "none", classDirectory: directory.path).prepare(for: 0, 0)
    }
  }

  @Test func `a fault makes the LED blink fast`() throws {
    try led.show(.fault)
    #expect(try content("trigger") == "timer")
    #expect(try [content("delay_on"), content("delay_off")] == ["100", "100"])
  }

  @Test func `an open join window makes the LED blink slowly`() throws {
    try led.show(.joining)
    #expect(try [content("delay_on"), content("delay_off")] == ["500", "500"])
  }

  @Test func `a box without links flashes the LED now and then`() throws {
    try led.show(.alone)
    #expect(try content("trigger") == "timer")
    #expect(try [content("delay_on"), content("delay_off")] == ["50", "1950"])
  }

  @Test func `an unchanged pattern is not written again`() throws {
    try led.show(.linked)
    try FileManager.default.removeItem(at: directory)
    try led.show(.linked)
    #expect(throws: SystemError(code: ENOENT)) { try led.show(.off) }
  }

  @Test func `a pattern that could not be written is tried again`() throws {
    let later = StatusLED(name: "later", classDirectory: directory.path)
    #expect(throws: SystemError(code: ENOENT)) { try later.show(.linked) }
    try FileManager.default.moveItem(
      at: directory.appending(path: "status"), to: directory.appending(path: "later"))
    try later.show(.linked)
    #expect(
      try String(decoding: Data(contentsOf: directory.appending(path: "later/delay_on")), as: UTF8.self) == "1000")
  }
}
