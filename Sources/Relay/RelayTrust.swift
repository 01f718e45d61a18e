import Board
import CSystem
import Configuration
import ControlSocket
import Frame
import Identity
import Journal
import Log
import Node
import Primitives
import Reactor
import SecureTransport
import Status
import Text
import Trust

/// The persistent state of the daemon, as opened at the start.
struct OpenState {
  let trust: TrustKeeper
  /// The boot epoch of this start: a number that increases with each start.
  let epoch: UInt64
  /// Why the epoch could not be written; nil if it was written.
  let writeFault: String?
  /// Faults that do not prevent the start, with the part of the daemon that has the fault. `status` and the status
  /// light show these faults.
  let faults: [(source: StaticString, text: String)]
}

/// Opens the persistent state: key, pins, deny-lists (lists of revoked keys), boot epoch and time. Called once per
/// process. Faults that do not prevent the start are written to the journal.
func openState(_ configuration: Configuration, _ journal: Journal) throws(StartError) -> OpenState {
  do throws(IdentityError) {
    let directory = try StateDirectory(configuration.node.stateDirectory)
    if try !directory.lock() { throw .inUse(path: directory.path) }
    let identity = try NodeIdentity.loadOrCreate(directory: directory.path)
    let store = try TrustStore(directory)
    var wall = timespec()
    clock_gettime(CLOCK_REALTIME, &wall)
    let milliseconds = Int64(wall.tv_sec) * 1000 + Int64(wall.tv_nsec) / 1_000_000
    let (epoch, failure) = try store.nextEpoch(wallMilliseconds: milliseconds)
    // An epoch that could not be written contains the wall clock in quarters of a second, rounded up. This start waits
    // until that quarter begins, so that no two starts share an epoch (`TrustStore.nextEpoch`).
    if failure != nil {
      let quarter = TrustStore.quarterMilliseconds
      usleep(UInt32((quarter - milliseconds % quarter) * 1000))
    }
    let clock = SystemClock()
    let keeper = TrustKeeper(identity, store, configuration.trust, clock)
    if keeper.unreadLists > 0 { throw .stateOfLaterVersion(path: directory.path) }
    let sources: [(source: StaticString, text: String?)] = [
      ("identity", identity.notice ?? identity.chainFault), ("trust-state", store.notice),
      ("trust", keeper.anchorFault),
    ]
    var faults: [(source: StaticString, text: String)] = []
    for (source, text) in sources { if let text { faults.append((source, text)) } }
    for fault in faults { report(.error, fault.text, journal) }
    for warning in keeper.anchorWarnings { report(.warning, warning, journal) }
    if configuration.trust.policy == .authority, let notice = clock.notice { report(.warning, notice, journal) }
    if let failure {
      keeper.noteUnsaved()
      report(.error, "\(failure.text); the box runs, but a restart loses all changes", journal)
    }
    return OpenState(trust: keeper, epoch: epoch, writeFault: failure?.text, faults: faults)
  } catch {
    throw StartError(error.text)
  }
}

private func report(_ level: Level, _ text: String, _ journal: Journal) {
  journal.report(level, at: monotonicNow(), "identity", text)
  say("identity", text)
}

extension TrustKeeper {
  /// Creates the trust keeper as configured, with the wall clock of this machine.
  public convenience init(
    _ identity: NodeIdentity, _ store: TrustStore, _ section: TrustSection, _ clock: SystemClock = SystemClock()
  ) {
    self.init(
      identity, store, policy: section.policy, anchors: TrustAnchors(), operators: section.operators,
      clock: { (clock.seconds, clock.isSynchronised) })
    readAnchors(in: section.anchors)
  }

  /// Reads the trust anchors in a directory, at the start and at each reload alike. Each part that is understood
  /// applies. A part that is not understood refuses the nodes that it may concern (`AnchorFault`), and is in
  /// `anchorFault`. The caller must check the peers of all links and sessions again.
  func readAnchors(in directory: String) { anchors = TrustAnchors(directory: directory) }

  /// One line of text for each fault of the anchors that refuses nobody, because the policy uses no anchors.
  var anchorWarnings: [String] { policy == .authority ? [] : anchors.faults.map { $0.text } }
}

