import Primitives

/// The naive router: all pairs' cheapest ways over the true network (Floyd 1962, Warshall 1962), of equally
/// cheap ones the shortest, through relays only. Costs are measured, so each node's own word for its links counts.
struct Reference {
  struct Way: Equatable {
    var cost: UInt32
    var hops: Int

    func isBetter(than other: Way?) -> Bool {
      guard let other else { return true }
      return cost != other.cost ? cost < other.cost : hops < other.hops
    }
  }

  private var ways: [[Way?]]

  /// `cost` is what the first of two machines states for its link to the second.
  init(nodeCount: Int, wires: [Wire], relays: [Bool], cost: (Int, Int) -> UInt16) {
    ways = [[Way?]](repeating: [Way?](repeating: nil, count: nodeCount), count: nodeCount)
    for wire in wires where wire.isUp {
      for (a, b) in [wire.ends, (wire.ends.1, wire.ends.0)] { ways[a][b] = Way(cost: UInt32(cost(a, b)), hops: 1) }
    }
    for relay in 0..<nodeCount where relays[relay] {
      for a in 0..<nodeCount {
        for b in 0..<nodeCount where a != b && a != relay && b != relay {
          guard let first = ways[a][relay], let second = ways[relay][b] else { continue }
          let way = Way(cost: first.cost + second.cost, hops: first.hops + second.hops)
          if way.isBetter(than: ways[a][b]) { ways[a][b] = way }
        }
      }
    }
  }

  func way(from a: Int, to b: Int) -> Way? { ways[a][b] }
}
