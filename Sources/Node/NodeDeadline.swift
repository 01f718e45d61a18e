import Link
import Mesh
import Primitives
import Session

extension Node {
  /// When `handle(.timeout)` is due.
  public func nextDeadline(now: Instant) -> Instant {
    var earliest = min(max(mesh.expiryDeadline, routeCost.expiryDue), connector.deadline, peerLossDeadline)
    earliest = min(earliest, originator.deadline, associations.deadline(now: now), quarantineEnd)
    earliest = min(earliest, min(epochRecovery.deadline, min(surplus.deadline, connector.demand.windowEnd)))
    earliest = min(earliest, min(parking.deadline, sessions.nextDeadline(now: now)))
    if hasChecksWaiting { earliest = min(earliest, max(pieceDue, now)) }
    earliest = min(earliest, max(intake.deadline, now))
    var rest = usedLinks
    while rest != 0 {
      let slot = Self.takeLowest(&rest)
      guard links[slot].isTimed else { continue }
      earliest = min(earliest, links[slot].deadline)
      if links[slot].isReceiving { earliest = min(earliest, flooding[slot].deadline) }
    }
    return earliest
  }

  /// When the next peer without a route is reported lost.
  var peerLossDeadline: Instant {
    let earliest = directory.deadline(isParked: false)
    return earliest != .never && isParked ? directory.deadline(isParked: true) : earliest
  }
}
