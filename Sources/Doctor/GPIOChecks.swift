import Board
import Configuration

extension Doctor {
  /// Whether a line can be used; nil where none is configured.
  func gpio(_ check: StaticString, _ pin: GPIOPin?) -> Finding? {
    guard let pin else { return nil }
    guard let fault = gpioFault(pin), !(isDaemonRunning && fault.kind == .ours) else {
      return Finding(check, .good, pin.text)
    }
    // Who asks may not see what the daemon sees.
    return Finding(check, fault.kind == .denied ? .note : .wrong, fault.text, remedy: fault.remedy)
  }

  /// Why a line of this machine cannot be used; nil when it can.
  public static func fault(ofLine pin: GPIOPin) -> GPIOError? {
    do throws(GPIOError) {
      try GPIOLine(pin).check()
      return nil
    } catch {
      return error
    }
  }
}
