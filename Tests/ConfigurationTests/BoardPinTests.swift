import Board
import Configuration
import Foundation
import Testing

private func board(_ lines: String) throws -> BoardSection {
  try Configuration.parse(Array("[board]\n\(lines)\n".utf8), file: "box.conf").board
}

private func isRefused(_ line: String) -> Bool {
  do throws(ConfigurationError) {
    _ = try Configuration.parse(Array("[board]\n\(line)\n".utf8), file: "box.conf")
    return false
  } catch { return error.text.contains("is not accepted; expected a") }
}

private let projectDirectory = URL(filePath: #filePath).deletingLastPathComponent()
  .appending(path: "../../board").standardized

@Suite struct BoardPinTests {
  @Test func `a light is configured by chip, line and polarity`() throws {
    let pin = try #require(try board("status-gpio = pinctrl-bcm2711:17").statusPin)
    #expect(pin.chip == "pinctrl-bcm2711" && pin.number == 17 && !pin.isActiveLow && pin.bias == .asIs)
    let other = try #require(try board("status-gpio = gpiochip4:GPIO17 , active-low").statusPin)
    #expect(other.chip == "gpiochip4" && other.line == "GPIO17" && other.number == nil && other.isActiveLow)
  }

  @Test func `a button also has a resistor setting`() throws {
    for (word, bias) in [("pull-up", GPIOPin.Bias.pullUp), ("pull-down", .pullDown), ("pull-none", .none)] {
      let pin = try #require(try board("button-gpio = 7e200000.gpio:a:27, \(word), active-low").buttonPin)
      #expect(pin.chip == "7e200000.gpio:a" && pin.line == "27" && pin.isActiveLow && pin.bias == bias)
    }
  }

  @Test func `the debounce time of a button is 20 milliseconds by default`() throws {
    #expect(try board("").buttonDebounceMilliseconds == 20)
    #expect(try board("button-debounce = 5").buttonDebounceMilliseconds == 5)
  }

  @Test(arguments: [
    "status-gpio = 17", "status-gpio = chip:", "status-gpio = :17", "status-gpio = chip:17, pull-up",
    "status-gpio = chip:17, active-low, active-low", "status-gpio = chip:17, bright", "status-gpio = a chip:17",
    "status-gpio = chip:1024", "status-gpio = \(String(repeating: "c", count: 32)):1",
    "button-gpio = chip:27, pull-up, pull-down", "button-gpio = chip:27,",
    "button-debounce = 4", "button-debounce = 201",
  ])
  func `an invalid pin is refused`(_ line: String) { #expect(isRefused(line)) }

  /// Checks the example in the README.md of each folder: the lines behind `[board]` that have the form of a setting.
  @Test(arguments: ["boards/rpi4", "boards/rpi-zero-2w", "lab"])
  func `the example configuration of each board is accepted`(folder: String) throws {
    let page = try String(contentsOf: projectDirectory.appending(path: "\(folder)/README.md"), encoding: .utf8)
    let lines = page.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    let start = try #require(lines.firstIndex(of: "[board]"))
    let section = lines[(start + 1)...].prefix { $0.contains(" = ") }
    let parsed = try board(section.joined(separator: "\n"))
    #expect(parsed.statusPin != nil && parsed.buttonPin != nil)
  }
}
