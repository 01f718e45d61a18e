import Frame
import Link
import Mesh
import Primitives

/// The connections of the Bluetooth adapter: how many are free, and which links give up their connections. A leaf is a
/// node that does not forward for others.
extension Node {
  /// `taken` is the number of the adapter's connections that links use. `toDial` is the number that is left for dials,
  /// including dials in progress. While leaves take turns at the connections (`Parking`), the last free connection is
  /// kept for inbound links.
  var bluetoothSlots: (toDial: Int, taken: Int) {
    var taken = 0
    var takesTurns = parking.parked != 0
    var slots = bluetoothLinkSlots
    while let slot = slots.next() {
      if links[slot].state == .parked { continue }
      taken += 1
      takesTurns = takesTurns || isParkable(slot)
    }
    let isKept =
      takesTurns && settings.relays && settings.bluetoothSlots >= Parking.slotsMin && !parking.isCallOverdue
    return (settings.bluetoothSlots - taken - (isKept ? 1 : 0), taken)
  }

  /// Parks idle leaves until a connection is free for an inbound link and for the next dials.
  func parkIdle(_ now: Instant) {
    guard bluetoothLinks != 0, settings.bluetoothSlots >= Parking.slotsMin else { return }
    var leaving = 0
    var slots = bluetoothLinkSlots
    while let slot = slots.next() {
      switch links[slot].state {
      case .parking, .closed: leaving += 1
      case .idle, .opening, .up, .parked: break
      }
    }
    let taken = bluetoothSlots.taken + connector.bluetoothDials
    let free = settings.bluetoothSlots - taken + leaving
    let wanted = 1 + min(connector.dialsWithoutSlot, Parking.slotsAhead)
    // When several leaves are parked, one more connection is kept free, so the next call by this node need not wait.
    // Only idle leaves are parked for that connection.
    let spare = wanted == 1 && parking.parked.nonzeroBitCount > 1 ? 1 : 0
    var missing = wanted + spare - free
    while missing > 0, parking.parked.nonzeroBitCount < Parking.parkedMax,
      let (slot, due) = nextToPark(now, isUrgent: missing > spare)
    {
      if due > now {
        parking.deadline = min(parking.deadline, due)
        return
      }
      let isIdle = idleTime(slot) <= now
      links[slot].park(
        retryAfterSeconds: isIdle ? 0 : parking.pauseSeconds(slots: slotsForLeaves), local: settings.id, now: now)
      wantTransmit(slot)
      missing -= 1
    }
  }

  /// Closes the newest link between this leaf and another leaf if no connection is free. A leaf without a free
  /// connection is out of reach of relays.
  func leaveSlotForRelay(_ now: Instant) {
    if bluetoothSlots.taken < settings.bluetoothSlots { return }
    var newest: Int?
    var slots = bluetoothLinkSlots
    while let slot = slots.next() {
      switch links[slot].state {
      case .closed, .parking: return
      case .idle, .opening, .parked: continue
      case .up: break
      }
      if links[slot].peerCapabilities.contains(.relay) { continue }
      if let known = newest, links[known].upSince >= links[slot].upSince { continue }
      newest = slot
    }
    guard let newest else { return }
    closeLink(newest, .full, retryAfterSeconds: Timing.fullRetryAfterSeconds, now: now)
    settle(now)
  }

  /// Closes this leaf's parked link to one relay if the leaf has a stream to another relay. With both links, each visit
  /// would take a connection from another leaf, and all updates would arrive twice. One surplus link is closed at a
  /// time, `Parking.leaveTime` after the link was parked.
  func leaveParkedRelay(_ now: Instant) {
    guard parking.parked != 0, hasRelayUp else { return }
    var slots = Slots(parking.parked)
    while let slot = slots.next() {
      let link = links[slot]
      guard link.peerCapabilities.contains(.relay), !link.hasFrames, !parking.isCalled(slot) else { continue }
      let due = parking.turns[slot].parkedAt + Parking.leaveTime
      if due > now {
        parking.deadline = min(parking.deadline, due)
      } else if mesh.reaches(link.peer, without: slot) {
        closeLink(slot, .notNeeded, now: now)
        return settle(now)
      }
    }
  }

  /// Whether this node has a stream to a relay that discovery knows. If discovery did not know that relay, this leaf
  /// would again dial the relay that it left.
  private var hasRelayUp: Bool {
    links.indices.contains {
      links[$0].state == .up && links[$0].peerCapabilities.contains(.relay)
        && connector.knows(links[$0].peer.high, links[$0].bearer)
    }
  }

  /// The link to park next, and when. This link is the link that has been idle longest. If no link is idle, the link to
  /// park is due first: to become idle or, if `isUrgent`, to end its turn.
  private func nextToPark(_ now: Instant, isUrgent: Bool) -> (slot: Int, due: Instant)? {
    var next: (slot: Int, due: Instant)?
    var idlest: Int?
    var slots = bluetoothLinkSlots
    while let slot = slots.next() {
      if !isParkable(slot) { continue }
      let idleAt = idleTime(slot)
      if idleAt <= now {
        if let known = idlest, parking.turns[known].talkedAt <= parking.turns[slot].talkedAt { continue }
        idlest = slot
      }
      let due = isUrgent ? min(idleAt, max(parking.turns[slot].turnAt, links[slot].upSince) + Parking.turnMax) : idleAt
      if let known = next, known.due <= due { continue }
      next = (slot, due)
    }
    return idlest.map { ($0, now) } ?? next
  }

  /// When a leaf becomes idle, or `.never`. A leaf that is no peer is not idle. Nor is a leaf while either end has
  /// something to send, or while its frames wait in another link's queue.
  private func idleTime(_ slot: Int) -> Instant {
    let link = links[slot]
    if link.hasFrames || mesh.mayHaveUnsent(slot) || directory.peer(link.peer) == nil { return .never }
    if flooding[slot].requestDue != .never || pool.heldBytes(by: slot) > 0 { return .never }
    return max(parking.turns[slot].talkedAt, link.upSince) + Parking.idleMin
  }

  /// The connections at which leaves take turns. One is kept for inbound links, and others have neighbours that cannot
  /// be parked.
  private var slotsForLeaves: Int {
    var count = settings.bluetoothSlots - 1
    var slots = bluetoothLinkSlots
    while let slot = slots.next() {
      if links[slot].state == .up && !links[slot].peerCapabilities.contains(.parks) { count -= 1 }
    }
    return count
  }

  private func isParkable(_ slot: Int) -> Bool {
    links[slot].state == .up && links[slot].peerCapabilities.contains(.parks)
  }

  private var bluetoothLinkSlots: Slots { Slots(bluetoothLinks) }
}
