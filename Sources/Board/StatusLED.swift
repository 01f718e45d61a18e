import CSystem
import Reactor

/// The status LED, driven through the kernel's LED class (Linux, Documentation/leds/leds-class.rst). The kernel's
/// trigger `timer` does the blinking, so a busy or blocked process does not disturb the pattern.
///
/// Every pattern, even dark and lit, is set by the two durations of that trigger. A change of trigger would create the
/// duration files again, owned by root. So `prepare` sets the trigger once, and a daemon without privileges can then
/// show every pattern.
public final class StatusLED {
  /// The pattern of the LED. The kernel continues to show the LED's pattern after this process has ended.
  public enum Pattern: UInt8, Equatable, Sendable {
    /// Dark: the daemon is stopped.
    case off
    /// A short flash every 2 s, or every 20 s on a GPIO light: no neighbour is linked.
    case alone
    /// Lit: at least one neighbour is linked.
    case linked
    /// Slow blinking: the button was pressed, and a device can join the Wi-Fi network by WPS.
    case joining
    /// Fast blinking: a fault or alarm needs attention; see the status.
    case fault
  }

  private let directory: String
  private var shown: Pattern?

  /// `name`: a directory in `/sys/class/leds`. Writes nothing to the LED.
  public init(name: String, classDirectory: String = "/sys/class/leds") {
    directory = classDirectory + "/" + name
  }

  /// Shows a pattern. Does nothing if the LED shows the pattern already. After a failure, the next call of `show` tries
  /// again.
  ///
  /// - Throws: ENOENT if the LED does not exist, EINVAL if the kernel lacks the trigger `timer`, EACCES if `prepare`
  ///   was not called for this user.
  public func show(_ pattern: Pattern) throws(SystemError) {
    if pattern == shown { return }
    shown = nil
    try useTimer()
    // The durations are in milliseconds. If both are zero, the kernel sets each to 500 (led_blink_setup). So in each
    // case the nonzero duration is written first.
    switch pattern {
    case .off: try write("1000", to: Self.offFile); try write("0", to: Self.onFile)
    case .alone: try write("1950", to: Self.offFile); try write("50", to: Self.onFile)
    case .linked: try write("1000", to: Self.onFile); try write("0", to: Self.offFile)
    case .joining: try write("500", to: Self.offFile); try write("500", to: Self.onFile)
    case .fault: try write("100", to: Self.offFile); try write("100", to: Self.onFile)
    }
    shown = pattern
  }

  /// Makes `user` and `group` the owners of the duration files, so that this user can show patterns. Needs root.
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

  /// Whether the trigger `timer` is active. The trigger file lists all triggers, with the active one in brackets.
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

  /// The maximum size of the trigger list in bytes. The kernel lists a trigger for each processor.
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
