import Board
import CSystem
import Configuration
import Reactor

/// Shows on the status light that the daemon has ended: an LED is dark after a stop, and has the pattern of a fault after
/// anything else; a light at a GPIO line, which nobody drives then, is dark. For the service manager, which knows of an end
/// that the daemon could not see. Does nothing without a status light. Gives one line why it failed, or nil.
public func showEndOfDaemon(_ configuration: Configuration, wasStopped: Bool) -> String? {
  var failure = drive(configuration, wasStopped ? .off : .fault)
  if let pin = configuration.board.statusPin {
    let light = GPIOLight(nil, pin)
    do throws(GPIOError) { try light.show(.off, isDue: false) } catch { failure = failure ?? error.line }
    light.close()
  }
  return failure
}

/// Lets the daemon's user drive the status LED. For the service manager, which is root. The user is the owner of the runtime
/// directory. Does nothing without a status LED; for GPIO lines there is the group of their chip. Gives one line why it failed, or nil.
public func prepareStatusLED(_ configuration: Configuration) -> String? { drive(configuration, nil) }

/// Shows a pattern on the status LED, or prepares it: nil.
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
