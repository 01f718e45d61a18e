import Bearer
import Diagnostics
import Frame
import Identity
import Link
import Node
import Primitives
import Reactor
import SecureTransport
import Trust

/// Notes why dials, handshakes and links ended, for `causeway explain`.
extension Relay {
  /// A bearer could not make a stream.
  func noteDialFailure(_ token: UInt32, _ candidate: Candidate, _ reason: String) {
    let hint = node.plan(token, now: loop.now)?.hint ?? candidate.hint
    // Bearers that put the address before the reason do so for the journal.
    let address = Array(candidate.address.text.utf8) + [0x3A, 0x20]
    let bare =
      reason.utf8.starts(with: address) ? String(decoding: reason.utf8.dropFirst(address.count), as: UTF8.self) : reason
    let claimed = NodeID(high: hint, low: 0)
    contactFailures.note(
      claimed, candidate.bearer, candidate.address, isInbound: false, isPinned: isPinned(claimed), .dialFailed(bare),
      now: loop.now)
  }

  /// A stream is proved, and the node gave it no slot.
  func noteNoSlot(_ driver: LinkDriver) {
    note(driver, driver.peer == node.settings.id ? .ownKey : .fullHere)
  }

  /// A driver has ended; its link, if it had one, is still in its slot.
  func noteEnd(_ driver: LinkDriver, _ reason: String) {
    if let cause = cause(driver, reason) { note(driver, cause) }
  }

  private func note(_ driver: LinkDriver, _ cause: ContactCause) {
    let handoff = driver.handoff
    // That the key is this node's says nothing of who is meant to be there.
    var peer = driver.peer == node.settings.id ? .none : driver.peer
    if peer == .none && !handoff.isInbound {
      peer = NodeID(high: node.plan(handoff.token, now: loop.now)?.hint ?? 0, low: 0)
    }
    contactFailures.note(
      peer, handoff.bearer, handoff.remote, isInbound: handoff.isInbound, isPinned: isPinned(peer), cause,
      now: loop.now)
  }

  /// Whether the operator pinned the node, or one with the upper half of its id that discovery claims: such claims take one
  /// place for each pin and bearer.
  private func isPinned(_ node: NodeID) -> Bool { trust.pins.contains { $0.isByOperator && $0.node.mayBe(node) } }

  /// Nil for an end that is no failure.
  private func cause(_ driver: LinkDriver, _ reason: String) -> ContactCause? {
    switch driver.streamEnd {
    case .refused(let refusal): return .refusedHere(TrustFault(refusal))
    // Alerts about certificates (RFC 8446, section 6.2).
    case .alert(let alert) where (42...48).contains(alert) && alert != 47: return .refusedThere(alert: alert)
    // What admission sends when it has no room.
    case .alert(80): return .fullThere
    case .noPeerCertificate, .peerKeyNotP256: return .refusedHere(.noUsableKey)
    case .closedHere, .closedByPeer, .truncated, .alert, .library, .notAUnit, .sealedTooEarly, .sealedReplayed,
      .sealedForged, .outgoingOverflow, nil:
      break
    }
    guard let slot = driver.slot else {
      // The node gave no slot, which `noteNoSlot` has noted, or this daemon stops.
      if driver.streamEnd == .closedHere || driver.isGivenUp { return nil }
      return driver.isTimedOut ? .handshakeTimedOut : .handshakeFailed(reason)
    }
    let link = node.link(slot)
    switch link.state {
    case .idle, .parking, .parked: return nil
    case .opening, .up: return .broken(reason)
    case .closed(let close):
      // Only a goodbye of the other end asks for a pause.
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
