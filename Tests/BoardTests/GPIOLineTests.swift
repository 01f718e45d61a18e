@testable import Board
import CSystem
import Foundation
import Reactor
import Testing

@Suite struct GPIOLineTests {
  private let directory = FileManager.default.temporaryDirectory.appending(path: "gpio-\(UUID())")
  private let pin = GPIOPin(chip: "pinctrl-bcm2711", line: "17")

  init() throws { try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true) }

  @Test func `the error on a board without GPIO chips states that none is present`() {
    #expect(fault() == "there is no GPIO chip pinctrl-bcm2711; none is present: load its driver, or remove the key")
  }

  @Test func `a file that is no chip is skipped`() throws {
    try Data().write(to: directory.appending(path: "gpiochip0"))
    #expect(fault() == "there is no GPIO chip pinctrl-bcm2711; none is present: load its driver, or remove the key")
  }

  private func fault() -> String? {
    do throws(GPIOError) {
      _ = try GPIOLine(pin, in: directory.path)
      return nil
    } catch { return error.line }
  }

  @Test func `each error contains a remedy`() {
    #expect(
      GPIOError.noChip(pin, others: " gpio-sim").line == "there is no GPIO chip pinctrl-bcm2711; name one of: gpio-sim")
    #expect(GPIOError.noLine(pin).line == "GPIO chip pinctrl-bcm2711 has no line 17; list its lines with “gpioinfo”")
    #expect(
      GPIOError.busy(pin, consumer: "spi0 CS0").line
        == "pinctrl-bcm2711:17 is in use by “spi0 CS0”; free it, or set another line")
    #expect(GPIOError.failed(pin, SystemError(code: EIO)).line == "pinctrl-bcm2711:17: Input/output error")
  }

  @Test func `a line that a daemon holds is recognised`() {
    #expect(GPIOError.busy(pin, consumer: "causeway").kind == .ours)
    #expect(GPIOError.busy(pin, consumer: "gpioset").kind == .unusable)
  }

  @Test func `a light without a chip retries at each call`() {
    let light = GPIOLight(nil, pin, in: directory.path)
    for _ in 0..<2 { #expect(throws: GPIOError.self) { try light.show(.linked, isDue: false) } }
    light.close()
  }
}
