import Board
import CSystem
import Configuration
import Reactor

/// Shows on the status light that the daemon has ended. An LED is dark after a stop and shows the fault pattern
/// otherwise; a light at a GPIO line is dark. The service manager calls this, because it also notices ends that the
/// daemon cannot. Without a status light nothing happens. Returns one line with the reason of a failure, or nil.
public func showEndOfDaemon(_ configuration: Configuration, wasStopped: Bool) -> String? {
  var failure = drive(configuration, wasStopped ? .off : .fault)
  if let pin = configuration.board.statusPin {
    let light = GPIOLight(nil, pin)
    do throws(GPIOError) { try light.show(.off, isDue: false) } catch { failure = failure ?? error.line }
    light.close()
  }
  return failure
}

/// Grants the status LED to the daemon's user, who owns the runtime directory. The service manager calls this as root.
/// GPIO lines do not need it, because their chip has a group. Without a status LED nothing happens. Returns one line
/// with the reason of a failure, or nil.
public func prepareStatusLED(_ configuration: Configuration) -> String? { drive(configuration, nil) }

/// Shows a pattern on the status LED; with nil grants it to the daemon's user instead. Returns the reason of a failure.
private func drive(_ configuration: Configuration, _ pattern: StatusLED.Pattern?) -> String? {
  let name = configuration.board.statusLED
  if name.utf8.isEmpty { return nil }
  let led = StatusLED(name: name)
  do throws(SystemError) {
    if let pattern {
      try led.show(pattern)
    } else {
      var directory = stat()
      guard stat(configuration.node.runtimeDirectory, &directory) == 0 else { throw .last }
      try led.prepare(for: directory.st_uid, directory.st_gid)
    }
    return nil
  } catch {
    return name + ": " + error.text
  }
}
