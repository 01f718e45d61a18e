import CSystem
import Primitives
import Reactor

/// A button on a GPIO line. The kernel debounces the line and reports each press and release.
public final class GPIOButton {
  private let loop: EventLoop
  private let pin: GPIOPin
  private let debounceMicroseconds: UInt32
  private let directory: String
  private var line: CInt = -1
  private var watch: DescriptorWatch?
  private var presses = ButtonPresses()
  private var pressed: ((ButtonPress) -> Void)?
  private var lost: ((GPIOError) -> Void)?

  /// Does not open the line. `pressed` is called for each press. `lost` is called when the open line fails, for example
  /// because the chip was removed. The caller can then call `open` again.
  public init(
    _ loop: EventLoop, _ pin: GPIOPin, debounceMicroseconds: UInt32, in directory: String = "/dev",
    pressed: @escaping (ButtonPress) -> Void, lost: @escaping (GPIOError) -> Void
  ) {
    self.loop = loop
    self.pin = pin
    self.debounceMicroseconds = debounceMicroseconds
    self.directory = directory
    self.pressed = pressed
    self.lost = lost
  }

  /// Requests the line from the kernel. Does nothing if the line is open.
  public func open() throws(GPIOError) {
    if line >= 0 { return }
    let bias: UInt64 =
      switch pin.bias {
      case .asIs: 0
      case .pullUp: UInt64(GPIO_V2_LINE_FLAG_BIAS_PULL_UP.rawValue)
      case .pullDown: UInt64(GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN.rawValue)
      case .none: UInt64(GPIO_V2_LINE_FLAG_BIAS_DISABLED.rawValue)
      }
    let edges = UInt64(GPIO_V2_LINE_FLAG_EDGE_RISING.rawValue) | UInt64(GPIO_V2_LINE_FLAG_EDGE_FALLING.rawValue)
    let input = UInt64(GPIO_V2_LINE_FLAG_INPUT.rawValue)
    try serve(GPIOLine(pin, in: directory).take(input | edges | bias, debounceMicroseconds: debounceMicroseconds))
  }

  /// Takes ownership of a descriptor that reports edges.
  func serve(_ descriptor: CInt) throws(GPIOError) {
    do throws(SystemError) {
      watch = try DescriptorWatch(loop, descriptor) { [self] in read() }
    } catch {
      CSystem.close(descriptor)
      throw .failed(pin, error)
    }
    line = descriptor
    presses = ButtonPresses()
  }

  /// Releases the line. No callback follows.
  public func close() {
    release()
    pressed = nil
    lost = nil
  }

  private func read() {
    // Reading one event per call is enough, because edges are rare. If more events wait, the event loop calls again at
    // once.
    var event = gpio_v2_line_event()
    let size = MemoryLayout<gpio_v2_line_event>.size
    let count = CSystem.read(line, &event, size)
    if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { return }
    guard count == size else {
      let error = count >= 0 ? SystemError(code: ENODEV) : SystemError.last
      release()
      lost?(.failed(pin, error))
      return
    }
    let isPressed = event.id == UInt32(GPIO_V2_LINE_EVENT_RISING_EDGE.rawValue)
    let press = presses.edge(
      isPressed: isPressed, at: Instant(nanoseconds: event.timestamp_ns), sequence: event.line_seqno)
    if let press { pressed?(press) }
  }

  private func release() {
    watch?.stop()
    watch = nil
    if line >= 0 { CSystem.close(line) }
    line = -1
  }
}
