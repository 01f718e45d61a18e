import Frame
import Link
import Mesh
import Primitives

/// Chooses the nodes with which this node links.
extension Node {
  /// Returns the next candidate to dial. If there is no candidate to dial, parks or closes links to free connections.
  func nextDial(_ now: Instant) -> UInt32? {
    if expireParked(now) { settle(now) }
    callParked(now)
    if connector.choose(now: now, standing: standing) { findSurplusLinks(now) }
    connector.bluetoothSlots = bluetoothSlots.toDial
    if let handle = connector.nextDial(now: now, isLinked: { standing($0, $1) == .linked }, isReached: isReached) {
      callTried(handle, now)
      return handle
    }
    if settings.relays {
      parkIdle(now)
    } else {
      leaveSlotForRelay(now)
      leaveParkedRelay(now)
    }
    return nil
  }

  /// Finds surplus links, which this node dialled and no longer wants. This node may close a surplus link. If the other
  /// node wants a closed link, that node dials.
  private func findSurplusLinks(_ now: Instant) {
    for slot in links.indices {
      if links[slot].state == .up, !links[slot].isInbound,
        let changedAt = connector.domainChange(ofUnwanted: links[slot].peer.high, links[slot].bearer)
      {
        surplus.add(slot, domainChangedAt: changedAt, now: now)
      } else {
        surplus.remove(slot)
      }
    }
  }

  /// Closes the surplus links that are due, if their queues are empty and their neighbours remain reachable.
  func closeSurplusLinks(_ now: Instant) {
    while let slot = surplus.next(now: now) {
      if links[slot].hasFrames || !mesh.reaches(links[slot].peer, without: slot) {
        surplus.postpone(slot, now: now)
      } else {
        closeLink(slot, .notNeeded, now: now)
      }
    }
  }

  func isUp(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    links.indices.contains {
      links[$0].state == .up && links[$0].peer.high == hint && links[$0].bearer == bearer
    }
  }

  func standing(_ hint: UInt64, _ bearer: BearerKind) -> Connector.Standing {
    for slot in links.indices where links[slot].peer.high == hint && links[slot].bearer == bearer {
      if isOpen(slot) { return .linked }
      if links[slot].state == .parked {
        return parking.isCalled(slot) ? .called(parking.turns[slot].call) : .parked
      }
    }
    return .none
  }

  /// Whether a route leads to a node, through other nodes or over another bearer.
  private func isReached(_ hint: UInt64) -> Bool {
    for index in 0..<mesh.indexEnd where mesh.node(at: index).high == hint && mesh.route(at: index) != nil {
      return true
    }
    return false
  }
}
