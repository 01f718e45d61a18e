import BearerBluetooth
import Board
import CSystem
import Configuration
import Netlink
import Primitives
import Trust

/// Checks a machine for conditions that prevent a box from working, and suggests remedies. The checks change nothing
/// and need no running daemon. Without root some checks lack the permission and give a note instead of a result.
public final class Doctor {
  let configuration: Configuration
  let machine: Machine
  /// Whether the daemon runs. If the daemon runs, it occupies the TCP port and the GPIO lines, and the checks ignore
  /// this use.
  let isDaemonRunning: Bool
  let clock: SystemClock
  let radios: RadioAnswers
  /// Returns the reason why a GPIO line cannot be used, or nil if the line can be used.
  let gpioFault: (GPIOPin) -> GPIOError?

  /// Creates the checks of this machine.
  ///
  /// - `root`: the directory below which the machine's files are read; empty except in tests.
  /// - `radios`: the kernel's information about the radios; nil to query the kernel.
  /// - `gpioFault`: returns the reason why a GPIO line cannot be used, or nil.
  public init(
    _ configuration: Configuration, isDaemonRunning: Bool, root: String = "", clock: SystemClock = SystemClock(),
    radios: RadioAnswers? = nil, gpioFault: @escaping (GPIOPin) -> GPIOError? = Doctor.fault(ofLine:)
  ) {
    self.configuration = configuration
    self.isDaemonRunning = isDaemonRunning
    self.clock = clock
    self.radios =
      radios ?? RadioAnswers(asking: configuration.wifiDirect.interface, mesh: configuration.mesh.interface)
    self.gpioFault = gpioFault
    machine = Machine(root: root)
  }

  /// Runs all checks. The findings are ordered from the basis upwards: board, radios, network, then trust and
  /// directories.
  public func examine() -> [Finding] {
    var findings = examineBoard()
    if configuration.bluetooth.isEnabled { findings += bluetooth() }
    if configuration.wifiDirect.isEnabled { findings += wifiDirect() }
    if configuration.mesh.isEnabled { findings += mesh() }
    if configuration.ip.isEnabled { findings += ip() }
    findings +=
      [
        discovery(), led(), gpio("gpio", configuration.board.statusPin), gpio("button", configuration.board.buttonPin),
        group(),
      ].compactMap { $0 } + trust() + directories()
    return findings
  }

  /// Runs the checks that do not depend on the configuration.
  public func examineBoard() -> [Finding] {
    [kernel(), memory(), memoryLimit(), power(), time(), randomness()].compactMap { $0 }
  }

  private func time() -> Finding {
    if clock.seconds < Self.firstSecond {
      return Finding(
        "clock", .wrong, "the clock is before 2025: certificates are not valid yet",
        remedy: "set it (date --set), and run a time service: systemd-timesyncd, chrony, ntpd")
    }
    if clock.isSynchronised { return Finding("clock", .good, "synchronised") }
    let matters = configuration.trust.policy == .authority
    return Finding(
      "clock", .note, matters ? "not synchronised: expired certificates are not refused" : "not synchronised",
      remedy: "run a time service: systemd-timesyncd, chrony, ntpd")
  }

  /// 2025-01-01 in seconds since 1970.
  private static let firstSecond: Int64 = 1_735_689_600
}

/// Information about the radios that only requests to the kernel provide, not files in /sys.
public struct RadioAnswers {
  /// The country code of the regulatory domain, two characters; nil if no radio has one.
  public var regulatoryDomain: String?
  /// The abilities of the Bluetooth adapters; nil if the kernel does not answer.
  public var adapters: [AdapterAbilities]?
  /// The abilities of the interface that section [wifi-direct] names; nil if the interface is not wireless.
  public var wireless: WirelessAbilities?
  /// The abilities of the interface that section [mesh] names; nil if the interface is not wireless.
  public var mesh: WirelessAbilities?
  /// Whether the kernel supports RFCOMM, the serial ports of Bluetooth classic. The query can load the kernel module.
  public var hasRFCOMM: Bool
  /// Whether the kernel supports BNEP, which carries IP over Bluetooth. The query can load the kernel module.
  public var hasBNEP: Bool

  public init(
    regulatoryDomain: String?, adapters: [AdapterAbilities]?, wireless: WirelessAbilities?, mesh: WirelessAbilities?,
    hasRFCOMM: Bool = true, hasBNEP: Bool = true
  ) {
    self.regulatoryDomain = regulatoryDomain
    self.adapters = adapters
    self.wireless = wireless
    self.mesh = mesh
    self.hasRFCOMM = hasRFCOMM
    self.hasBNEP = hasBNEP
  }

  /// Queries the kernel. `interface` and `mesh`: the Wi-Fi interfaces of [wifi-direct] and of [mesh].
  init(asking interface: String, mesh: String) {
    self.init(
      regulatoryDomain: Netlink.regulatoryDomain(), adapters: adapterAbilities(),
      wireless: wirelessAbilities(of: interface), mesh: wirelessAbilities(of: mesh), hasRFCOMM: kernelHasRFCOMM(),
      hasBNEP: kernelHasBNEP())
  }
}
