import Frame
import Primitives

/// A link of this node that is up.
struct LocalLink {
  var peer = NodeID.none
  var bearer = BearerKind.ethernet
  /// What this node states it costs.
  var cost: UInt16 = 0
  var payloadBytesMax: UInt16 = 0
  /// It has shown that frames pass and come back.
  var isProven = false
  /// Of all links to the neighbour this one carries.
  var carries = false
  var hasCarried = false
}

/// The links of this node, and which of several to one neighbour carries.
///
/// The choice is this node's alone and steady: a better link takes over only when it is proven and clearly cheaper.
/// The one before stays up, and what waits on it drains.
struct LocalLinks {
  /// A link takes over when it is cheaper by this part of the carrying link's cost: less than lies between any two
  /// bearers, more than measuring errs.
  static let advantage = 8

  private var links = FixedArray<64, LocalLink>(repeating: LocalLink())
  /// Slots that carry, a bit each.
  private(set) var carriers: UInt64 = 0
  private var used: UInt64 = 0

  subscript(slot: Int) -> LocalLink { links[slot] }

  /// The slot that carries to a neighbour.
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

  /// Choose anew which link to a neighbour carries. Gives the slots before and after.
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

  /// Proven before unproven, then the cheaper, then the lower slot.
  private func isPreferred(_ slot: Int, to other: Int) -> Bool {
    if links[slot].isProven != links[other].isProven { return links[slot].isProven }
    return links[slot].cost < links[other].cost
  }
}

/// The slots whose bits are set, ascending. No `Sequence`: that protocol can make arrays, which this module may not.
struct Slots {
  private var bits: UInt64
  init(_ bits: UInt64) { self.bits = bits }

  mutating func next() -> Int? {
    if bits == 0 { return nil }
    defer { bits &= bits &- 1 }
    return bits.trailingZeroBitCount
  }
}
