import Frame
import Journal
import Link
import Primitives

/// Decides which link is evicted when slots run out, and limits how many new keys an address may bring. Keys cost
/// nothing: without these limits a machine with 64 keys could take all slots. A key pinned by trust on first use costs
/// nothing either, so only the operator's pins protect a link.
///
/// The node decides this and not the admission before TLS, because only the node knows which links it dialled, and
/// their age.
struct LinkSlots {
  /// How many of the oldest links that this node dialled are never evicted. The same limit applies to the oldest links
  /// to nodes that the operator pinned.
  static let protectedMax = 8
  /// The rate of new keys from one address. Known nodes, dialled nodes and recently seen ones do not count.
  static let newKeyRate = TokenRate(interval: .seconds(5), burst: 4)
  /// The rate of new keys over Bluetooth. A hall of phones arrives together, and the adapter has few connections to
  /// lose.
  static let bluetoothKeyRate = TokenRate(interval: .seconds(1), burst: 16)
  /// Bluetooth addresses are free, so all of them count as one.
  static let bluetooth: UInt64 = 1 << 48
  /// ::ffff:127.0.0.1, from which nodes on this machine dial. Any other loopback address is charged like a remote
  /// machine.
  static let localhost: UInt64 = 0xFFFF_7F00_0001

  private struct Place {
    /// The address at the other end, or 0 for a link that is never evicted.
    var source: UInt64 = 0
    /// Increases with every link. 0 in a free slot.
    var order: UInt64 = 0
    var isDialled = false
    /// Whether the operator pinned its node.
    var isPinned = false
  }

  private var places = Limits.PerLink<Place>(repeating: Place())
  private var lastOrder: UInt64 = 0
  private var newKeys = SourceBuckets(newKeyRate)
  private var newBluetoothKeys = TokenBucket()
  /// Keys that recently had a link. The oldest is replaced.
  private var met = FixedArray<256, NodeID>(repeating: .none)
  private var nextMet = 0

  /// The address to which a link is charged.
  static func holder(_ source: UInt64, over bearer: BearerKind) -> UInt64 {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: bluetooth
    case .loopback: source == localhost ? 0 : source
    case .ethernet, .wifi, .wifiDirect: source
    }
  }

  /// Records an opened link. `isKnown` means that its key is pinned, `isPinned` that the operator did so. If its
  /// address has brought too many new keys, returns the time after which it may come back.
  mutating func open(
    _ slot: Int, _ peer: NodeID, from source: UInt64, isDialled: Bool, isKnown: Bool, isPinned: Bool, now: Instant
  ) -> TimeSpan? {
    lastOrder += 1
    places[slot] = Place(source: source, order: lastOrder, isDialled: isDialled, isPinned: isPinned)
    if source == 0 || isDialled || isKnown || met.indices.contains(where: { met[$0] == peer }) { return nil }
    if let pause = takeNewKey(source, now) { return pause }
    met[nextMet] = peer
    nextMet = (nextMet + 1) % met.indices.count
    return nil
  }

  /// The address to which frames from a link are charged: that of the other end or, without one, a number for the link
  /// itself.
  func ingress(_ slot: Int) -> UInt64 {
    places[slot].source == 0 ? UInt64.max - UInt64(Limits.linksMax) + UInt64(slot) : places[slot].source
  }

  mutating func close(_ slot: Int) { places[slot] = Place() }

  /// The address at the other end of a link, or 0 for a link that is not charged.
  func source(of slot: Int) -> UInt64 { places[slot].source }

  /// The link to evict for the one in slot `newcomer`, which may be that one itself. It is the youngest link of the
  /// address with the most links, if that address would still have at least as many as the newcomer's. The operator's
  /// pins are evicted last. For a peer that the operator pinned, the victim may be the youngest link of any address.
  func victim(for newcomer: Int) -> Int? {
    let crowded = crowdedVictim(for: newcomer)
    guard places[newcomer].isPinned, crowded == nil || crowded == newcomer else { return crowded }
    return youngest { $0.source != 0 && !$0.isPinned } ?? crowded
  }

  /// Whether a link in the last slot must release it, to keep it free for a peer that the operator pinned. This holds
  /// if the other side dialled and is charged for it.
  func isStranger(_ slot: Int) -> Bool {
    places[slot].source != 0 && !places[slot].isDialled && !places[slot].isPinned
  }

  private func crowdedVictim(for newcomer: Int) -> Int? {
    let own = max(count(places[newcomer].source), 1)
    var most = own
    var largest = places[newcomer].source
    for slot in places.indices where places[slot].source != 0 {
      let links = count(places[slot].source)
      if links > most { (most, largest) = (links, places[slot].source) }
    }
    if most < 2 || largest == 0 { return nil }
    return youngest { $0.source == largest && !$0.isPinned } ?? youngest { $0.source == largest }
  }

  private func count(_ source: UInt64) -> Int {
    source == 0 ? 0 : places.indices.count { places[$0].source == source }
  }

  private func youngest(_ isOne: (Place) -> Bool) -> Int? {
    var youngest: Int?
    for slot in places.indices where isOne(places[slot]) && !isProtected(slot) {
      if let found = youngest, places[found].order > places[slot].order { continue }
      youngest = slot
    }
    return youngest
  }

  private func isProtected(_ slot: Int) -> Bool {
    let place = places[slot]
    func isAmongOldest(_ isOne: (Place) -> Bool) -> Bool {
      places.indices.count { isOne(places[$0]) && places[$0].order != 0 && places[$0].order < place.order }
        < Self.protectedMax
    }
    return place.isDialled && isAmongOldest { $0.isDialled } || place.isPinned && isAmongOldest { $0.isPinned }
  }

  /// Counts a new key of an address. If that is one too many, returns the time until it may bring the next one.
  private mutating func takeNewKey(_ source: UInt64, _ now: Instant) -> TimeSpan? {
    if source == Self.bluetooth {
      let rate = Self.bluetoothKeyRate
      return newBluetoothKeys.take(rate, now: now) ? nil : newBluetoothKeys.next(rate) - now
    }
    return newKeys.take(source, now: now) ? nil : newKeys.next(source) - now
  }
}

