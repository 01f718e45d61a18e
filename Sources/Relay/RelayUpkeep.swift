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

  /// Reloads the configuration (SIGHUP, `causeway reload`) and reports the result to the journal, the status and the
  /// service manager.
  @discardableResult
  func reload() -> (isDone: Bool, text: String) {
    indicators.reloading(loop.now)
    let (isDone, text) = readConfiguration()
    faults.report("configuration", text, isFault: !isDone)
    indicators.ready()
    notifyServiceManager()
    return (isDone, text)
  }

  /// Reads the configuration again. The journal's level and the trust anchors apply at once. The result names the
  /// changed keys that need a restart. An invalid file changes nothing.
  private func readConfiguration() -> (isDone: Bool, text: String) {
    let fresh: Configuration
    do throws(ConfigurationError) {
      fresh = try Configuration.load(path: configurationFile)
    } catch {
      return (false, "not reloaded: \(error.text)")
    }
    let anchors = TrustAnchors(directory: fresh.trust.anchors)
    if let fault = fault(in: anchors, fresh) {
      return (false, "not reloaded: \(fault)")
    }
    for warning in fresh.warnings { journal.report(.warning, at: loop.now, "configuration", warning) }
    var later = ""
    for key in configuration.keysChanged(in: fresh) {
      // The comparison is by bytes, because comparing Strings would add Unicode tables to the firmware.
      if ByteString(key).equals("[journal] level") || ByteString(key).equals("[trust] anchors") { continue }
      later += later.utf8.isEmpty ? key : ", " + key
    }
    configuration.journal.level = fresh.journal.level
    journal.setLevel(fresh.journal.level)
    configuration.trust.anchors = fresh.trust.anchors
    trust.anchors = anchors
    faults.note("trust", trust.anchorFault)
    links.reconsider()
    var text = "reloaded: \(anchors.certificateCount) anchors, \(anchors.listCount) revocation lists"
    if !later.utf8.isEmpty { text += "; these apply at the next start: \(later)" }
    return (true, text)
  }

  func notifyServiceManager() {
    indicators.notifyServiceManager(links: links.count, peers: node.peers.count)
  }

  /// Why the new anchors are refused; nil if they are usable. Anchors are refused if a file has a fault, or if the
  /// policy needs certificates and there are none. Refused anchors would refuse peers that the present anchors accept.
  private func fault(in anchors: TrustAnchors, _ fresh: Configuration) -> String? {
    if let fault = anchors.faults.first { return fault.text }
    if trust.policy == .authority && anchors.certificateCount == 0 {
      return "[trust] policy is ca, but \(fresh.trust.anchors) has no certificate"
    }
    return nil
  }
}

/// Returns the unused memory of ended links and lost peers to the kernel.
func returnMemory(_ node: Node) {
  node.forEachUnusedMemory { csystem_release_pages($0.baseAddress!, $0.count) }
  csystem_release_unused_memory()
}
