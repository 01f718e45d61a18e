import CSystem
import Reactor

/// Why a GPIO line cannot be used.
public struct GPIOError: Error {
  /// The cause, as far as it changes how the caller treats the error.
  public enum Kind: UInt8, Sendable {
    /// The line is missing or in use, or a system call failed.
    case unusable
    /// A process named “causeway” uses the line: this process or another one.
    case ours
    /// The permissions of the chip's device file exclude this user, or everyone except root.
    case denied
  }

  public let kind: Kind
  /// The cause of the error, in one line.
  public let text: String
  /// The advice, in one line; empty if there is none.
  public let remedy: String

  /// The cause and the advice, in one line.
  public var line: String { remedy.utf8.isEmpty ? text : text + "; " + remedy }

  init(_ text: String, _ remedy: String = "", kind: Kind = .unusable) {
    self.kind = kind
    self.text = text
    self.remedy = remedy
  }

  /// `others`: the labels of the existing chips, separated by blanks.
  static func noChip(_ pin: GPIOPin, others: String) -> GPIOError {
    GPIOError(
      "there is no GPIO chip " + pin.chip,
      others.utf8.isEmpty ? "none is present: load its driver, or remove the key" : "name one of:" + others)
  }

  static func noLine(_ pin: GPIOPin) -> GPIOError {
    GPIOError("GPIO chip " + pin.chip + " has no line " + pin.line, "list its lines with “gpioinfo”")
  }

  /// Another program or a kernel driver uses the line.
  static func busy(_ pin: GPIOPin, consumer: String) -> GPIOError {
    GPIOError(
      pin.text + " is in use by “" + consumer + "”", "free it, or set another line",
      kind: consumer.utf8.elementsEqual("causeway".utf8) ? .ours : .unusable)
  }

  static func denied(_ text: String) -> GPIOError {
    GPIOError(text, "install causeway.udev, and put the daemon's user into the group gpio", kind: .denied)
  }

  static func failed(_ pin: GPIOPin, _ error: SystemError) -> GPIOError {
    if error.code == ENODEV {
      return GPIOError(pin.text + ": the chip was removed", "it is used again when it returns")
    }
    return GPIOError(pin.text + ": " + error.text)
  }
}
