import Board
import CSystem
import Configuration
import Reactor

/// Shows on the status light that the daemon has ended. An LED is dark after a regular stop (`wasStopped`), and shows
/// the fault pattern otherwise. A light at a GPIO line is dark in both cases. The service manager starts this function
/// as a command after the daemon, because the manager also notices a crash of the daemon. Without a status light
/// nothing happens. Returns one line with the reason of a failure, or nil.
public func showEndOfDaemon(_ configuration: Configuration, wasStopped: Bool) -> String? {
  var failure = drive(configuration, wasStopped ? .off : .fault)
  if let pin = configuration.board.statusPin {
    let light = GPIOLight(nil, pin)
    do throws(GPIOError) { try light.show(.off, isDue: false) } catch { failure = failure ?? error.line }
    light.close()
  }
  return failure
}

/// Grants the status LED to the daemon's user, who owns the runtime directory. The service manager starts this function
/// as a command of root. A GPIO line needs no grant, because its device file belongs to a group. Without a status LED
/// nothing happens. Returns one line with the reason of a failure, or nil.
public func prepareStatusLED(_ configuration: Configuration) -> String? { drive(configuration, nil) }

/// Shows `pattern` on the status LED. If `pattern` is nil, grants the LED to the daemon's user instead. Returns the
/// reason of a failure, or nil.
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
