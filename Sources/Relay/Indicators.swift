import Board
import Configuration
import Primitives
import Reactor

/// The state of the daemon as shown outside: by the status LED, the status light at a GPIO line, and the line of
/// `systemctl status`.
final class Indicators {
  /// The facts that the patterns are derived from.
  struct Health {
    var hasFault: Bool
    /// Whether a device can join the Wi-Fi group, because the button was pressed.
    var isJoining: Bool
    var isLinked: Bool

    /// A join is shown before a fault, because the user waits for a response to the button.
    var pattern: StatusLED.Pattern { isJoining ? .joining : hasFault ? .fault : isLinked ? .linked : .alone }
  }

  private let name: String
  private let led: StatusLED?
  private let light: GPIOLight?
  private let serviceManager: ServiceManager?
  private let faults: FaultReports
  private var shown = StatusLED.Pattern.off

  init(_ loop: EventLoop, _ board: BoardSection, _ faults: FaultReports, serviceManager: ServiceManager?) {
    name = board.statusLED
    led = name.utf8.isEmpty ? nil : StatusLED(name: name)
    light = board.statusPin.map { GPIOLight(loop, $0) }
    self.faults = faults
    self.serviceManager = serviceManager
  }

  // MARK: Status light

  /// Shows the health on the LED and the light. If `isDue` is true, the pattern is set again, which retries a failed
  /// write. `health` is called only if the board has an LED or a light.
  func show(isDue: Bool = false, _ health: () -> Health) {
    if led == nil && light == nil { return }
    let pattern = health().pattern
    if pattern == shown && !isDue { return }
    shown = pattern
    if let led {
      do throws(SystemError) {
        try led.show(pattern)
        faults.note("led", nil)
      } catch {
        faults.note("led", name + ": " + error.text)
      }
    }
    if let light {
      do throws(GPIOError) {
        try light.show(pattern, isDue: isDue)
        faults.note("gpio", nil)
      } catch {
        faults.note("gpio", error.line)
      }
    }
  }

  /// Ends the patterns: the daemon stops.
  func close() {
    try? led?.show(.off)
    light?.close()
  }

  // MARK: Service manager

  func ready() { serviceManager?.ready() }
  func alive() { serviceManager?.alive() }
  func stopping() { serviceManager?.stopping() }
  func reloading(_ now: Instant) { serviceManager?.reloading(microseconds: now.nanoseconds / 1000) }

  /// Sends the text that `systemctl status` shows: the first fault, or the numbers of links and peers.
  func notifyServiceManager(links: Int, peers: Int) {
    serviceManager?.show(
      faults.all.first.map { "\($0.source): \($0.text)" }
        ?? "\(links) \(links == 1 ? "link" : "links"), \(peers) \(peers == 1 ? "peer" : "peers")")
  }
}
