import BearerBluetooth
import BearerIP
import Board
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
  let clock: SystemClock
  let radios: RadioAnswers
  /// Why a GPIO line cannot be had; nil when it can.
  let gpioFault: (GPIOPin) -> GPIOError?

  /// - `root`: where the machine's files are seen; a test has its own.
  /// - `radios`: what the kernel says; nil: it is asked.
  /// - `gpioFault`: what is wrong with a line.
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

  /// All checks, in the order in which a person would look.
  public func examine() -> [Finding] {
    var findings = [kernel(), memory(), memoryLimit(), power(), time(), randomness()].compactMap { $0 }
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

/// What the kernel says of the radios, which stands in no file.
public struct RadioAnswers {
  /// Two characters; nil where no radio has one.
  public var regulatoryDomain: String?
  /// Nil where the kernel does not answer.
  public var adapters: [AdapterAbilities]?
  /// Of the interface that [wifi-direct] names; nil when it is not wireless.
  public var wireless: WirelessAbilities?
  /// Of the interface that [mesh] names.
  public var mesh: WirelessAbilities?
  /// Whether the kernel has RFCOMM, or has loaded it for this question.
  public var hasRFCOMM: Bool
  /// The same of BNEP.
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

  /// Asks the kernel.
  init(asking interface: String, mesh: String) {
    self.init(
      regulatoryDomain: BearerIP.regulatoryDomain(), adapters: adapterAbilities(),
      wireless: wirelessAbilities(of: interface), mesh: wirelessAbilities(of: mesh), hasRFCOMM: kernelHasRFCOMM(),
      hasBNEP: kernelHasBNEP())
  }
}
