import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives
import Seal

/// Trust decisions beyond the proof of keys. The firmware implements pinned keys, deny-lists and authorities. A node
/// without a `NodeTrust` accepts every key.
public protocol NodeTrust: AnyObject {
  /// Whether `node` is refused because of its key alone.
  func refuses(_ node: NodeID) -> Bool
  /// Whether `node` is refused under its claimed name. A `proof` shows that the node has just proved its key, so an
  /// unused name may be pinned to that key, and a refusal may raise an alarm. An advertisement alone does neither.
  func refuses(_ node: NodeID, named name: DisplayName, proof: KeyProof?) -> Bool
  /// Whether `refuses` would refuse `node` under this name now. This method has no effect.
  func wouldRefuse(_ node: NodeID, named name: DisplayName) -> Bool
  /// Whether the node's key is pinned at this node.
  func isKnown(_ node: NodeID) -> Bool
  /// Whether the operator pinned the key of a node. A key that was pinned by trust on first use may be anyone's.
  func isPinnedByOperator(_ node: NodeID) -> Bool
  /// Whether a received deny-list of `issuer` would be accepted with a correct signature. This node must follow the
  /// issuer, and the list must be newer than the stored one. This method checks no signature.
  func wantsDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool
  /// Verifies and stores a deny-list that is wanted. An accepted list is forwarded.
  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> DenyListAnswer
  /// Calls `body` with the issuer and bytes of each deny-list that this node applies.
  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void)
}

/// The result of `takeDenyList`.
public enum DenyListAnswer: Sendable {
  case accepted
  case wrongSignature
  /// The list could not be stored.
  case notStored
}

extension Node {
  /// Applies a change of the revoked keys. Closes links to nodes that are now refused, and sends the deny-lists to all
  /// neighbours.
  public func trustChanged(now: Instant) {
    guard let trust else { return }
    // Encrypted sessions with refused peers end before the links are closed, so that the other end receives the reason.
    for association in associations.all where trust.refuses(association.peer) {
      endSession(with: association, .rejected, now)
      association.protection = .refused(.rejected)
      association.channel.close()
    }
    for slot in links.indices where links[slot].state != .idle && trust.refuses(links[slot].peer) {
      closeLink(slot, .notTrusted, retryAfterSeconds: Timing.notTrustedRetryAfterSeconds, now: now)
    }
    for slot in links.indices where links[slot].state == .up { sendDenyLists(on: slot) }
  }

  /// Applies a change of the pins. Ends the sessions and links of nodes whose names now belong to other keys. Requests
  /// the profiles of nodes whose names are no longer refused.
  public func pinsChanged(now: Instant) {
    guard let trust else { return }
    for association in associations.all {
      guard let name = claimedName(of: association.peer), trust.wouldRefuse(association.peer, named: name) else {
        continue
      }
      association.protection.seal?.reconsider(now: now) { _ in true }
      isPumpDue = true
    }
    for slot in links.indices where links[slot].state != .idle {
      guard let name = links[slot].peerName, trust.wouldRefuse(links[slot].peer, named: name) else { continue }
      closeLink(slot, .notTrusted, retryAfterSeconds: Timing.notTrustedRetryAfterSeconds, now: now)
    }
    for (node, name) in refusedNames.all where !trust.wouldRefuse(node, named: name) {
      refusedNames.forget(node)
      if let route = mesh.route(to: node) { flooding[Int(route.link)].owe(node, now: now) }
    }
  }

  /// The name in the newest profile of a node, even if this node refused the profile; nil if no name is known.
  public func claimedName(of node: NodeID) -> DisplayName? {
    if let epoch = mesh.epoch(of: node), let name = refusedNames.name(of: node, in: epoch) { return name }
    return directory.peer(node)?.name
  }

  /// Whether a verified advertisement is refused, because its node's key is revoked or the name in its profile belongs
  /// to another node. If the node has proved its key in an encrypted session, and in the boot epoch of the profile, the
  /// name is proven too. A refusal then ends the session.
  func refuses(_ source: NodeID, _ view: borrowing AdvertisementView, on slot: Int, _ now: Instant) -> Bool {
    guard let trust else { return false }
    switch view.kind {
    case .topology, .services: return trust.refuses(source)
    case .profile:
      guard let profile = try? ProfileView(view.body) else { return false }
      let epoch = view.epoch
      let seal = associations.association(with: source)?.protection.seal
      let session = seal.flatMap { $0.isAccepted && $0.peerEpoch == epoch ? $0 : nil }
      let proof = session == nil ? nil : sessionProof(of: source, now: now)
      guard trust.refuses(source, named: profile.name, proof: proof) else {
        refusedNames.forget(source, in: epoch)
        return false
      }
      if !trust.refuses(source) { refusedNames.note(source, profile.name, in: epoch, on: slot) }
      session?.reconsider(now: now) { _ in true }
      isPumpDue = isPumpDue || session != nil
      return true
    }
  }

  /// Whether the neighbour on a link that came up is accepted by key and name. If not, the link is closed.
  func isTrusted(_ slot: Int, _ now: Instant) -> Bool {
    guard let trust, let name = links[slot].peerName,
      trust.refuses(links[slot].peer, named: name, proof: proof(on: slot, now))
    else { return true }
    closeLink(slot, .notTrusted, retryAfterSeconds: Timing.notTrustedRetryAfterSeconds, now: now)
    return false
  }

  /// `peer` if the operator has pinned or revoked its key, otherwise `.none`: see `RecordCause.about`.
  func decided(_ peer: NodeID) -> NodeID {
    guard let trust, trust.isPinnedByOperator(peer) || trust.refuses(peer) else { return .none }
    return peer
  }

  private func proof(on slot: Int, _ now: Instant) -> KeyProof {
    KeyProof(from: linkSlots.source(of: slot), over: links[slot].bearer, at: now)
  }

  /// The proof of a peer's key by its encrypted session. The proof is charged to the first link of the route to the
  /// peer; nil without a route.
  public func sessionProof(of peer: NodeID, now: Instant) -> KeyProof? {
    route(to: peer).map { proof(on: Int($0.link), now) }
  }

  func receiveDenyList(
    _ header: FrameHeader, _ payload: RawSpan, on slot: Int, now: Instant
  ) throws(FrameError) {
    // A node without a `NodeTrust` follows no operator.
    guard let trust else { throw .notTrusted }
    _ = try DenyListView(payload)
    // Usually the list is already stored.
    guard trust.wantsDenyList(payload, from: header.source) else { throw .duplicate }
    // A list is not charged to the link's share of the check rate, because wrong signatures end the link. Neighbours do
    // not resend a list soon, so a list that has no room to wait is checked now.
    if !checks.takeOfPiece(now: now) && keepForPiece(header, payload, on: slot) { return }
    switch trust.takeDenyList(payload, from: header.source) {
    // `trustChanged` sends the list to all neighbours. By the serial number of the list, the neighbours recognise
    // whether they already have the list.
    case .accepted: trustChanged(now: now)
    case .wrongSignature:
      noteWrongSignature(on: slot, now)
      throw .wrongSignature
    case .notStored: throw .duplicate
    }
  }

  func sendDenyLists(on slot: Int) {
    trust?.forEachDenyList { issuer, bytes in
      let header = FrameHeader(
        type: .denyList, ttl: Limits.hopsMax, priority: .control, payloadByteCount: bytes.byteCount, source: issuer,
        identifier: 0)
      // A list that does not fit the queue now is sent at the next change, or when the link comes up again.
      if links[slot].append(header, bytes, from: FramePool.ownIngress) { wantTransmit(slot) }
    }
  }
}
