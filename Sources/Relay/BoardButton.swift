import Board
import CSystem
import Configuration
import Journal
import Primitives
import Reactor

/// The board's button. A short press opens the Wi-Fi group for one device (WPS). A long press asks a unit of the
/// service manager to switch the board off, because the daemon lacks the permission.
final class BoardButton {
  /// The time within which the unit must have removed the file.
  private static let powerOffTime = TimeSpan.seconds(5)

  private let loop: EventLoop
  private let journal: Journal
  private let faults: FaultReports
  /// The file for which the systemd unit causeway-poweroff.path waits.
  private let powerOffPath: String
  /// Opens the Wi-Fi group for one device. Returns false if there is no group that can be opened.
  private let openGroup: () -> Bool
  private var line: GPIOButton?
  /// The time of a long press; nil once `keep` has checked its result.
  private var powerOffAskedAt: Instant?

  /// Without a button in the configuration, the object does nothing but remove the file of an earlier run, which would
  /// switch the board off now.
  init(
    _ loop: EventLoop, _ configuration: Configuration, _ journal: Journal, _ faults: FaultReports,
    openGroup: @escaping () -> Bool
  ) {
    self.loop = loop
    self.journal = journal
    self.faults = faults
    self.openGroup = openGroup
    powerOffPath = configuration.node.runtimeDirectory + "/poweroff"
    unlink(powerOffPath)
    guard let pin = configuration.board.buttonPin else { return }
    line = GPIOButton(
      loop, pin, debounceMicroseconds: configuration.board.buttonDebounceMilliseconds * 1000,
      pressed: { [self] in pressed($0) }, lost: { [faults] in faults.note("button", $0.line) })
  }

  /// Opens the button's GPIO line if it is not open, and checks the result of a long press. The method is called every
  /// 10 s.
  func keep() {
    if let line {
      do throws(GPIOError) {
        try line.open()
        faults.note("button", nil)
      } catch {
        faults.note("button", error.line)
      }
    }
    if let powerOffAskedAt, loop.now - powerOffAskedAt >= Self.powerOffTime {
      self.powerOffAskedAt = nil
      if unlink(powerOffPath) == 0 {
        report("no unit switches the board off: systemctl enable --now causeway-poweroff.path")
      }
    }
  }

  func close() { line?.close() }

  private func pressed(_ press: ButtonPress) {
    switch press {
    case .short:
      if openGroup() {
        journal.record(.notice, .wifiButtonPressed, at: loop.now, 120)
      } else {
        report("pressed, but no device can join: there is no Wi-Fi Direct group, or wps = off")
      }
    case .long:
      report("held: switching the board off")
      let file = csystem_open(powerOffPath, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard file >= 0 else { return report(powerOffPath + ": " + SystemError.last.text) }
      CSystem.close(file)
      powerOffAskedAt = loop.now
    }
  }

  private func report(_ text: String) { journal.report(.warning, at: loop.now, "button", text) }
}