/// Decides whether the peer of one link is trusted, and charges a refusal to the peer's address.
final class LinkJudge: PeerJudge {
  private let keeper: TrustKeeper
  private let source: UInt64
  private(set) var checksMade = 0

  init(_ keeper: TrustKeeper, from source: UInt64) {
    self.keeper = keeper
    self.source = source
  }

  func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
    var refusal: PeerRefusal?
    checksMade += Trust.checksMade { refusal = keeper.refusal(of: chain, peer, from: source) }
    return refusal
  }
}

/// Adapts `TrustKeeper` to `NodeTrust`, the protocol that the node requires.
final class TrustAdapter: NodeTrust {
  private let keeper: TrustKeeper

  init(_ keeper: TrustKeeper) { self.keeper = keeper }

  func refuses(_ node: NodeID) -> Bool { keeper.isDenied(node) }

  func refuses(_ node: NodeID, named name: DisplayName, proof: KeyProof?) -> Bool {
    keeper.refusal(of: node, named: [UInt8](name), proof: proof) != nil
  }

  func wouldRefuse(_ node: NodeID, named name: DisplayName) -> Bool {
    keeper.refusal(of: node, under: [UInt8](name)) != nil
  }

  func isKnown(_ node: NodeID) -> Bool { keeper.isPinned(node) }

  func isPinnedByOperator(_ node: NodeID) -> Bool { keeper.isPinnedByOperator(node) }

  func wantsDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool { keeper.wants(payload, from: issuer) }

  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> DenyListAnswer {
    switch keeper.take(payload, from: issuer) {
    case .accepted: .accepted
    case .wrongSignature: .wrongSignature
    case .notWanted, .notSaved: .notStored
    }
  }

  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void) {
    for list in keeper.lists { body(list.issuer, list.bytes.span.bytes) }
  }
}

/// Saves and reports the state of trust, and checks links when trust changes.
extension Relay {
  /// The interval between two calls of `maintain`. So a new pin is written to disk after at most this time.
  static let maintenanceInterval = TimeSpan.seconds(10)

  func startMaintenance() {
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
      try trust.keepTime(uptimeSeconds: Int64(clamping: (loop.now - startedAt).milliseconds / 1000))
      try trust.saveIfChanged()
      if trust.store.isSettled { noteState(nil) }
    } catch {
      noteState(error.text)
    }
    keepRuntimeDirectory()
    journal.recordRepeats(at: loop.now)
    if trustReports.clockBecameSynchronised() { reconsiderPeers() }
    trustReports.reportPins()
    links.reportRefusals()
    button?.keep()
    indicators.show(isDue: true) { health }
    indicators.alive()
    notifyServiceManager()
  }

  /// Saves an epoch that the node has adopted, because the next start must use a later epoch.
  func epochRaised(to epoch: UInt64) {
    trust.epochRaised(to: epoch)
    maintain()
  }

  /// Decides whether to accept the certificate chain of a peer in an end-to-end session, by the same trust policy as
  /// for neighbours.
  func decide(_ peer: NodeID, _ chain: [[UInt8]], _ now: Instant) {
    var refusal: PeerRefusal?
    // The end-to-end session has just proved the peer's key. So the name that the peer advertises may be pinned to that
    // key, if no other key has the name. If another key has the name, the name raises an alarm.
    let proof = node.sessionProof(of: peer, now: now)
    let checks = checksMade { refusal = self.refusal(of: chain, peer, proof) }
    if refusal == nil, let name = node.claimedName(of: peer) {
      refusal = trust.refusal(of: peer, named: [UInt8](name), proof: proof)
    }
    if let refusal { report(refusal, of: peer, now) }
    node.decide(peer, isAccepted: refusal == nil, checks: checks, now: now)
  }

  private func refusal(of chain: [[UInt8]], _ peer: NodeID, _ proof: KeyProof?) -> PeerRefusal? {
    var refusal: PeerRefusal?
    PeerChain.withDER(chain) { refusal = trust.refusal(of: $0, peer, from: proof?.source ?? 0) }
    return refusal
  }

  /// Reports why a peer is refused that has just proved its key. The line is charged to the first link of the route to
  /// the peer, because behind a link anybody can have any number of keys.
  private func report(_ refusal: PeerRefusal, of peer: NodeID, _ now: Instant) {
    let cause = node.peer(peer).map { links.cause(behind: $0.firstHop) } ?? .interface(0)
    journal.report(
      .warning, at: now, "peer", "\(peer.shortText): \(refusal.text)",
      cause: cause.about(trust.decided(peer, refusal)))
  }

  /// Checks the peers of all links and of all end-to-end sessions again, after the anchors or the known time changed.
  /// Each pass of the event loop checks one session, because a chain takes several signature checks.
  func reconsiderPeers() {
    links.reconsider()
    unreviewed = node.sealedPeers
    if sessionReview == nil { sessionReview = Timer(loop) { [self] in reviewNextSession() } }
    sessionReview?.set(loop.now)
  }

  private func reviewNextSession() {
    guard let peer = unreviewed.popLast() else { return }
    sessionReview?.set(loop.now)
    let now = loop.now
    node.reconsider(peer, now: now) { chain in
      guard let refusal = refusal(of: chain, peer, node.sessionProof(of: peer, now: now)) else { return false }
      report(refusal, of: peer, now)
      return true
    }
  }

  func controlTrust(_ operation: TrustOperation, _ id: NodeID, name: String) -> (isDone: Bool, text: String) {
    do throws(TrustError) {
      let text = try trust.carryOut(operation, id, name: name)
      journal.report(.notice, at: loop.now, "trust", text, cause: .box.about(id))
      links.attribute()
      switch operation {
      case .revoke: node.trustChanged(now: loop.now)
      case .pin, .unpin, .accept: node.pinsChanged(now: loop.now)
      case .keep, .dismiss: break
      }
      return (true, text)
    } catch {
      return (false, error.text)
    }
  }
}

