import CSystem
import Reactor

/// The status LED, through the kernel's LED class (Linux, Documentation/leds/leds-class.rst). The kernel's trigger
/// `timer` does the blinking, so a busy or blocked process does not disturb it.
public final class StatusLED {
  /// What the LED shows until another pattern is set. The kernel keeps it even when this process has ended.
  public enum Pattern: UInt8, Equatable {
    /// Dark: the daemon was stopped.
    case off
    /// A short flash every 2 s: running without a neighbour.
    case alone
    /// Lit: at least one neighbour is linked.
    case linked
    /// Fast blinking: a fault or alarm needs attention; see the status.
    case fault
  }

  private let directory: String
  private var shown: Pattern?

  /// `name` is a directory in `/sys/class/leds`. Nothing is written yet.
  public init(name: String, classDirectory: String = "/sys/class/leds") {
    directory = classDirectory + "/" + name
  }

  /// Shows a pattern; does nothing when it is shown already. After a failure the next call tries again.
  ///
  /// - Throws: ENOENT when there is no such LED, EINVAL when the kernel lacks the trigger `timer`.
  public func show(_ pattern: Pattern) throws(SystemError) {
    if pattern == shown { return }
    shown = nil
    switch pattern {
    case .off: try light("0")
    case .alone: try blink(on: "50", off: "1950")
    // The kernel clamps this to the LED's greatest brightness.
    case .linked: try light("255")
    case .fault: try blink(on: "100", off: "100")
    }
    shown = pattern
  }

  private func light(_ brightness: StaticString) throws(SystemError) {
    try write("none", to: "trigger")
    try write(brightness, to: "brightness")
  }

  /// Durations in milliseconds. Their files exist only while the trigger is `timer`.
  private func blink(on: StaticString, off: StaticString) throws(SystemError) {
    try write("timer", to: "trigger")
    try write(on, to: "delay_on")
    try write(off, to: "delay_off")
  }

  private func write(_ value: StaticString, to file: StaticString) throws(SystemError) {
    let descriptor = csystem_open(directory + "/\(file)", O_WRONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw .last }
    defer { close(descriptor) }
    guard CSystem.write(descriptor, value.utf8Start, value.utf8CodeUnitCount) == value.utf8CodeUnitCount else {
      throw .last
    }
  }
}
