/// A line of a GPIO chip, and how it is wired to a light or a button.
///
/// A class, because the configuration has two of them, and is copied: as structures they would make each copy several texts longer.
public final class GPIOPin: Sendable {
  /// The chip's label (“pinctrl-bcm2711”) or name (“gpiochip0”).
  public let chip: String
  /// The line's number on the chip, or its name (“GPIO17”).
  public let line: String
  /// The line's number, where `line` is one.
  public let number: UInt32?
  /// Whether the line is low when the light is lit, respectively the button pressed.
  public let isActiveLow: Bool
  public let bias: Bias

  /// The resistor inside the chip that holds an open line.
  public enum Bias: UInt8, Sendable {
    /// As the firmware of the board left it.
    case asIs
    case pullUp
    case pullDown
    case none
  }

  public init(chip: String, line: String, number: UInt32? = nil, isActiveLow: Bool = false, bias: Bias = .asIs) {
    self.chip = chip
    self.line = line
    self.number = number
    self.isActiveLow = isActiveLow
    self.bias = bias
  }

  /// As in the configuration, without options.
  public var text: String { chip + ":" + line }
}

extension GPIOPin {
  /// The greatest length of a chip's label and a line's name, in bytes (GPIO_MAX_NAME_SIZE, with its zero).
  public static let nameBytesMax = 31
  /// No chip that is known has more lines.
  public static let linesMax: UInt32 = 1024
}
