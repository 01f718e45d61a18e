import CSystem
import Reactor

/// An LED that tells people near the box how it is, through the kernel's LED class (Linux, Documentation/leds/leds-class.rst).
/// The kernel does the blinking, by its trigger `timer`: a box that is busy or stuck does not disturb it.
public final class StatusLED {
  /// What it shows, until another pattern is asked for: the kernel goes on by itself, also when this process is gone.
  public enum Pattern: UInt8, Equatable {
    /// Dark: the box was stopped.
    case off
    /// A short flash every 2 s: it runs, and nobody is linked.
    case alone
    /// Lit: at least one neighbour is linked.
    case linked
    /// Fast blinking: something needs a human, and the status says what.
    case fault
  }

  private let directory: String
  private var shown: Pattern?

  /// `name` is that of a directory in `/sys/class/leds`. Nothing is written yet.
  public init(name: String, classDirectory: String = "/sys/class/leds") {
    directory = classDirectory + "/" + name
  }

  /// Show a pattern; nothing is done when it is shown already. After a failure the next call tries again.
  ///
  /// - Throws: ENOENT when there is no such LED, EINVAL when the kernel lacks the trigger `timer`.
  public func show(_ pattern: Pattern) throws(SystemError) {
    if pattern == shown { return }
    shown = nil
    switch pattern {
    case .off: try light("0")
    case .alone: try blink(on: "50", off: "1950")
    // The kernel takes the greatest brightness that the LED has.
    case .linked: try light("255")
    case .fault: try blink(on: "100", off: "100")
    }
    shown = pattern
  }

  private func light(_ brightness: StaticString) throws(SystemError) {
    try write("none", to: "trigger")
    try write(brightness, to: "brightness")
  }

  /// Durations in milliseconds. Their files exist while the trigger is `timer`.
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
