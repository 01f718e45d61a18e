import CSystem
import Reactor

/// Why a GPIO line cannot be used.
public struct GPIOError: Error {
  /// What decides whether it matters to who asks.
  public enum Kind: UInt8, Sendable {
    /// It is missing, or somebody has it, or a call failed.
    case unusable
    /// This process has the line, or another one of this name.
    case ours
    /// This user may not open the chip, or none but the chip's owner.
    case denied
  }

  public let kind: Kind
  /// One line: what is wrong.
  public let text: String
  /// One line: what to do. Empty when nothing helps that is known.
  public let remedy: String

  /// What is wrong, and what to do.
  public var line: String { remedy.utf8.isEmpty ? text : text + "; " + remedy }

  init(_ text: String, _ remedy: String = "", kind: Kind = .unusable) {
    self.kind = kind
    self.text = text
    self.remedy = remedy
  }

  /// `others`: the labels of the chips that there are, separated by blanks.
  static func noChip(_ pin: GPIOPin, others: String) -> GPIOError {
    GPIOError(
      "there is no GPIO chip " + pin.chip,
      others.utf8.isEmpty ? "none is seen: load its driver, or remove the key" : "name one of:" + others)
  }

  static func noLine(_ pin: GPIOPin) -> GPIOError {
    GPIOError("GPIO chip " + pin.chip + " has no line " + pin.line, "“gpioinfo” names its lines")
  }

  /// Another program, or a driver of the kernel, has the line.
  static func busy(_ pin: GPIOPin, consumer: String) -> GPIOError {
    GPIOError(
      pin.text + " is in use by “" + consumer + "”", "free it, or name another",
      kind: consumer.utf8.elementsEqual("causeway".utf8) ? .ours : .unusable)
  }

  static func denied(_ text: String) -> GPIOError {
    GPIOError(text, "install causeway.udev, and put the daemon's user into the group gpio", kind: .denied)
  }

  static func failed(_ pin: GPIOPin, _ error: SystemError) -> GPIOError {
    if error.code == ENODEV { return GPIOError(pin.text + ": the chip is gone", "it is used again when it is back") }
    return GPIOError(pin.text + ": " + error.text)
  }
}