extension TrustAlarm {
  /// The alarm in one line. The line contains no command with the name, because the name is untrusted text and people
  /// copy commands.
  var text: String {
    let isSame = name == offeredName
    let came = isSame ? "under that name" : "as “\(shown(offeredName))”, which looks like it"
    return """
      “\(shown(name))” is \(pinned.text), but \(offered.text) was seen \(came), \(count) \
      time\(count == 1 ? "" : "s"); see: causeway identity alarms
      """
  }
}

extension TrustKeeper {
  /// Carries out a trust operation. Returns a sentence about the result, with the full node id of the key.
  public func carryOut(_ operation: TrustOperation, _ id: NodeID, name: String) throws(TrustError) -> String {
    let called = name.utf8.isEmpty ? id.text : "\(id.text) (“\(shown(name))”)"
    switch operation {
    case .pin:
      let former = holder(of: Array(name.utf8))
      let displaced = try pin(id, named: Array(name.utf8))
      var text = "\(id.text) is trusted"
      if !name.utf8.isEmpty { text += " as “\(shown(name))”" }
      if let former, former != id { text += " instead of \(former.text)" }
      if let displaced {
        text +=
          "; all pins were in use: the unverified pin of \(displaced.node.text) as “\(shown(displaced.name))” was evicted"
      }
      return text
    case .unpin:
      let gone = try unpin(id, name: Array(name.utf8))
      var text = "forgotten: "
      for (index, pin) in gone.prefix(2).enumerated() {
        text += (index > 0 ? ", " : "") + pin.node.text
        if !pin.name.isEmpty { text += " as “\(shown(pin.name))”" }
      }
      return text
    case .revoke:
      try revoke(id)
      return "\(called) is revoked"
    case .accept:
      let alarm = try accept(id)
      return "\(id.text) is trusted as “\(shown(alarm.name))” instead of \(alarm.pinned.text)"
    case .keep:
      let count = try keep(id)
      return "the pinned key stays; \(count) alarm\(count == 1 ? "" : "s") ended, and that key raises no further one"
    case .dismiss:
      let count = try dismiss(id)
      return "\(count) alarm\(count == 1 ? "" : "s") dismissed; the next attempt raises it again"
    }
  }
}

extension [UInt8] {
  init(_ name: DisplayName) { self = (0..<name.byteCount).map { name.byte($0) } }
}
