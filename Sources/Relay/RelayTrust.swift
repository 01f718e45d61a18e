import Bearer
import CSystem
import Configuration
import Diagnostics
import Frame
import Identity
import Journal
import Node
import Primitives
import Reactor
import SecureTransport
import Trust

/// Opens what a box must not lose, once for this process: key, pins, deny-lists, epoch, time. Gives the epoch of this
/// start, and why it is not on disk where it could not be written. What was wrong and did not prevent the start stands in
/// the journal.
func openState(
  _ configuration: Configuration, _ journal: Journal
) throws(StartError) -> (trust: TrustKeeper, epoch: UInt64, fault: String?) {
  do throws(IdentityError) {
    let directory = try StateDirectory(configuration.node.stateDirectory)
    if try !directory.lock() { throw .inUse(path: directory.path) }
    let identity = try NodeIdentity.loadOrCreate(directory: directory.path)
    let store = TrustStore(directory)
    let (epoch, failure) = try store.nextEpoch(wallSeconds: Int64(CSystem.time(nil)))
    let keeper = TrustKeeper(identity, store, configuration.trust)
    let notices = [identity.notice, store.notice].compactMap { $0 }
    for notice in notices { tell(.error, notice, journal) }
    for notice in keeper.anchors.notices { tell(.warning, notice, journal) }
    if keeper.policy == .authority && keeper.anchors.certificateCount == 0 {
      tell(.warning, "[trust] policy is ca, and \(configuration.trust.anchors) holds no certificate", journal)
    }
    if let failure {
      keeper.noteUnsaved()
      tell(.error, "\(failure.text); the box runs, and nothing that changes outlives a restart", journal)
    }
    return (keeper, epoch, failure?.text)
  } catch {
    throw StartError(error.text)
  }
}

private func tell(_ level: Level, _ text: String, _ journal: Journal) {
  journal.report(level, at: monotonicNow(), "identity", text)
  say("identity", text)
}

extension TrustKeeper {
  /// As configured, with the wall clock of this machine.
  public convenience init(_ identity: NodeIdentity, _ store: TrustStore, _ section: TrustSection) {
    let policy: TrustPolicy =
      switch section.policy {
      case .open: .open
      case .firstUse: .firstUse
      case .authority: .authority
      }
    self.init(
      identity, store, policy: policy, anchors: TrustAnchors(directory: section.anchors), operators: section.operators,
      clock: { (Int64(CSystem.time(nil)), kernelClockIsSynchronised()) })
  }
}

/// Whether somebody keeps the kernel's clock right: ntpd, chronyd, systemd-timesyncd (adjtimex(2), STA_UNSYNC).
private func kernelClockIsSynchronised() -> Bool {
  var state = timex()
  return adjtimex(&state) >= 0 && state.status & STA_UNSYNC == 0
}

/// The keeper, as the node sees it.
final class TrustAdapter: NodeTrust {
  private let keeper: TrustKeeper

  init(_ keeper: TrustKeeper) { self.keeper = keeper }

  func refuses(_ node: NodeID) -> Bool { keeper.isDenied(node) }

  func refuses(_ node: NodeID, named name: DisplayName) -> Bool {
    keeper.refusal(of: node, named: (0..<name.byteCount).map { name.byte($0) }) != nil
  }

  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool { keeper.take(payload, from: issuer) }

  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void) {
    for list in keeper.lists { body(list.issuer, list.bytes.span.bytes) }
  }
}

/// What follows from trust for links, clients and people.
extension Relay {
  /// How often it is looked whether the clock has become right, and how long a new pin may be in memory alone.
  static let maintenanceInterval = TimeSpan.seconds(10)

  func startMaintenance() {
    wasSynchronised = trust.time.isSynchronised
    if let descriptor = trust.store.writeInBackground() {
      stateWatch = try? DescriptorWatch(loop, descriptor) { [self] in stateWritten() }
    }
    let timer = Timer(loop) { [self] in maintain() }
    maintenance = timer
    timer.set(loop.now)
  }

