import Frame
import Primitives

/// A link of this node that is up.
struct LocalLink {
  var peer = NodeID.none
  var bearer = BearerKind.ethernet
  /// The cost of the link that this node advertises.
  var cost: UInt16 = 0
  var payloadBytesMax: UInt16 = 0
  /// Whether a pong has arrived and the link has been up for 2 s (`Link.isProven`).
  var isProven = false
  /// Whether the link in this slot is the link in use among all links to the neighbour.
  var carries = false
  var hasCarried = false
}

/// The links of this node. If there are several links to a neighbour, one of them is in use: the carrier.
///
/// Each node chooses its own carriers. The choice is stable: a second link to the neighbour becomes the carrier only
/// when it is proven and clearly cheaper. The former carrier stays up and drains its queue.
struct LocalLinks {
  /// A link becomes the carrier if its cost plus an eighth of it is at most the cost of the present carrier. The costs
  /// of any two bearers differ by more than an eighth, and measurement errors are smaller.
  static let advantage = 8

  private var links = Limits.PerLink<LocalLink>(repeating: LocalLink())
  /// The slots of all carriers, one bit each.
  private(set) var carriers: UInt64 = 0
  private var used: UInt64 = 0

  subscript(slot: Int) -> LocalLink { links[slot] }

  /// The slot of the carrier to a neighbour, or nil without a link.
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

  /// Selects the carrier to a neighbour. Returns the slots of the carriers before and after the selection. nil means no
  /// carrier.
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

  /// Whether the link in `slot` is the better carrier. A proven link is better than an unproven link; between equally
  /// proven links, the lower cost decides.
  private func isPreferred(_ slot: Int, to other: Int) -> Bool {
    if links[slot].isProven != links[other].isProven { return links[slot].isProven }
    return links[slot].cost < links[other].cost
  }
}
