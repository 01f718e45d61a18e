import CSystem
import Reactor

/// An open GPIO chip and one of its lines.
public struct GPIOLine: ~Copyable {
  private let pin: GPIOPin
  private let chip: CInt
  private let number: UInt32

  /// Finds the chip and the line. `directory` contains the device files. If several chips share a label, the chip with
  /// the lowest number is used. Names of chips are unique.
  public init(_ pin: GPIOPin, in directory: String = "/dev") throws(GPIOError) {
    var info = gpiochip_info()
    let chip = try openChip(pin, directory, &info)
    guard let number = lineNumber(pin, chip, lines: info.lines) else {
      close(chip)
      throw .noLine(pin)
    }
    self.pin = pin
    self.chip = chip
    self.number = number
  }

  deinit { close(chip) }

  /// Throws if the line is in use, or if only root may open the chip.
  public func check() throws(GPIOError) {
    var info = gpio_v2_line_info()
    if csystem_gpio_line(chip, number, &info) == 0, info.flags & UInt64(GPIO_V2_LINE_FLAG_USED.rawValue) != 0 {
      throw .busy(pin, consumer: String(cString: csystem_gpio_consumer(&info)))
    }
    var status = stat()
    if fstat(chip, &status) == 0, status.st_gid == 0 || status.st_mode & 0o060 != 0o060 {
      throw .denied("only root may open GPIO chip " + pin.chip)
    }
  }

  /// Requests the line from the kernel with these flags. Returns a non-blocking descriptor.
  func take(_ flags: UInt64, debounceMicroseconds: UInt32 = 0) throws(GPIOError) -> CInt {
    let polarity = pin.isActiveLow ? UInt64(GPIO_V2_LINE_FLAG_ACTIVE_LOW.rawValue) : 0
    let descriptor = csystem_gpio_request(chip, number, flags | polarity, debounceMicroseconds)
    if descriptor >= 0 { return descriptor }
    let error = SystemError.last
    if error.code == EBUSY { try check() }
    throw .failed(pin, error)
  }
}

/// The maximum number of device files to search. A Raspberry Pi has up to five chips.
private let chipsMax: UInt32 = 32

private func openChip(
  _ pin: GPIOPin, _ directory: String, _ info: inout gpiochip_info
) throws(GPIOError) -> CInt {
  var others = ""
  var isDenied = false
  for number in 0..<chipsMax {
    let chip = csystem_gpio_open(directory, number, &info)
    if chip < 0 {
      // EPERM comes from the device policy of a service, EACCES from the permissions of the file.
      if csystem_errno() == EACCES || csystem_errno() == EPERM { isDenied = true }
      continue
    }
    if csystem_gpio_is(&info, pin.chip) { return chip }
    close(chip)
    others += " "
    others += String(cString: csystem_gpio_label(&info))
  }
  // The wanted chip may be among those that could not be opened.
  if isDenied { throw .denied("no permission to open a GPIO chip in " + directory) }
  throw .noChip(pin, others: others)
}

private func lineNumber(_ pin: GPIOPin, _ chip: CInt, lines: UInt32) -> UInt32? {
  if let number = pin.number { return number < lines ? number : nil }
  for number in 0..<min(lines, GPIOPin.linesMax) {
    var info = gpio_v2_line_info()
    if csystem_gpio_line(chip, number, &info) == 0, strcmp(csystem_gpio_name(&info), pin.line) == 0 { return number }
  }
  return nil
}