extension Node {
  /// Opens a link on an authenticated stream, whose other end has proved the key of `peer`. Returns its slot. Returns
  /// nil if all slots are taken or `peer` is this node itself. In the former case ask the other side to retry later,
  /// and close the stream. `handle` identifies the dialled candidate, or is nil if the other side dialled. `source` is
  /// the address of the other end, or 0 for a link that is never evicted.
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
    let secondsRefused = forgers.secondsRefused(peer, now: now)
    if secondsRefused > 0 {
      closeLink(slot, .protocolError, retryAfterSeconds: secondsRefused, now: now)
    } else if !isParked {
      makeRoom(
        for: slot, LinkSlots.holder(source, over: bearer), isDialled: handle != nil, now)
    }
    return slot
  }

  /// Keeps one slot free for newcomers while an address has more links than others. One slot is always kept for a peer
  /// that the operator pinned.
  private func makeRoom(for slot: Int, _ source: UInt64, isDialled: Bool, _ now: Instant) {
    let peer = links[slot].peer
    let pause = linkSlots.open(
      slot, peer, from: source, isDialled: isDialled, isKnown: trust?.isKnown(peer) ?? false,
      isPinned: trust?.isPinnedByOperator(peer) ?? false, now: now)
    if let pause {
      journal.record(.notice, .linkSlotsFull, at: now, UInt64(settings.linksMax), UInt64(settings.linksMax), node: peer)
      return closeLink(slot, .full, retryAfterSeconds: UInt16((pause.milliseconds + 999) / 1000), now: now)
    }
    let open = links.indices.count(where: isOpen)
    let isOver = open > settings.linksMax
    if !isOver && open + parking.parked.nonzeroBitCount < Limits.linksMax { return }
    let mayStay = !isOver && (trust == nil || !linkSlots.isStranger(slot))
    guard let victim = linkSlots.victim(for: slot) ?? (mayStay ? nil : slot) else { return }
    journal.record(
      .notice, .linkSlotsFull, at: now, UInt64(settings.linksMax), UInt64(settings.linksMax), node: links[victim].peer)
    closeLink(victim, .full, retryAfterSeconds: Timing.fullRetryAfterSeconds, now: now)
  }

  private var idleSlot: Int? { links.indices.first { links[$0].state == .idle } }
}
