import Bearer
import Explain
import Frame
import Link
import Node
import Primitives
import Reactor
import SecureTransport
import Trust

/// Records why dials, handshakes and links failed, for `causeway explain`.
final class ContactRecorder {
  private let loop: EventLoop
  private let node: Node
  private let trust: TrustKeeper
  private var failures = ContactFailures()

  init(_ loop: EventLoop, _ node: Node, _ trust: TrustKeeper) {
    self.loop = loop
    self.node = node
    self.trust = trust
  }

  /// The failures that are not too old to matter.
  var all: [ContactFailure] { failures.all(now: loop.now) }

  /// Records that a bearer could not connect to a candidate.
  func noteDialFailure(_ token: UInt32, _ candidate: Candidate, _ reason: String) {
    let hint = node.plan(token, now: loop.now)?.hint ?? candidate.hint
    // Some bearers begin the reason with the address, for the journal. The record has a field for the address.
    let address = Array(candidate.address.text.utf8) + [0x3A, 0x20]
    let bare =
      reason.utf8.starts(with: address) ? String(decoding: reason.utf8.dropFirst(address.count), as: UTF8.self) : reason
    let claimed = NodeID(high: hint, low: 0)
    failures.note(
      claimed, candidate.bearer, candidate.address, isInbound: false, isPinned: isPinned(claimed), .dialFailed(bare),
      now: loop.now)
  }

  /// Records that the node had no link slot for a stream whose peer proved its key.
  func noteNoSlot(_ driver: LinkDriver) {
    note(driver, driver.peer == node.settings.id ? .ownKey : .fullHere)
  }

  /// Records why a driver ended. Call this method while the driver's link, if any, is still in its slot.
  func noteEnd(_ driver: LinkDriver, _ reason: String) {
    if let cause = cause(driver, reason) { note(driver, cause) }
  }

  private func note(_ driver: LinkDriver, _ cause: ContactCause) {
    let handoff = driver.handoff
    // If the peer has this node's own key, the key does not show which node was expected at the address.
    var peer = driver.peer == node.settings.id ? .none : driver.peer
    if peer == .none && !handoff.isInbound {
      peer = NodeID(high: node.plan(handoff.token, now: loop.now)?.hint ?? 0, low: 0)
    }
    failures.note(
      peer, handoff.bearer, handoff.remote, isInbound: handoff.isInbound, isPinned: isPinned(peer), cause,
      now: loop.now)
  }

  /// Whether the operator pinned the node. If only the upper half of the id is known, a pinned id with the same upper
  /// half is sufficient. Discovery can forge a match of upper halves, but `ContactFailures` stores only one failure for
  /// each pin and bearer.
  private func isPinned(_ node: NodeID) -> Bool { trust.pins.contains { $0.isByOperator && $0.node.mayBe(node) } }

  /// Why this node refuses the key of `id` now; nil if it does not refuse the key, or has not received it.
  func trustFault(_ id: NodeID) -> TrustFault? {
    if trust.isDenied(id) { return .revoked }
    // A link or session under another name, or from before the pin, does not show that the name is accepted.
    if let name = node.claimedName(of: id), let refusal = trust.refusal(of: id, under: [UInt8](name)) {
      return TrustFault(refusal)
    }
    // Earlier refusals have no effect once the key was accepted. A route to the node through other nodes does not show
    // that the key was accepted.
    if isAccepted(id) { return nil }
    if trust.alarms.all.contains(where: { $0.offered == id }) { return .otherKeyPinned }
    guard let stranger = trust.strangers.all.first(where: { $0.id == id }) else { return nil }
    switch stranger.reason {
    // Pins and deny-lists may have changed since the refusal.
    case .denied: return nil
    case .keyChanged: return trust.refusal(of: id, under: stranger.name).map { TrustFault($0) }
    case .expired, .notYetValid, .unknownIssuer, .authorityAsLeaf, .pathTooLong, .issuerNotAuthority, .revoked,
      .wrongUsage, .wrongSignature, .weakAlgorithm, .revocationListForged, .chainTooLong, .noUsableKey,
      .malformedSerial, .revocationUnknown:
      return TrustFault(stranger.reason)
    }
  }

  /// Whether the key of `id` was accepted for a link or an end-to-end session that exists now.
  private func isAccepted(_ id: NodeID) -> Bool {
    if node.hasSession(with: id) { return true }
    for slot in 0..<Limits.linksMax where node.link(slot).peer == id && node.link(slot).isStanding { return true }
    return false
  }

  /// The cause of the failure for the record; nil if the driver's end is not a failure.
  private func cause(_ driver: LinkDriver, _ reason: String) -> ContactCause? {
    switch driver.streamEnd {
    case .refused(let refusal): return .refusedHere(TrustFault(refusal))
    case .alert(let alert) where (42...48).contains(alert) && alert != 47: return .refusedThere(alert: alert)
    // The other node's admission sends this alert (internal_error) for lack of room.
    case .alert(80): return .fullThere
    case .noPeerCertificate, .peerKeyNotP256: return .refusedHere(.noUsableKey)
    case .closedHere, .closedByPeer, .truncated, .alert, .library, .notAUnit, .sealedTooEarly, .sealedReplayed,
      .sealedForged, .outgoingOverflow, nil:
      break
    }
    guard let slot = driver.slot else {
      // With `closedHere`, either `noteNoSlot` has already recorded that there is no link slot, or the daemon is
      // stopping.
      if driver.streamEnd == .closedHere || driver.cause == .givenUp { return nil }
      return driver.cause == .timedOut ? .handshakeTimedOut : .handshakeFailed(reason)
    }
    let link = node.link(slot)
    switch link.state {
    case .idle, .parking, .parked: return nil
    case .opening, .up: return .broken(reason)
    case .closed(let close):
      // Only a goodbye from the other end sets `retryAfterSeconds`, so this value shows which end closed the link.
      let isTheirs = link.retryAfterSeconds > 0
      switch close {
      case .duplicate: return node.isKeyHeldElsewhere(at: link.peer) ? .keyHeldElsewhere : nil
      case .notNeeded, .parked: return nil
      case .shutdown: return .stopped
      case .full: return isTheirs ? .fullThere : .fullHere
      case .notTrusted:
        return isTheirs ? .refusedThere(alert: nil) : .refusedHere(trustFault(link.peer) ?? .otherKeyPinned)
      case .timedOut: return .silent
      case .streamLost: return .broken(reason)
      case .protocolError, .identityMismatch, .unsupportedVersion: return .protocolFault("\(close.name)")
      }
    }
  }
}

extension TrustFault {
  init(_ refusal: PeerRefusal) {
    switch refusal {
    case .denied: self = .revoked
    case .keyChanged: self = .otherKeyPinned
    case .noUsableKey: self = .noUsableKey
    case .expired, .notYetValid, .unknownIssuer, .authorityAsLeaf, .pathTooLong, .issuerNotAuthority, .revoked,
      .wrongUsage, .wrongSignature, .weakAlgorithm, .revocationListForged, .chainTooLong, .revocationUnknown,
      .malformedSerial:
      self = .certificate("\(refusal.text)")
    }
  }
}
