import Frame
import Journal
import Link
import Mesh
import Primitives
import Session

/// Links that come up and go down.
extension Node {
  /// Handles a link-local frame. `Link` updates the link's state, and the node reacts to changes of that state.
  func receiveLinkLocal(_ header: FrameHeader, _ payload: RawSpan, _ type: FrameType, on slot: Int, now: Instant)
    throws(FrameError)
  {
    let before = links[slot].state
    let source = linkSlots.ingress(slot)
    defer {
      let after = links[slot].state
      if before == .opening && after == .up { linkCameUp(slot, now) }
      if after == .parking && links[slot].isParkingAgreed { wantClose(slot) }
      if case .closed(let reason) = after { linkWentDown(slot, reason, now) }
      if after == .closed(.duplicate) && before != after { linkRefused(slot, from: source, now) }
      linkMeasured(slot, now)
      if links[slot].hasFrames { wantTransmit(slot) }
    }
    try links[slot].receive(header, payload, type, local: settings.id, now: now)
  }

  func closeLink(_ slot: Int, _ reason: CloseReason, retryAfterSeconds: UInt16 = 0, now: Instant) {
    let isParked = links[slot].state == .parked
    guard isOpen(slot) || isParked else { return }
    links[slot].close(reason, retryAfterSeconds: retryAfterSeconds, local: settings.id)
    linkWentDown(slot, reason, now)
    // A parked link has no stream whose end would be reported.
    if isParked { linkClosed(slot, now) }
  }

  /// Handles the rim's report that the stream is closed.
  func linkClosed(_ slot: Int, _ now: Instant) {
    switch links[slot].state {
    case .idle, .parked: return
    case .parking: return linkParked(slot, now)
    case .opening where links[slot].isResumed: return linkParked(slot, now)
    case .opening, .up, .closed: break
    }
    if isOpen(slot) { linkWentDown(slot, .streamLost, now) }
    let secondsRefused = signatureOffenders.secondsRefused(links[slot].peer, now: now)
    connector.linkClosed(
      slot, peer: links[slot].peer, retryAfterSeconds: max(links[slot].retryAfterSeconds, secondsRefused),
      isFailure: links[slot].state != .closed(.notNeeded), now: now)
    links[slot].reset()
    forgetOutputs(slot)
  }

  /// Handles that the neighbour closed the link because it has another link to this node's key.
  private func linkRefused(_ slot: Int, from source: UInt64, _ now: Instant) {
    let peer = links[slot].peer
    let isOwn = links.indices.contains { links[$0].peer == peer && (isOpen($0) || links[$0].state == .parked) }
    if isOwn || !duplicateKeys.linkRefused(by: peer, from: source, now: now) { return }
    journal.record(.error, .keyHeldElsewhere, at: now, node: peer)
  }

