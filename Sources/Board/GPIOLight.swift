import CSystem
import Primitives
import Reactor

/// The status light on a GPIO line. This process switches the light without a kernel trigger. So each change costs a
/// pass of the event loop (see `Blinking`).
///
/// When the process ends, the kernel releases the line, and the driver decides the line's state. Some drivers keep the
/// last value; others make the line an input. `close` sets the value to dark, so the light stays dark with all drivers
/// if it is wired between line and ground. If the light is wired in another way, its circuit must keep it dark while
/// the line is an input.
public final class GPIOLight {
  private let pin: GPIOPin
  private let directory: String
  private var line: CInt = -1
  private var blinking = Blinking()
  private var shown: StatusLED.Pattern?
  private var timer: Timer?

  /// Does not open the line; `show` does. Without a loop, only steady patterns can be shown.
  public init(_ loop: EventLoop?, _ pin: GPIOPin, in directory: String = "/dev") {
    self.pin = pin
    self.directory = directory
    if let loop { timer = Timer(loop) { [self] in turn() } }
  }

  /// Shows a pattern. Call this method about every 10 s with `isDue` true, even if the pattern is the same. These
  /// periodic calls time the flash of `alone`, and detect that the chip was removed or has returned. After a failure,
  /// the next call opens the line again.
  public func show(_ pattern: StatusLED.Pattern, isDue: Bool) throws(GPIOError) {
    if line < 0 {
      line = try GPIOLine(pin, in: directory).take(UInt64(GPIO_V2_LINE_FLAG_OUTPUT.rawValue))
      shown = nil
    }
    if pattern != shown {
      blinking.begin(pattern)
    } else if isDue {
      blinking.tick()
    } else {
      return
    }
    try set()
    shown = pattern
  }

  /// Turns the light off and releases the line. The object cannot be used afterwards.
  public func close() {
    if line >= 0 { _ = csystem_gpio_set(line, false) }
    release()
    timer = nil
  }

  private func turn() {
    guard line >= 0 else { return }
    blinking.turn()
    // A failure is not reported here: the next call of `show` opens the line again, and throws if that fails.
    try? set()
  }

  private func set() throws(GPIOError) {
    guard csystem_gpio_set(line, blinking.isLit) == 0 else {
      let error = SystemError.last
      release()
      throw .failed(pin, error)
    }
    if let time = blinking.timeToTurn { timer?.set(after: time) } else { timer?.cancel() }
  }

  private func release() {
    timer?.cancel()
    if line >= 0 { CSystem.close(line) }
    line = -1
  }
}
