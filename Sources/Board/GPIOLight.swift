import CSystem
import Primitives
import Reactor

/// The status light at a GPIO line. No trigger of the kernel drives it: this process does, so its patterns cost wake-ups, few
/// at rest (`Blinking`).
///
/// When the process ends, the kernel gives the line back, and the driver decides what it does then: some keep the value, others
/// make it an input. A light between line and ground, or one that is dark by itself, is dark in both cases after `close`.
public final class GPIOLight {
  private let pin: GPIOPin
  private let directory: String
  private var line: CInt = -1
  private var blinking = Blinking()
  private var shown: StatusLED.Pattern?
  private var timer: Timer?

  /// Nothing is opened yet. Without a loop only what stands can be shown.
  public init(_ loop: EventLoop?, _ pin: GPIOPin, in directory: String = "/dev") {
    self.pin = pin
    self.directory = directory
    if let loop { timer = Timer(loop) { [self] in turn() } }
  }

  /// Shows a pattern. `isDue`: called every 10 s or so, also with the same pattern. That gives the flash of `alone`, and finds a
  /// chip that is gone or is back. After a failure the next call tries again.
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

  /// Dark, and given back. No use of it follows.
  public func close() {
    if line >= 0 { _ = csystem_gpio_set(line, false) }
    release()
    timer = nil
  }

  private func turn() {
    guard line >= 0 else { return }
    blinking.turn()
    // A failure shows at the next call of `show`, which opens the line again.
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
