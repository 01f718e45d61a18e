import CSystem
import Configuration
import ControlSocket
import Identity
import Journal
import Log
import Node
import Primitives
import Reactor
import Text
import Trust

/// Maintains the daemon's own files and configuration.
extension Relay {
  /// Restores the journal and the sockets if any of these files was removed.
  func keepRuntimeDirectory() {
    journalFile.restore(at: loop.now)
    faults.note("journal", journalFile.problem)
    keep("control") { [control] () throws(AccessError) in try control?.restore() ?? false }
    keep("api") { [local] () throws(AccessError) in try local?.restore() ?? false }
  }

  /// Restores a socket if it was removed, and reports the result.
  private func keep(_ source: StaticString, _ restore: () throws(AccessError) -> Bool) {
    do throws(AccessError) {
      if try restore() {
        journal.report(.warning, at: loop.now, source, "the socket was removed; it is restored")
      }
      faults.note(source, nil)
    } catch {
      faults.note(source, error.text)
    }
  }

  /// Handles the end of a background write of the state.
  func stateWritten() {
    var failure: String?
    do throws(IdentityError) {
      try trust.store.writeEnded()
    } catch {
      failure = error.text
      trust.noteUnsaved()
    }
    // If changes were made during the write, another write that includes the changes is running. The result is reported
    // after the second write.
    if failure == nil && !trust.store.isSettled { return }
    noteState(failure)
    control?.stateSettled(failure: failure)
  }

  /// Reports the failure of the last write of the state; nil if the write succeeded.
  func noteState(_ failure: String?) {
    faults.note("state", failure.map { "\($0); until then a restart loses all changes" })
  }

  var controlIsSettled: Bool { trust.store.isSettled }

  func controlReload() -> (isDone: Bool, text: String) { reload() }

  /// Reloads the configuration and the trust anchors (SIGHUP, `causeway reload`). Reports the result to the journal,
  /// the status and the service manager, and checks all peers against the new anchors.
  @discardableResult
  func reload() -> (isDone: Bool, text: String) {
    indicators.reloading(loop.now)
    let result = Reload(configurationFile, &configuration, trust)
    journal.setLevel(configuration.journal.level)
    for warning in result.warnings { journal.report(.warning, at: loop.now, "configuration", warning) }
    for warning in trust.anchorWarnings { journal.report(.warning, at: loop.now, "trust", warning) }
    faults.report("configuration", result.text, isFault: !result.isRead)
    if let fault = trust.anchorFault {
      faults.report("trust", fault, isFault: true)
    } else {
      faults.note("trust", nil)
    }
    reconsiderPeers()
    indicators.ready()
    notifyServiceManager()
    return (result.isDone, result.text)
  }

  func notifyServiceManager() {
    indicators.notifyServiceManager(links: links.count, peers: node.peers.count)
  }
}

/// Returns the unused memory of ended links and lost peers to the kernel.
func returnMemory(_ node: Node) {
  node.forEachUnusedMemory { csystem_release_pages($0.baseAddress!, $0.count) }
  csystem_release_unused_memory()
}
