import Board

/// The syntax of a GPIO line: `chip:line, option, …`.
enum PinSyntax {
  static let light: StaticString =
    "a GPIO chip and line such as pinctrl-bcm2711:17, then active-low if the light is lit while the line is low"
  static let button: StaticString =
    "a GPIO chip and line such as pinctrl-bcm2711:27, then active-low, and one of pull-up, pull-down or pull-none"

  /// Parses a GPIO line and stores it. Returns false if the text is invalid. `takesBias`: whether the text may choose a
  /// pull resistor; true for a button, false for a light.
  static func store(_ pin: inout GPIOPin?, _ text: ByteString, takesBias: Bool) -> Bool {
    guard let parsed = parse(text, takesBias: takesBias) else { return false }
    pin = parsed
    return true
  }

  private static func parse(_ text: ByteString, takesBias: Bool) -> GPIOPin? {
    let parts = text.commaParts
    guard let location = parts.first, let colon = location.bytes.lastIndex(of: UInt8(ascii: ":")) else { return nil }
    let chip = ByteString(location.bytes[..<colon]), line = ByteString(location.bytes[(colon + 1)...])
    guard isName(chip), isName(line) else { return nil }
    let number = line.number(in: 0...UInt64(GPIOPin.linesMax - 1))
    if number == nil && line.bytes.allSatisfy({ (0x30...0x39).contains($0) }) { return nil }
    var isActiveLow = false
    var bias = GPIOPin.Bias.asIs
    for option in parts.dropFirst() {
      if option.equals("active-low"), !isActiveLow {
        isActiveLow = true
      } else if takesBias, bias == .asIs, let chosen = resistor(option) {
        bias = chosen
      } else {
        return nil
      }
    }
    return GPIOPin(
      chip: chip.string, line: line.string, number: number.map { UInt32($0) }, isActiveLow: isActiveLow, bias: bias)
  }

  private static func resistor(_ option: ByteString) -> GPIOPin.Bias? {
    choice(option, ("pull-up", .pullUp), ("pull-down", .pullDown), ("pull-none", GPIOPin.Bias.none))
  }

  /// Whether a name is printable ASCII without blanks.
  private static func isName(_ text: ByteString) -> Bool {
    (1...GPIOPin.nameBytesMax).contains(text.bytes.count) && text.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}
