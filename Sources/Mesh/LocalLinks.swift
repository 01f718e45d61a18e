import Frame
import Primitives

/// A link of this node that is up.
struct LocalLink {
  var peer = NodeID.none
  var bearer = BearerKind.ethernet
  /// The cost that this node advertises.
  var cost: UInt16 = 0
  var payloadBytesMax: UInt16 = 0
  /// Whether frames have passed in both directions.
  var isProven = false
  /// Whether this is the link in use among all links to the neighbour.
  var carries = false
  var hasCarried = false
}

/// The links of this node, and which of several links to a neighbour is in use (the carrier).
///
/// Each node chooses its own carriers, and its choice is stable: another link takes over only when it is proven and
/// clearly cheaper. The previous link stays up and drains its queue.
struct LocalLinks {
  /// A link takes over if its cost plus this fraction of it (an eighth) is at most the cost of the link in use. The
  /// costs of any two bearers differ by more, and measurement errors are smaller.
  static let advantage = 8

  private var links = Limits.PerLink<LocalLink>(repeating: LocalLink())
  /// The slots of the links in use, one bit each.
  private(set) var carriers: UInt64 = 0
  private var used: UInt64 = 0

  subscript(slot: Int) -> LocalLink { links[slot] }

  /// The slot of the link in use to a neighbour.
  func carrier(to peer: NodeID) -> Int? {
    var slots = Slots(carriers)
    while let slot = slots.next() {
      if links[slot].peer == peer { return slot }
    }
    return nil
  }

  mutating func set(_ slot: Int, _ link: LocalLink) {
    links[slot] = link
    used |= 1 << UInt64(slot)
  }

  mutating func setCost(_ slot: Int, _ cost: UInt16) { links[slot].cost = cost }
  mutating func prove(_ slot: Int) { links[slot].isProven = true }

  mutating func remove(_ slot: Int) {
    links[slot] = LocalLink()
    used &= ~(1 << UInt64(slot))
    carriers &= ~(1 << UInt64(slot))
  }

  /// Selects the link in use to a neighbour. Returns the slots before and after.
  mutating func choose(_ peer: NodeID) -> (before: Int?, after: Int?) {
    let before = carrier(to: peer)
    var best: Int?
    var slots = Slots(used)
    while let slot = slots.next() {
      if links[slot].peer != peer || slot == before { continue }
      if let found = best, !isPreferred(slot, to: found) { continue }
      best = slot
    }
    guard let best else { return (before, before) }
    if let before {
      let isClearlyCheaper = Int(links[best].cost) * (Self.advantage + 1) <= Int(links[before].cost) * Self.advantage
      if !links[best].isProven || !isClearlyCheaper { return (before, before) }
      links[before].carries = false
      carriers &= ~(1 << UInt64(before))
    }
    links[best].carries = true
    links[best].hasCarried = true
    carriers |= 1 << UInt64(best)
    return (before, best)
  }

  /// Prefers proven links, then lower cost, then the lower slot.
  private func isPreferred(_ slot: Int, to other: Int) -> Bool {
    if links[slot].isProven != links[other].isProven { return links[slot].isProven }
    return links[slot].cost < links[other].cost
  }
}
