import Board
import Configuration
import Reactor

/// Shows on the status LED that the daemon has ended: dark after a stop, the pattern of a fault after anything else. For
/// the service manager, which knows of an end that the daemon could not see. Does nothing without a status LED.
public func showEndOfDaemon(_ configuration: Configuration, wasStopped: Bool) throws(SystemError) {
  let name = configuration.board.statusLED
  if !name.utf8.isEmpty { try StatusLED(name: name).show(wasStopped ? .off : .fault) }
}
