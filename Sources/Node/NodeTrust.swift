import Channel
import Frame
import Journal
import Link
import Primitives
import Seal

/// Whom this node has to do with, beyond that keys are proven. The firmware brings pins, deny-lists and authorities; a node
/// without any has to do with everybody.
public protocol NodeTrust: AnyObject {
  /// Whether this node is refused for its key alone.
  func refuses(_ node: NodeID) -> Bool
  /// Whether this node is refused under the name that it gives itself. `isProven`: its key has just shown that it lives, so
  /// a name that nobody had may be its own from now on; an advertisement alone proves no such thing.
  func refuses(_ node: NodeID, named name: DisplayName, isProven: Bool) -> Bool
  /// A deny-list of `issuer` arrived. True when it is authentic, new, and counts from now on: pass it on.
  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool
  /// Call `body` with each deny-list that counts here, and its issuer.
  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void)
}

extension Node {
  /// A key was revoked: links to nodes that are refused now are closed, and the deny-lists go to every neighbour.
  public func trustChanged(now: Instant) {
    guard let trust else { return }
    for slot in links.indices where isOpen(slot) && trust.refuses(links[slot].peer) {
      closeLink(slot, .notTrusted, retryAfterSeconds: Timing.notTrustedRetryAfterSeconds, now: now)
    }
    for slot in links.indices where links[slot].state == .up { sendDenyLists(on: slot) }
    for association in associations.all where trust.refuses(association.peer) {
      association.protection = .refused(.rejected)
      association.channel.close()
    }
  }

  /// An advertisement of this node is not wanted: its key is revoked, or the name in its profile is another's.
  func refuses(_ source: NodeID, _ view: borrowing AdvertisementView) -> Bool {
    guard let trust else { return false }
    switch view.kind {
    case .topology: return trust.refuses(source)
    case .profile:
      guard let profile = try? ProfileView(view.body) else { return false }
      return trust.refuses(source, named: profile.name, isProven: false)
    }
  }

  /// The neighbour on a link that came up is welcome by key and name; else the link is closed.
  func isTrusted(_ slot: Int, _ now: Instant) -> Bool {
    guard let trust, let name = links[slot].peerName,
      trust.refuses(links[slot].peer, named: name, isProven: true)
    else { return true }
    closeLink(slot, .notTrusted, retryAfterSeconds: Timing.notTrustedRetryAfterSeconds, now: now)
    return false
  }

  func receiveDenyList(
    _ header: FrameHeader, _ payload: RawSpan, on slot: Int, now: Instant
  ) throws(FrameRefusal) {
    // Who brings no trust follows no operator.
    guard let trust else { throw .notTrusted }
    _ = try DenyListView(payload)
    // The commonest reason is that it is held already.
    guard trust.takeDenyList(payload, from: header.source) else { throw .duplicate }
    // To all who may not have it: they find out by its serial whether they do.
    trustChanged(now: now)
  }

  func sendDenyLists(on slot: Int) {
    trust?.forEachDenyList { issuer, bytes in
      let header = FrameHeader(
        type: .denyList, ttl: Limits.hopsMax, priority: .control, payloadByteCount: bytes.byteCount, source: issuer,
        identifier: 0)
      // What does not fit now is told with the next change, or when the link comes up again.
      if links[slot].append(header, bytes, from: FramePool.ownIngress) { wantTransmit(slot) }
    }
  }
}
