import Frame
import Journal
import Link
import Primitives

/// Decides which link is evicted when slots run out, and limits how many links with new keys an address may open. Keys
/// cost nothing: without these limits a machine with 64 keys could take all slots. A key pinned by trust on first use
/// costs nothing either, so only the operator's pins protect a link.
///
/// The node decides on eviction after TLS. `Admission` cannot decide on eviction before TLS, because only the node
/// knows which links it dialled, and their age.
struct LinkSlots {
  /// How many of the oldest links that this node dialled are never evicted. The same limit applies to the oldest links
  /// to nodes that the operator pinned.
  static let protectedMax = 8
  /// The rate at which one address may open links with new keys. A key is not new if it is pinned, was dialled, or
  /// recently had a link.
  static let newKeyRate = TokenRate(interval: .seconds(5), burst: 4)
  /// The rate of new keys over Bluetooth, for all devices together. This rate is high, because many phones may arrive
  /// together. The few connections of the adapter limit what an attacker can take.
  static let bluetoothKeyRate = TokenRate(interval: .seconds(1), burst: 16)
  /// The address to which all Bluetooth links are charged. A device can change its Bluetooth address at no cost.
  static let bluetooth: UInt64 = 1 << 48
  /// ::ffff:127.0.0.1, from which nodes on this machine dial. Links from the loopback address of this machine are not
  /// charged. Any other loopback address is charged like that of a remote machine.
  static let localhost: UInt64 = 0xFFFF_7F00_0001

  private struct Slot {
    /// The address to which the link is charged, or 0 for a link that is never evicted.
    var source: UInt64 = 0
    /// The number of the link, which increases with every opened link. 0 in a free slot.
    var order: UInt64 = 0
    var isDialled = false
    /// Whether the operator pinned the neighbour's key.
    var isPinned = false
  }

  private var slots = Limits.PerLink<Slot>(repeating: Slot())
  private var lastOrder: UInt64 = 0
  private var newKeys = SourceBuckets(newKeyRate)
  private var newBluetoothKeys = TokenBucket()
  /// New keys that recently opened a link. The oldest is replaced.
  private var met = FixedArray<256, NodeID>(repeating: .none)
  private var nextMet = 0

  /// The address to which a link is charged, or 0 if it is not charged. `source` is the address of the link's other
  /// end.
  static func holder(_ source: UInt64, over bearer: BearerKind) -> UInt64 {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: bluetooth
    case .loopback: source == localhost ? 0 : source
    case .ethernet, .wifi, .wifiDirect: source
    }
  }

  /// Records an opened link to `peer`, charged to `source`. `isKnown`: whether the peer's key is pinned at all;
  /// `isPinned`: whether the operator pinned the key. Returns nil if the link may stay. If the address has opened too
  /// many links with new keys, returns the time after which the peer may dial again.
  mutating func open(
    _ slot: Int, _ peer: NodeID, from source: UInt64, isDialled: Bool, isKnown: Bool, isPinned: Bool, now: Instant
  ) -> TimeSpan? {
    lastOrder += 1
    slots[slot] = Slot(source: source, order: lastOrder, isDialled: isDialled, isPinned: isPinned)
    if source == 0 || isDialled || isKnown || met.indices.contains(where: { met[$0] == peer }) { return nil }
    if let pause = takeNewKey(source, now) { return pause }
    met[nextMet] = peer
    nextMet = (nextMet + 1) % met.indices.count
    return nil
  }

  /// The address to which frames from a link are charged: the address of the other end or, without one, a number for
  /// the link itself.
  func ingress(_ slot: Int) -> UInt64 {
    slots[slot].source == 0 ? UInt64.max - UInt64(Limits.linksMax) + UInt64(slot) : slots[slot].source
  }

  mutating func close(_ slot: Int) { slots[slot] = Slot() }

  /// The address to which a link is charged, or 0 for a link that is not charged.
  func source(of slot: Int) -> UInt64 { slots[slot].source }

  /// The slot of the link to evict for the link in slot `newcomer`, which may be `newcomer` itself; nil if no link may
  /// be evicted. The address with the most links loses its youngest link, the links of pinned peers last. If no other
  /// address has more links than the newcomer's, the newcomer's address loses one. If the operator pinned the newcomer,
  /// the youngest link of any address may be evicted.
  func victim(for newcomer: Int) -> Int? {
    let crowded = crowdedVictim(for: newcomer)
    guard slots[newcomer].isPinned, crowded == nil || crowded == newcomer else { return crowded }
    return youngest { $0.source != 0 && !$0.isPinned } ?? crowded
  }

  /// Whether a link must give up the last free slot, which is kept for a peer that the operator pinned. A link must
  /// give up the slot if the other side dialled, is charged for the link, and was not pinned by the operator.
  func isStranger(_ slot: Int) -> Bool {
    slots[slot].source != 0 && !slots[slot].isDialled && !slots[slot].isPinned
  }

  private func crowdedVictim(for newcomer: Int) -> Int? {
    let own = max(count(slots[newcomer].source), 1)
    var most = own
    var largest = slots[newcomer].source
    for slot in slots.indices where slots[slot].source != 0 {
      let links = count(slots[slot].source)
      if links > most { (most, largest) = (links, slots[slot].source) }
    }
    if most < 2 || largest == 0 { return nil }
    return youngest { $0.source == largest && !$0.isPinned } ?? youngest { $0.source == largest }
  }

  private func count(_ source: UInt64) -> Int {
    source == 0 ? 0 : slots.indices.count { slots[$0].source == source }
  }

  private func youngest(_ isOne: (Slot) -> Bool) -> Int? {
    var youngest: Int?
    for slot in slots.indices where isOne(slots[slot]) && !isProtected(slot) {
      if let found = youngest, slots[found].order > slots[slot].order { continue }
      youngest = slot
    }
    return youngest
  }

  private func isProtected(_ slot: Int) -> Bool {
    let link = slots[slot]
    func isAmongOldest(_ isOne: (Slot) -> Bool) -> Bool {
      slots.indices.count { isOne(slots[$0]) && slots[$0].order != 0 && slots[$0].order < link.order }
        < Self.protectedMax
    }
    return link.isDialled && isAmongOldest { $0.isDialled } || link.isPinned && isAmongOldest { $0.isPinned }
  }

  /// Takes a token of `source` for a link with a new key. Returns nil if the address had a token, otherwise the time
  /// until its next token.
  private mutating func takeNewKey(_ source: UInt64, _ now: Instant) -> TimeSpan? {
    if source == Self.bluetooth {
      let rate = Self.bluetoothKeyRate
      return newBluetoothKeys.take(rate, now: now) ? nil : newBluetoothKeys.next(rate) - now
    }
    return newKeys.take(source, now: now) ? nil : newKeys.next(source) - now
  }
}

