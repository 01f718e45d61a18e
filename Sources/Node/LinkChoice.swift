import Frame
import Link
import Mesh
import Primitives

/// With whom this node links.
extension Node {
  /// The next candidate to dial.
  func nextDial(_ now: Instant) -> UInt32? {
    if connector.choose(now: now, isLinked: isLinked) { findSurplusLinks(now) }
    return connector.nextDial(now: now, isLinked: isLinked)
  }

  /// Who dialled a link may close it: the other end dials if it wants the link.
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

  /// Closes links that are not wanted, if nothing waits in their queues and their neighbours stay in reach.
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

  private func isLinked(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    links.indices.contains { isOpen($0) && links[$0].peer.high == hint && links[$0].bearer == bearer }
  }
}
