import Frame
import Journal
import Link
import Mesh
import Primitives

/// Links coming up and going down.
extension Node {
  /// A frame between neighbours; the link keeps its own state, the node draws the consequences.
  func receiveLinkLocal(_ header: FrameHeader, _ payload: RawSpan, _ type: FrameType, on slot: Int, now: Instant)
    throws(FrameRefusal)
  {
    let before = links[slot].state
    defer {
      let after = links[slot].state
      if before == .opening && after == .up { linkCameUp(slot, now) }
      if case .closed(let reason) = after { linkWentDown(slot, reason, now) }
      linkMeasured(slot)
      if links[slot].hasFrames { wantTransmit(slot) }
    }
    try links[slot].receive(header, payload, type, local: settings.id, now: now)
  }

  func closeLink(_ slot: Int, _ reason: CloseReason, retryAfterSeconds: UInt16 = 0, now: Instant) {
    guard isOpen(slot) else { return }
    links[slot].close(reason, retryAfterSeconds: retryAfterSeconds, local: settings.id)
    linkWentDown(slot, reason, now)
  }

  /// The rim says that the stream is gone.
  func linkClosed(_ slot: Int, _ now: Instant) {
    if links[slot].state == .idle { return }
    if isOpen(slot) { linkWentDown(slot, .streamLost, now) }
    connector.linkClosed(
      slot, peer: links[slot].peer, retryAfterSeconds: links[slot].retryAfterSeconds, now: now)
    links[slot].reset()
    forgetCommands(slot)
  }

  private func linkCameUp(_ slot: Int, _ now: Instant) {
    journal.record(
      .notice, .linkUp, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue),
      UInt64(links[slot].peerCapabilities.rawValue), UInt64(links[slot].payloadBytesMax), node: links[slot].peer)
    guard keepsAgainstDuplicates(slot, now) else { return }
    connector.linkUp(slot)
    mesh.setLink(
      slot, peer: links[slot].peer, bearer: links[slot].bearer, cost: links[slot].meter.cost,
      payloadBytesMax: links[slot].payloadBytesMax)
  }

  /// Tell the mesh what a link has shown of itself.
  func linkMeasured(_ slot: Int) {
    guard links[slot].state == .up else { return }
    mesh.setCost(slot, links[slot].meter.cost)
    if links[slot].isProven { mesh.proveLink(slot) }
  }

  func linkWentDown(_ slot: Int, _ reason: CloseReason, _ now: Instant) {
    journal.record(
      .notice, .linkDown, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue), UInt64(reason.rawValue),
      (now - links[slot].upSince).milliseconds / 1000, node: links[slot].peer)
    mesh.removeLink(slot)
    wantClose(slot)
  }

  /// Of two links to one neighbour over one bearer one stays: that of the neighbour's later life; in one life
  /// the one that the lower id dialled; when the same side dialled both, the newer one, because that side has
  /// given the older one up.
  private func keepsAgainstDuplicates(_ slot: Int, _ now: Instant) -> Bool {
    let peer = links[slot].peer
    for other in links.indices where other != slot && links[other].state == .up {
      guard links[other].peer == peer && links[other].bearer == links[slot].bearer else { continue }
      let peerShouldDial = peer < settings.id
      let keepsNew =
        links[other].peerEpoch != links[slot].peerEpoch
        ? links[other].peerEpoch < links[slot].peerEpoch
        : links[other].isInbound == links[slot].isInbound || links[slot].isInbound == peerShouldDial
      journal.record(
        .info, .linkDuplicate, at: now, link: UInt8(keepsNew ? other : slot), UInt64(links[slot].bearer.rawValue),
        UInt64(links[other].bearer.rawValue), node: peer)
      closeLink(keepsNew ? other : slot, .duplicate, now: now)
      if !keepsNew { return false }
    }
    return true
  }
}
