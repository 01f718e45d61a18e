import Board
import Configuration

extension Doctor {
  /// Checks a configured GPIO line. Nil if none is configured.
  func gpio(_ check: StaticString, _ pin: GPIOPin?) -> Finding? {
    guard let pin else { return nil }
    guard let fault = gpioFault(pin), !(isDaemonRunning && fault.kind == .ours) else {
      return Finding(check, .good, pin.text)
    }
    // The caller may lack rights that the daemon has.
    return Finding(check, fault.kind == .denied ? .note : .wrong, fault.text, remedy: fault.remedy)
  }

  /// The reason why a GPIO line of this machine cannot be used, or nil if it can.
  public static func fault(ofLine pin: GPIOPin) -> GPIOError? {
    do throws(GPIOError) {
      try GPIOLine(pin).check()
      return nil
    } catch {
      return error
    }
  }
}
