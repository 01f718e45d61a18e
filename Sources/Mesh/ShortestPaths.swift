import Frame
import Primitives

/// Shortest paths from this node over links that both ends advertise (Dijkstra, 1959). For `Limits.nodesMax` nodes a
/// linear scan for the nearest node is as fast as a heap, and simpler.
///
/// A path is stored as one number: its cost in the highest bits, then its hop count, then the rank of its first hop by
/// id. The path with the lowest number is preferred, so all nodes choose by the same rule. Every link costs at least 1,
/// so no path has a loop.
struct ShortestPaths {
  static let byteCount =
    Table<UInt64, Int>.byteCount(Limits.nodesMax) + Table<UInt16, Int>.byteCount(Limits.nodesMax)
    + Table<Bool, Int>.byteCount(Limits.nodesMax) + Table<UInt8, Int>.byteCount(Limits.linksMax)
  private static let unreached = UInt64.max

  /// The best path found so far to each record. Reset to `unreached` when the node is settled, which means that its
  /// path is final.
  private let ways: Table<UInt64, Int>
  /// The longest frame payload that the path in `ways` accepts, in bytes, by record.
  private let payloads: Table<UInt16, Int>
  private let isSettled: Table<Bool, Int>
  /// The slots of the links in use, by the rank of their neighbours.
  private let slots: Table<UInt8, Int>

  /// Allocates `byteCount` bytes from `arena`.
  init(in arena: inout Arena) {
    ways = Table(count: Limits.nodesMax, in: &arena)
    payloads = Table(count: Limits.nodesMax, in: &arena)
    isSettled = Table(count: Limits.nodesMax, in: &arena)
    slots = Table(count: Limits.linksMax, in: &arena)
  }

  /// Sets the route of every record.
  func compute(_ database: borrowing Database, _ links: borrowing LocalLinks, local: NodeID) {
    let end = database.end
    for number in 0..<end {
      ways[number] = Self.unreached
      isSettled[number] = false
      database.records[number].route = nil
    }
    var carriers = Slots(links.carriers)
    while let slot = carriers.next() {
      let rank = rank(of: links[slot].peer, links)
      slots[rank] = UInt8(slot)
      guard let number = database.find(links[slot].peer), database.entry(number, of: local) != nil else { continue }
      ways[number] = UInt64(links[slot].cost) << 16 | 1 << 8 | UInt64(rank)
      payloads[number] = links[slot].payloadBytesMax
      database.records[number].parent = 0
    }
    // A path starts at this node (record 0) and never leads through it again.
    isSettled[0] = true
    while let number = nearest(end) {
      let way = ways[number]
      ways[number] = Self.unreached
      isSettled[number] = true
      let slot = slots[Int(way & 0xff)]
      let hops = UInt8(truncatingIfNeeded: way >> 8)
      database.records[number].route = Route(
        link: slot, firstHop: links[Int(slot)].peer, hops: hops, cost: UInt32(way >> 16),
        payloadBytesMax: Int(payloads[number]))
      if !database.records[number].relays || hops == Limits.hopsMax { continue }
      let id = database.records[number].id
      guard let topology = database.topology(of: number) else { continue }
      for index in 0..<topology.count {
        guard let next = database.find(topology.node(index)), !isSettled[next], let back = database.entry(next, of: id),
          let neighbour = try? topology.entry(index)
        else { continue }
        let onward = way + (UInt64(neighbour.cost) << 16 | 1 << 8)
        let payload = min(payloads[number], min(neighbour.payloadBytesMax, back.payloadBytesMax))
        if onward < ways[next] {
          ways[next] = onward
          payloads[next] = payload
          database.records[next].parent = UInt16(number)
        } else if onward == ways[next] {
          // A node on the path may choose either of two equal paths, so the shorter payload applies.
          payloads[next] = min(payloads[next], payload)
        }
      }
    }
    settlePlaces(database, links)
  }

  /// A node that was admitted without a route keeps its position below the node that lists it. This position ends when
  /// the node has a route, or when the node above no longer lists it.
  private func settlePlaces(_ database: borrowing Database, _ links: borrowing LocalLinks) {
    for number in 1..<database.end where database.records[number].isPlaced {
      let record = database.records[number]
      let parent = Int(record.parent)
      var isListed = links.carrier(to: record.id) != nil
      if parent != 0, database.records[parent].route != nil {
        isListed = database.entry(parent, of: record.id) != nil
      }
      database.records[number].isPlaced = isListed && record.route == nil
    }
  }

  /// Whether a path to record `target` remains without the link in `slot`. Distances are hop counts here, because the
  /// hop limit alone decides whether a node is reachable.
  func reaches(
    _ target: Int, _ database: borrowing Database, _ links: borrowing LocalLinks, without slot: Int, local: NodeID
  ) -> Bool {
    let end = database.end
    for number in 0..<end {
      ways[number] = Self.unreached
      isSettled[number] = false
    }
    isSettled[0] = true
    var carriers = Slots(links.carriers)
    while let other = carriers.next() {
      guard other != slot, let number = database.find(links[other].peer), database.entry(number, of: local) != nil
      else { continue }
      ways[number] = 1
    }
    while let number = nearest(end) {
      if number == target { return true }
      let hops = ways[number]
      ways[number] = Self.unreached
      isSettled[number] = true
      if !database.records[number].relays || hops == UInt64(Limits.hopsMax) { continue }
      let id = database.records[number].id
      guard let topology = database.topology(of: number) else { continue }
      for index in 0..<topology.count {
        guard let next = database.find(topology.node(index)), !isSettled[next],
          database.entry(next, of: id) != nil
        else { continue }
        ways[next] = min(ways[next], hops + 1)
      }
    }
    return false
  }

  private func nearest(_ end: Int) -> Int? {
    var least = Self.unreached
    var found: Int?
    for number in 0..<end where ways[number] < least {
      least = ways[number]
      found = number
    }
    return found
  }

  /// The number of neighbours with a lower id.
  private func rank(of peer: NodeID, _ links: borrowing LocalLinks) -> Int {
    var rank = 0
    var slots = Slots(links.carriers)
    while let slot = slots.next() {
      if links[slot].peer < peer { rank += 1 }
    }
    return rank
  }
}