  private func maintain() {
    maintenance?.set(after: Self.maintenanceInterval)
    do throws(IdentityError) {
      try trust.keepTime()
      try trust.saveIfChanged()
      if trust.store.isSettled { noteState(nil) }
    } catch {
      noteState(error.text)
    }
    keepRuntimeDirectory()
    journal.recordRepeats(at: loop.now)
    // Certificates of which nobody could tell whether they were valid yet.
    let isSynchronised = trust.time.isSynchronised
    if isSynchronised && !wasSynchronised { reconsiderLinks() }
    wasSynchronised = isSynchronised
    tellRefusals()
    showHealth(isDue: true)
  }

  /// Who was not let in, all together: one by one would fill the journal in a flood.
  private func tellRefusals() {
    guard let refusals = inbound?.gate.admission.refusals else { return }
    var text = ""
    for refusal in Admission.Refusal.allCases {
      let index = Int(refusal.rawValue), count = refusals[index] &- refusalsTold[index]
      if count > 0 { text += "\(text.utf8.isEmpty ? "" : ", ")\(count) \(refusal.name)" }
    }
    refusalsTold = refusals
    if !text.utf8.isEmpty { journal.report(.warning, at: loop.now, "door", "not let in: \(text)") }
  }

  func reconsiderLinks() {
    for driver in drivers { driver.reconsider() }
  }

  /// After each wake-up: a key that came under another's name, a deny-list that arrived.
  func tellTrust(_ now: Instant) {
    // The trust policy is the application of the box: it judges the chains of peers as it does those of neighbours.
    while let (peer, chain) = node.nextDecision() {
      var refusal: PeerRefusal?
      PeerChain.withDER(chain) { refusal = trust.refusal(of: $0, peer) }
      if let refusal { journal.report(.warning, at: now, "peer", "\(peer.shortText): \(refusal.text)") }
      node.decide(peer, isAccepted: refusal == nil, now: now)
    }
    if trust.isAlarmNew {
      trust.isAlarmNew = false
      bearerReport("trust", alarmText, isFault: false)
      journal.report(.error, at: now, "trust", alarmText)
    }
    if deniedSeen != trust.lists.map({ $0.serial }) {
      deniedSeen = trust.lists.map { $0.serial }
      if trust.isSelfDenied { journal.report(.error, at: now, "trust", "this box's own key is revoked by an operator") }
      reconsiderLinks()
    }
  }

  func controlTrust(_ operation: TrustOperation, _ id: NodeID, name: String) -> (isDone: Bool, text: String) {
    do throws(TrustError) {
      let text = try trust.carryOut(operation, id, name: name)
      journal.report(.notice, at: loop.now, "trust", text)
      if operation == .revoke { node.trustChanged(now: loop.now) }
      return (true, text)
    } catch {
      return (false, error.text)
    }
  }

  /// The policy and what it stands on, for status.
  var trustText: String {
    var text = "\(trust.policy.name), \(trust.pins.count) pinned, \(trust.deniedCount) revoked"
    if trust.policy == .authority { text += ", \(trust.anchors.certificateCount) anchors" }
    return text
  }

  var alarmText: String {
    if trust.isSelfDenied { return "this box's own key is revoked by an operator" }
    guard let alarm = trust.alarm else { return "" }
    return """
      “\(String(decoding: alarm.name, as: UTF8.self))” is \(alarm.pinned.text), but \(alarm.offered.text) came under that \
      name, \(alarm.count) times; if its key was changed on purpose: causeway identity untrust NAME
      """
  }
}

extension TrustKeeper {
  /// Gives a sentence of what was done.
  public func carryOut(_ operation: TrustOperation, _ id: NodeID, name: String) throws(TrustError) -> String {
    let bytes = Array(name.utf8)
    switch operation {
    case .pin:
      try pin(id, named: bytes)
      return bytes.isEmpty ? "\(id.text) is trusted" : "\(id.text) is trusted as “\(name)”"
    case .unpin:
      let count = try unpin(name: bytes, node: id == .none ? nil : id)
      return "\(count) pin\(count == 1 ? "" : "s") forgotten"
    case .revoke:
      try revoke(id)
      return "\(id.text) is revoked"
    }
  }
}