extension Node {
  /// Opens a link on an authenticated stream, whose other end has proved the key of `peer`. Returns the link's slot, or
  /// nil if all slots are taken or `peer` is this node itself. If all slots are taken, the caller must ask the other
  /// side to retry later, and close the stream. `handle` identifies the dialled candidate, and is nil if the other side
  /// dialled. `source` is the address of the other end, and is 0 for a link that is never evicted.
  public func openLink(peer: NodeID, bearer: BearerKind, source: UInt64 = 0, dialled handle: UInt32?, now: Instant)
    -> Int?
  {
    guard peer != settings.id else {
      journal.record(.notice, .selfDialled, at: now, UInt64(bearer.rawValue))
      if let handle { connector.lost(handle, now: now) }
      return nil
    }
    guard let slot = parkedSlot(of: peer, bearer) ?? idleSlot else {
      journal.record(.warning, .linkSlotsFull, at: now, UInt64(Limits.linksMax), UInt64(Limits.linksMax))
      if let handle { connector.dialFailed(handle, now: now) }
      return nil
    }
    let isParked = links[slot].state == .parked
    open(slot, peer: peer, bearer: bearer, isInbound: handle == nil, now: now)
    connector.linkOpened(slot, handle, peer: peer, now: now)
    if handle == nil && bearer == .bluetoothLE { parking.visitedAt = now }
    let secondsRefused = signatureOffenders.secondsRefused(peer, now: now)
    if secondsRefused > 0 {
      closeLink(slot, .protocolError, retryAfterSeconds: secondsRefused, now: now)
    } else if !isParked {
      makeRoom(
        for: slot, LinkSlots.holder(source, over: bearer), isDialled: handle != nil, now)
    }
    return slot
  }

  /// Evicts a link when the last slot was taken. So one slot stays free for newcomers while an address has several
  /// links. For a peer that the operator pinned, one slot is always kept free.
  private func makeRoom(for slot: Int, _ source: UInt64, isDialled: Bool, _ now: Instant) {
    let peer = links[slot].peer
    let pause = linkSlots.open(
      slot, peer, from: source, isDialled: isDialled, isKnown: trust?.isKnown(peer) ?? false,
      isPinned: trust?.isPinnedByOperator(peer) ?? false, now: now)
    if let pause {
      journal.record(
        .notice, .linkSlotsFull, at: now, UInt64(settings.linksMax), UInt64(settings.linksMax), node: peer,
        cause: journal.cause(ofLink: slot))
      return closeLink(slot, .full, retryAfterSeconds: UInt16((pause.milliseconds + 999) / 1000), now: now)
    }
    let open = links.indices.count(where: isOpen)
    let isOver = open > settings.linksMax
    if !isOver && open + parking.parked.nonzeroBitCount < Limits.linksMax { return }
    let mayStay = !isOver && (trust == nil || !linkSlots.isStranger(slot))
    guard let victim = linkSlots.victim(for: slot) ?? (mayStay ? nil : slot) else { return }
    journal.record(
      .notice, .linkSlotsFull, at: now, UInt64(settings.linksMax), UInt64(settings.linksMax), node: links[victim].peer,
      cause: journal.cause(ofLink: victim))
    closeLink(victim, .full, retryAfterSeconds: Timing.fullRetryAfterSeconds, now: now)
  }

  private var idleSlot: Int? { links.indices.first { links[$0].state == .idle } }
}
