import Frame
import Primitives

/// Shortest paths from this node over links that both ends advertise (Dijkstra, 1959). For `Limits.nodesMax` nodes a
/// linear scan for the nearest node is as fast as a heap, and simpler.
///
/// Two paths to each node are computed: the cheapest path, which may have any length, and the path with the fewest
/// links. A frame takes the cheapest path if its remaining hops suffice for that path, otherwise the path with the
/// fewest links. A node within `Limits.hopsMax` links is therefore reached although each relay chooses by itself: if
/// the remaining hops suffice at one relay, they suffice at the next.
struct ShortestPaths {
  static let byteCount =
    Table<UInt64, Int>.byteCount(Limits.nodesMax) + Table<UInt16, Int>.byteCount(Limits.nodesMax)
    + Table<Shortest, Int>.byteCount(Limits.nodesMax) + Table<Bool, Int>.byteCount(Limits.nodesMax)
    + Table<UInt8, Int>.byteCount(Limits.linksMax)
  private static let unreached = UInt64.max

  /// The order of preference of paths. A path is stored as one number: the preferred quantity in the highest bits, then
  /// the other quantity, then the rank of the first hop by id (8 bits). The path with the lowest number is preferred,
  /// so all nodes choose by the same rule. Every link costs at least 1, so no path has a loop.
  private enum Order {
    /// The lowest cost. Among equal costs, the fewest links.
    case cost
    /// The fewest links. Among equally many links, the lowest cost.
    case links

    /// The number to add to a path for one more link.
    func link(_ cost: UInt16) -> UInt64 {
      switch self {
      case .cost: UInt64(cost) << 16 | 1 << 8
      case .links: 1 << 40 | UInt64(cost) << 8
      }
    }

