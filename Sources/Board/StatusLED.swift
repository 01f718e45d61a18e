import CSystem
import Reactor

/// The status LED, through the kernel's LED class (Linux, Documentation/leds/leds-class.rst). The kernel's trigger
/// `timer` does the blinking, so a busy or blocked process does not disturb it.
///
/// All patterns are durations of that trigger, also dark and lit: the kernel makes the duration files anew, as root's, when
/// the trigger changes. So a daemon without rights can show every pattern after `prepare`.
public final class StatusLED {
  /// What the LED shows until another pattern is set. The kernel keeps it even when this process has ended.
  public enum Pattern: UInt8, Equatable, Sendable {
    /// Dark: the daemon was stopped.
    case off
    /// A short flash every 2 s: running without a neighbour.
    case alone
    /// Lit: at least one neighbour is linked.
    case linked
    /// Slow blinking: the button was pressed, and somebody may join.
    case joining
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
  /// - Throws: ENOENT when there is no such LED, EINVAL when the kernel lacks the trigger `timer`, EACCES without `prepare`.
  public func show(_ pattern: Pattern) throws(SystemError) {
    if pattern == shown { return }
    shown = nil
    try useTimer()
    // Milliseconds. Of two zeros the kernel would make 500 each (led_blink_setup), so there is one at most at every moment.
    switch pattern {
    case .off: try write("1000", to: Self.offFile); try write("0", to: Self.onFile)
    case .alone: try write("1950", to: Self.offFile); try write("50", to: Self.onFile)
    case .linked: try write("1000", to: Self.onFile); try write("0", to: Self.offFile)
    case .joining: try write("500", to: Self.offFile); try write("500", to: Self.onFile)
    case .fault: try write("100", to: Self.offFile); try write("100", to: Self.onFile)
    }
    shown = pattern
  }

  /// Lets a user show patterns. Needs root.
  public func prepare(for user: uid_t, _ group: gid_t) throws(SystemError) {
    try useTimer()
    for file in [Self.onFile, Self.offFile] where chown(path(file), user, group) != 0 { throw .last }
  }

  private static let onFile: StaticString = "delay_on"
  private static let offFile: StaticString = "delay_off"
  private static let triggerFile: StaticString = "trigger"

  private func useTimer() throws(SystemError) {
    if !(try isTimerActive) { try write("timer", to: Self.triggerFile) }
  }

  /// The file lists all triggers, with the active one in brackets.
  private var isTimerActive: Bool {
    get throws(SystemError) {
      let descriptor = csystem_open(path(Self.triggerFile), O_RDONLY | O_CLOEXEC, 0)
      guard descriptor >= 0 else { throw .last }
      defer { close(descriptor) }
      var list = [UInt8](repeating: 0, count: Self.listBytesMax)
      let count = read(descriptor, &list, list.count)
      guard count >= 0 else { throw .last }
      return list.prefix(count).split(separator: UInt8(ascii: " ")).contains { word in
        "[timer]".utf8.elementsEqual(word.prefix { $0 != UInt8(ascii: "\n") })
      }
    }
  }

  /// The kernel names each processor in it.
  private static let listBytesMax = 16_384

  private func path(_ file: StaticString) -> String { directory + "/\(file)" }

  private func write(_ value: StaticString, to file: StaticString) throws(SystemError) {
    let descriptor = csystem_open(path(file), O_WRONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw .last }
    defer { close(descriptor) }
    guard CSystem.write(descriptor, value.utf8Start, value.utf8CodeUnitCount) == value.utf8CodeUnitCount else {
      throw .last
    }
  }
}
