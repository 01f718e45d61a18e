import Board
import Configuration

extension Doctor {
  /// Checks the GPIO line of a configured light or button. Nil if `pin` is nil, because no line is configured.
  func gpio(_ check: StaticString, _ pin: GPIOPin?) -> Finding? {
    guard let pin else { return nil }
    guard let fault = gpioFault(pin), !(isDaemonRunning && fault.kind == .ours) else {
      return Finding(check, .good, pin.text)
    }
    // A denied access is only a note, because the daemon has rights that the user of this command may lack.
    return Finding(check, fault.kind == .denied ? .note : .wrong, fault.text, remedy: fault.remedy)
  }

  /// The reason why a GPIO line of this machine cannot be used, or nil if the line can be used.
  public static func fault(ofLine pin: GPIOPin) -> GPIOError? {
    do throws(GPIOError) {
      try GPIOLine(pin).check()
      return nil
    } catch {
      return error
    }
  }
}