    func hops(_ way: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: self == .cost ? way >> 8 : way >> 40) }
    func cost(_ way: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: self == .cost ? way >> 16 : way >> 8) }
  }

  /// The path with the fewest links to a node.
  private struct Shortest {
    /// The number of links. 0 if the path is too long, or if in this network no path can be too long.
    var hops: UInt8 = 0
    /// The slot of the first link.
    var link: UInt8 = 0
    /// The record of the node before the last link.
    var parent: UInt16 = 0
  }

  /// The best path found so far to each record. Reset to `unreached` when the node is settled, which means that its
  /// path is final.
  private let ways: Table<UInt64, Int>
  /// The longest frame payload that the path in `ways` accepts, in bytes, by record.
  private let payloads: Table<UInt16, Int>
  /// The path with the fewest links to each record.
  private let shortest: Table<Shortest, Int>
  private let isSettled: Table<Bool, Int>
  /// The slots of the links in use, by the rank of their neighbours.
  private let slots: Table<UInt8, Int>

  /// Allocates `byteCount` bytes from `arena`.
  init(in arena: inout Arena) {
    ways = Table(count: Limits.nodesMax, in: &arena)
    payloads = Table(count: Limits.nodesMax, in: &arena)
    shortest = Table(count: Limits.nodesMax, in: &arena)
    isSettled = Table(count: Limits.nodesMax, in: &arena)
    slots = Table(count: Limits.linksMax, in: &arena)
  }

  /// Sets the route of every record. Returns the number of steps (`Mesh.computeRoutes`).
  func compute(_ database: borrowing Database, _ links: borrowing LocalLinks, local: NodeID) -> Int {
    var relays = 0
    for number in 0..<database.end {
      if database.records[number].relays { relays += 1 }
      database.records[number].route = nil
      shortest[number] = Shortest()
    }
    var steps = search(by: .cost, database, links, local: local)
    // A path leads through each relay once at most, so with fewer relays no path is too long.
    if relays >= Int(Limits.hopsMax) { steps += search(by: .links, database, links, local: local) }
    settleProvisional(database, links)
    return steps
  }

  /// The slot of the first link to record `number` over the fewest links, nil if these are more than `hops`.
  func firstLink(toward number: Int, within hops: UInt8) -> Int? {
    let path = shortest[number]
    return path.hops > 0 && path.hops <= hops ? Int(path.link) : nil
  }

  /// The record of the node before record `number` on a path of `hops` links: on its route or on the path with the
  /// fewest links.
  func parent(of number: Int, _ database: borrowing Database, hops: UInt8) -> Int {
    let isOnRoute = database.records[number].route?.hops == hops
    return isOnRoute ? Int(database.records[number].parent) : Int(shortest[number].parent)
  }

  private func search(
    by order: Order, _ database: borrowing Database, _ links: borrowing LocalLinks, local: NodeID
  ) -> Int {
    let end = database.end
    var steps = end * end / 128
    for number in 0..<end {
      ways[number] = Self.unreached
      isSettled[number] = false
    }
    var carriers = Slots(links.carriers)
    while let slot = carriers.next() {
      let rank = rank(of: links[slot].peer, links)
      slots[rank] = UInt8(slot)
      guard let number = database.find(links[slot].peer), database.entry(number, of: local) != nil else { continue }
      ways[number] = order.link(links[slot].cost) | UInt64(rank)
      payloads[number] = links[slot].payloadBytesMax
      setParent(0, of: number, by: order, way: ways[number], database)
    }
    // A path starts at this node (record 0) and never leads through it again.
    isSettled[0] = true
    while let number = nearest(end) {
      let way = ways[number]
      ways[number] = Self.unreached
      isSettled[number] = true
      settle(number, way, by: order, database, links)
      if !database.records[number].relays || order == .links && order.hops(way) == Limits.hopsMax { continue }
      let id = database.records[number].id
      guard let topology = database.topology(of: number) else { continue }
      steps += topology.count
      for index in 0..<topology.count {
        guard let next = database.find(topology.node(index)), !isSettled[next], let back = database.entry(next, of: id),
          let neighbour = try? topology.entry(index)
        else { continue }
        let onward = way + order.link(neighbour.cost)
        let payload = min(payloads[number], min(neighbour.payloadBytesMax, back.payloadBytesMax))
        if onward < ways[next] {
          ways[next] = onward
          payloads[next] = payload
          setParent(number, of: next, by: order, way: onward, database)
        } else if onward == ways[next] {
          // A node on the path may choose either of two equal paths, so the shorter payload applies.
          payloads[next] = min(payloads[next], payload)
        }
      }
    }
    return steps
  }

  private func setParent(_ parent: Int, of number: Int, by order: Order, way: UInt64, _ database: borrowing Database) {
    if order == .links { shortest[number].parent = UInt16(parent) }
    if database.records[number].route == nil && order.hops(way) <= Limits.hopsMax {
      database.records[number].parent = UInt16(parent)
    }
  }

  private func settle(
    _ number: Int, _ way: UInt64, by order: Order, _ database: borrowing Database, _ links: borrowing LocalLinks
  ) {
    let hops = order.hops(way)
    let slot = slots[Int(way & 0xff)]
    if order == .links {
      shortest[number].hops = hops
      shortest[number].link = slot
    }
    guard hops <= Limits.hopsMax, database.records[number].route == nil else { return }
    // On a path of the fewest links, a relay may still choose its cheapest path, whose payload limit is unknown here.
    database.records[number].route = Route(
      link: slot, firstHop: links[Int(slot)].peer, hops: hops, cost: order.cost(way),
      payloadBytesMax: order == .cost ? Int(payloads[number]) : Limits.framePayloadBytesFloor)
  }

  /// A node that was admitted without a route keeps its position below the node that lists it. This position ends when
  /// the node has a route, or when the node above no longer lists it.
  private func settleProvisional(_ database: borrowing Database, _ links: borrowing LocalLinks) {
    for number in 1..<database.end where database.records[number].isProvisional {
      let record = database.records[number]
      let parent = Int(record.parent)
      var isListed = links.carrier(to: record.id) != nil
      if parent != 0, database.records[parent].route != nil {
        isListed = database.entry(parent, of: record.id) != nil
      }
      database.records[number].isProvisional = isListed && record.route == nil
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
