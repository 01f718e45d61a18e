import Foundation
import Testing

@testable import Bearer

@Suite struct RadioObstacleTests {
  private let radio = FileManager.default.temporaryDirectory.appending(path: "radio-\(UUID())")

  private func makeSwitch(_ name: String, soft: String, hard: String) throws {
    let folder = radio.appending(path: name)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data("\(soft)\n".utf8).write(to: folder.appending(path: "soft"))
    try Data("\(hard)\n".utf8).write(to: folder.appending(path: "hard"))
  }

  @Test func `a software block and a hardware switch are distinguished`() throws {
    try makeSwitch("rfkill3", soft: "0", hard: "0")
    #expect(RadioObstacle.block(of: radio.path) == nil)
    try makeSwitch("rfkill3", soft: "1", hard: "0")
    #expect(RadioObstacle.block(of: radio.path) == .blocked)
    try makeSwitch("rfkill3", soft: "1", hard: "1")
    #expect(RadioObstacle.block(of: radio.path) == .switchedOff)
  }

  @Test func `a radio without an rfkill switch has no obstacle`() throws {
    try makeSwitch("power", soft: "1", hard: "1")
    #expect(RadioObstacle.block(of: radio.path) == nil)
    #expect(RadioObstacle.block(of: "/nonexistent") == nil)
  }

  @Test func `each obstacle is one line with a remedy`() {
    #expect(RadioObstacle.blocked.text("hci0", type: "bluetooth") == "hci0 is blocked: run `rfkill unblock bluetooth`")
    #expect(
      RadioObstacle.switchedOff.text("wlan0", type: "wlan")
        == "wlan0 is off by a hardware switch (rfkill): turn it on")
    #expect(
      RadioObstacle.absent.text("wlan0", type: "wlan")
        == "no interface wlan0: is the radio plugged in? (it is used once present)")
  }
}
