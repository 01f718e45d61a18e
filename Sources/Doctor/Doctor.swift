import BearerIP
import CSystem
import Configuration
import Primitives
import Trust

/// Looks at a machine for what keeps a box from working, and knows the remedies. It changes nothing, and needs neither a
/// daemon nor root; without root it may see less.
public final class Doctor {
  let configuration: Configuration
  let machine: Machine
  /// The daemon holds the port then, and the radios' sockets.
  let isDaemonRunning: Bool
  private let clock: SystemClock
  let regulatoryDomain: String?

  /// - `root`: where the machine's files are seen; a test has its own.
  /// - `regulatoryDomain`: two characters, nil where no radio has one.
  public init(
    _ configuration: Configuration, isDaemonRunning: Bool, root: String = "", clock: SystemClock = SystemClock(),
    regulatoryDomain: String? = BearerIP.regulatoryDomain()
  ) {
    self.configuration = configuration
    self.isDaemonRunning = isDaemonRunning
    self.clock = clock
    self.regulatoryDomain = regulatoryDomain
    machine = Machine(root: root)
  }

  /// All checks, in the order in which a person would look.
  public func examine() -> [Finding] {
    var findings = [kernel(), memoryLimit(), power(), time(), randomness()].compactMap { $0 }
    if configuration.bluetooth.isEnabled { findings += bluetooth() }
    if configuration.wifiDirect.isEnabled { findings += wifiDirect() }
    if configuration.ip.isEnabled { findings += ip() }
    findings += [discovery(), led(), group()].compactMap { $0 } + directories()
    return findings
  }

  private func time() -> Finding {
    if clock.seconds < Self.firstSecond {
      return Finding(
        "clock", .wrong, "the clock stands before 2025: certificates are not valid yet",
        remedy: "set it (date --set), and run a time service: systemd-timesyncd, chrony, ntpd")
    }
    if clock.isSynchronised { return Finding("clock", .good, "synchronised") }
    let matters = configuration.trust.policy == .authority
    return Finding(
      "clock", .note, matters ? "not synchronised: expired certificates are not refused" : "not synchronised",
      remedy: "run a time service: systemd-timesyncd, chrony, ntpd")
  }

  /// 2025-01-01.
  private static let firstSecond: Int64 = 1_735_689_600
}