  private func linkCameUp(_ slot: Int, _ now: Instant) {
    let isResumed = links[slot].isResumed
    journal.record(
      isResumed ? .info : .notice, .linkUp, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue),
      UInt64(links[slot].peerCapabilities.rawValue), UInt64(links[slot].payloadBytesMax), node: links[slot].peer)
    guard isTrusted(slot, now), keepsAgainstDuplicates(slot, now) else { return }
    connector.linkUp(slot)
    if isResumed {
      linkResumed(slot, now)
    } else {
      parking.talks(slot)
      addToMesh(slot, now)
    }
    sendDenyLists(on: slot)
  }

  func addToMesh(_ slot: Int, _ now: Instant) {
    mesh.setLink(
      slot, peer: links[slot].peer, bearer: links[slot].bearer, cost: statedCost(slot, now),
      payloadBytesMax: links[slot].payloadBytesMax)
  }

  /// Passes a link's measured cost and `isProven` to the mesh. Parked links are included, because their quarantine may
  /// end.
  func linkMeasured(_ slot: Int, _ now: Instant) {
    guard links[slot].isStanding else { return }
    let peer = links[slot].peer
    let bearer = UInt64(links[slot].bearer.rawValue)
    let carrier = mesh.link(to: peer)
    let cost = mesh.cost(of: slot)
    mesh.setCost(slot, statedCost(slot, now))
    if links[slot].isProven {
      mesh.proveLink(slot)
      duplicateKeys.linkStands(with: peer)
    }
    if mesh.cost(of: slot) != cost {
      let new = UInt64(mesh.cost(of: slot))
      journal.record(.info, .linkCostStated, at: now, link: UInt8(slot), bearer, new, UInt64(cost), node: peer)
    }
    if let after = mesh.link(to: peer), let carrier, after != carrier {
      let (new, old) = (UInt64(links[after].bearer.rawValue), UInt64(links[carrier].bearer.rawValue))
      journal.record(.notice, .linkCarries, at: now, link: UInt8(after), new, old, node: peer)
    }
  }

  /// The cost to advertise for a link. The cost of a quarantined link exceeds that of every link that is not
  /// quarantined.
  private func statedCost(_ slot: Int, _ now: Instant) -> UInt16 {
    let cost = min(links[slot].meter.cost, LinkMeter.costMax)
    return flaps.isQuarantined(links[slot].peer, links[slot].bearer, now: now) ? LinkMeter.costMax + 1 + cost : cost
  }

  /// Restores the cost of links whose quarantine has ended.
  func reviewQuarantine(_ now: Instant) {
    quarantineEnd = flaps.deadline(after: now)
    for slot in links.indices { linkMeasured(slot, now) }
  }

  /// Handles a link's deadline and returns its new state.
  func handleLinkTimeout(_ slot: Int, _ now: Instant) -> Link.State {
    let wasOpening = links[slot].state == .opening
    let wasStalled = links[slot].isStalled
    let byteCount = UInt64(links[slot].queuedByteCount)
    links[slot].handleTimeout(local: settings.id, now: now, isHeld: sinks[slot]?.hasUnsentBytes == true)
    let span = links[slot].stalledSpan(now: now)
    if wasOpening && links[slot].state == .parking { wantClose(slot) }
    if case .closed = links[slot].state {
      if span >= .seconds(1) {
        journal.record(
          .warning, .linkTakesNothing, at: now, link: UInt8(slot), span.milliseconds / 1000, byteCount,
          node: links[slot].peer)
      } else {
        journal.record(.warning, .neighbourDead, at: now, link: UInt8(slot), node: links[slot].peer)
      }
    } else if links[slot].isStalled && !wasStalled {
      journal.record(.notice, .linkStalled, at: now, link: UInt8(slot), byteCount, node: links[slot].peer)
    }
    return links[slot].state
  }

  /// Handles that the stream of a stalled link accepted frames again.
  func linkGoesOn(_ slot: Int, _ now: Instant) {
    links[slot].goesOn(now: now)
    journal.record(
      .notice, .linkResumed, at: now, link: UInt8(slot), UInt64(links[slot].queuedByteCount), node: links[slot].peer)
  }

  func linkWentDown(_ slot: Int, _ reason: CloseReason, _ now: Instant) {
    journal.record(
      .notice, .linkDown, at: now, link: UInt8(slot), UInt64(links[slot].bearer.rawValue), UInt64(reason.rawValue),
      (now - links[slot].upSince).milliseconds / 1000, node: links[slot].peer)
    surplus.remove(slot)
    parking.forget(slot)
    let source = linkSlots.ingress(slot)
    linkSlots.close(slot)
    associations.linkClosed(slot)
    provenPeers.linkClosed(slot)
    refusedNames.linkClosed(slot)
    flooding[slot] = LinkFlooding()
    waitingFrames.remove(slot)
    sessions.linkLost(slot)
    passOnRequest(of: slot)
    if mesh.removeLink(slot) { linkBroke(slot, from: source, reason, now) }
    wantClose(slot)
  }

  /// Handles the loss of a link that was up. Links that break may be flapping. Links that were closed on purpose are
  /// not recorded.
  private func linkBroke(_ slot: Int, from source: UInt64, _ reason: CloseReason, _ now: Instant) {
    switch reason {
    case .shutdown, .duplicate, .full, .identityMismatch, .unsupportedVersion, .notTrusted, .notNeeded, .parked:
      return
    case .timedOut, .streamLost, .protocolError: break
    }
    let life = now - links[slot].upSince
    let (peer, bearer) = (links[slot].peer, links[slot].bearer)
    guard let span = flaps.linkBroke(peer, bearer, from: source, life: life, now: now) else { return }
    quarantineEnd = flaps.deadline(after: now)
    journal.record(
      .notice, .linkQuarantined, at: now, link: UInt8(slot), UInt64(bearer.rawValue), span.milliseconds / 1000,
      node: peer)
  }

  /// Closes duplicate links to the neighbour of the link in `slot`. Returns false if the link in `slot` itself was
  /// closed. Links from an earlier epoch of the neighbour are closed. If two links use one bearer, the link that the
  /// node with the lower id dialled stays. If one side dialled both links, the newer link stays, because that side has
  /// given up the older one. An older link over the same bearer that is parked or being parked is closed, because
  /// frames in its queue would otherwise go on waiting.
  ///
  /// If both ends dialled, the duplicate is closed only when the link that stays is up at both ends. If the duplicate
  /// were closed earlier, the neighbour would advertise that this node is lost, and 5 s later that it is back.
  private func keepsAgainstDuplicates(_ slot: Int, _ now: Instant) -> Bool {
    let peer = links[slot].peer
    for other in links.indices where other != slot && links[other].peer == peer {
      let isOneBearer = links[other].bearer == links[slot].bearer
      switch links[other].state {
      case .parking where isOneBearer, .parked where isOneBearer:
        closeLink(other, .duplicate, now: now)
        continue
      case .up: break
      case .idle, .opening, .closed, .parking, .parked: continue
      }
      let isOneLife = links[other].peerEpoch == links[slot].peerEpoch
      if isOneLife && !isOneBearer { continue }
      let isCrossed = links[other].isInbound != links[slot].isInbound
      let keepsNew =
        !isOneLife
        ? links[other].peerEpoch < links[slot].peerEpoch
        : !isCrossed || links[slot].isInbound == (peer < settings.id)
      let kept = keepsNew ? slot : other
      if isOneLife && isCrossed && !links[kept].isMutual {
        // The pong to this ping proves that the neighbour has the link up.
        if links[kept].pingNow(local: settings.id, now: now) { wantTransmit(kept) }
        continue
      }
      closeDuplicate(keepsNew ? other : slot, besides: kept, now)
      if !keepsNew { return false }
    }
    return true
  }

  /// Handles that the neighbour is now known to have the link in `slot` up. Closes a duplicate link that was dialled
  /// simultaneously.
  func closeDuplicates(of slot: Int, _ now: Instant) {
    let (peer, bearer, epoch) = (links[slot].peer, links[slot].bearer, links[slot].peerEpoch)
    guard links[slot].isInbound == (peer < settings.id) else { return }
    for other in links.indices where other != slot && links[other].peer == peer && links[other].bearer == bearer {
      switch links[other].state {
      case .up where links[other].peerEpoch == epoch, .parking, .parked: closeDuplicate(other, besides: slot, now)
      case .idle, .opening, .up, .closed: break
      }
    }
  }

  private func closeDuplicate(_ slot: Int, besides kept: Int, _ now: Instant) {
    journal.record(
      .info, .linkDuplicate, at: now, link: UInt8(slot), UInt64(links[kept].bearer.rawValue),
      UInt64(links[slot].bearer.rawValue), node: links[slot].peer)
    closeLink(slot, .duplicate, now: now)
  }
}
