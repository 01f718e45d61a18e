import Board
import CSystem
import Configuration
import Reactor

/// Shows on the status LED that the daemon has ended: dark after a stop, the pattern of a fault after anything else. For
/// the service manager, which knows of an end that the daemon could not see. Does nothing without a status LED.
public func showEndOfDaemon(_ configuration: Configuration, wasStopped: Bool) throws(SystemError) {
  let name = configuration.board.statusLED
  if !name.utf8.isEmpty { try StatusLED(name: name).show(wasStopped ? .off : .fault) }
}

/// Lets the daemon's user drive the status LED. For the service manager, which is root. The user is the owner of the runtime
/// directory. Does nothing without a status LED.
public func prepareStatusLED(_ configuration: Configuration) throws(SystemError) {
  let name = configuration.board.statusLED
  if name.utf8.isEmpty { return }
  var directory = stat()
  guard stat(configuration.node.runtimeDirectory, &directory) == 0 else { throw .last }
  try StatusLED(name: name).prepare(for: directory.st_uid, directory.st_gid)
}
