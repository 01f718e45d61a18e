/// A line of a GPIO chip, and its wiring to a light or a button.
///
/// The type is a class, because the configuration contains two pins and is copied. As structures, the pins would add
/// several strings to each copy.
public final class GPIOPin: Sendable {
  /// The chip's label (“pinctrl-bcm2711”) or name (“gpiochip0”).
  public let chip: String
  /// The line's number on the chip, or its name (“GPIO17”).
  public let line: String
  /// The line's number, if `line` is a number.
  public let number: UInt32?
  /// Whether the line is low while the light is lit, or while the button is pressed.
  public let isActiveLow: Bool
  public let bias: Bias

  /// The chip's internal resistor, which sets the level of an open line.
  public enum Bias: UInt8, Sendable {
    /// The bias as the board's firmware left it.
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

  /// The form `chip:line` of the configuration, without options.
  public var text: String { chip + ":" + line }
}

extension GPIOPin {
  /// The maximum length of a chip label or a line name in bytes. GPIO_MAX_NAME_SIZE includes the terminating zero.
  public static let nameBytesMax = 31
  /// The maximum number of lines of a chip. No known chip has more.
  public static let linesMax: UInt32 = 1024
}
