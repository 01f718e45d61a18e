import Board
import CSystem
import Configuration
import Journal
import Log
import Node
import Primitives
import Reactor
import Trust
import WiFiDirect

/// The board's status light and button.
extension Relay {
  /// Shows on the status light a fault, a Wi-Fi join by push button, or whether any link is up. If `isDue` is true, the
  /// light is set again, which retries a failed write.
  func showHealth(isDue: Bool = false) {
    if statusLED == nil && statusLight == nil { return }
    let isFault = !trust.alarms.isEmpty || !problems.isEmpty
    // A join by push button is shown before a fault, because the user waits for a response to the button.
    let isJoining = wifiDirect?.snapshot.isPushButtonPressed ?? false
    let current: StatusLED.Pattern = isJoining ? .joining : isFault ? .fault : node.isLinked ? .linked : .alone
    if current == health && !isDue { return }
    health = current
    if let statusLED {
      do throws(SystemError) {
        try statusLED.show(current)
        note("led", nil)
      } catch {
        note("led", configuration.board.statusLED + ": " + error.text)
      }
    }
    if let statusLight {
      do throws(GPIOError) {
        try statusLight.show(current, isDue: isDue)
        note("gpio", nil)
      } catch {
        note("gpio", error.line)
      }
    }
  }

  // MARK: Button

  func startButton() {
    // A file of an earlier run would switch the board off now.
    unlink(powerOffPath)
    guard let pin = configuration.board.buttonPin else { return }
    button = GPIOButton(
      loop, pin, debounceMicroseconds: configuration.board.buttonDebounceMilliseconds * 1000,
      pressed: { [self] in pressed($0) }, lost: { [self] in note("button", $0.line) })
  }

  /// Opens the button's GPIO line if it is not open, and checks the result of a long press. Called every 10 s.
  func keepButton() {
    if let button {
      do throws(GPIOError) {
        try button.open()
        note("button", nil)
      } catch {
        note("button", error.line)
      }
    }
    if let powerOffAskedAt, loop.now - powerOffAskedAt >= Self.powerOffTime {
      self.powerOffAskedAt = nil
      if unlink(powerOffPath) == 0 {
        tellOfButton("no unit switches the board off: systemctl enable --now causeway-poweroff.path")
      }
    }
  }

  /// The file for which the systemd unit causeway-poweroff.path waits. The unit switches the board off, because the
  /// daemon lacks the permission.
  private var powerOffPath: String { configuration.node.runtimeDirectory + "/poweroff" }

  /// The time within which the unit must have removed the file.
  private static let powerOffTime = TimeSpan.seconds(5)

  private func pressed(_ press: ButtonPress) {
    switch press {
    case .short:
      if wifiDirect?.pushButton() == true {
        journal.record(.notice, .wifiButtonPressed, at: loop.now, 120)
      } else {
        tellOfButton("pressed, but no device can join: there is no Wi-Fi Direct group, or wps = off")
      }
    case .long:
      tellOfButton("held: switching the board off")
      let file = csystem_open(powerOffPath, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard file >= 0 else { return tellOfButton(powerOffPath + ": " + SystemError.last.text) }
      close(file)
      powerOffAskedAt = loop.now
    }
  }

  private func tellOfButton(_ text: String) { journal.report(.warning, at: loop.now, "button", text) }
}
