import Frame
import Primitives

/// The naive router. The naive router computes the cheapest paths of all pairs (Floyd 1962, Warshall 1962), and the
/// shortest of equally cheap paths. Only relays can be in the middle of a path.
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

  /// Computes paths from the links that both ends advertise, at the cost that the sending end advertises. `topologies`
  /// has an element for each machine; the element is nil for a machine that advertises nothing.
  init(_ topologies: [FrameObserver.Topology?], number: (NodeID) -> Int) {
    let count = topologies.count
    ways = [[Way?]](repeating: [Way?](repeating: nil, count: count), count: count)
    for one in 0..<count {
      for neighbour in topologies[one]?.neighbours ?? [] {
        let other = number(neighbour.node)
        guard other >= 0, other < count, other != one else { continue }
        ways[one][other] = Way(cost: UInt32(neighbour.cost), hops: 1)
      }
    }
    let stated = ways
    for one in 0..<count { for other in 0..<count where stated[other][one] == nil { ways[one][other] = nil } }
    spread(topologies.map { $0?.relays ?? false })
  }

  /// Computes paths from the wires that are up between `running` machines. The result shows which machines are
  /// reachable, but has no real costs.
  init(wires: [Wire], relays: [Bool], running: [Bool]) {
    let count = relays.count
    ways = [[Way?]](repeating: [Way?](repeating: nil, count: count), count: count)
    for wire in wires where wire.isUp && wire.ends.0 < count && wire.ends.1 < count {
      guard running[wire.ends.0], running[wire.ends.1] else { continue }
      ways[wire.ends.0][wire.ends.1] = Way(cost: 1, hops: 1)
      ways[wire.ends.1][wire.ends.0] = Way(cost: 1, hops: 1)
    }
    spread(relays)
  }

  private mutating func spread(_ relays: [Bool]) {
    let count = relays.count
    for relay in 0..<count where relays[relay] {
      for a in 0..<count where a != relay {
        guard let first = ways[a][relay] else { continue }
        for b in 0..<count where a != b && b != relay {
          guard let second = ways[relay][b] else { continue }
          let way = Way(cost: first.cost + second.cost, hops: first.hops + second.hops)
          if way.isBetter(than: ways[a][b]) { ways[a][b] = way }
        }
      }
    }
  }

  func way(from a: Int, to b: Int) -> Way? { ways[a][b] }

  /// Whether a cheapest path from `a` to `b` leads through `c`.
  func leads(from a: Int, to b: Int, through c: Int) -> Bool {
    guard let way = ways[a][b], let first = ways[a][c], let second = ways[c][b] else { return false }
    return first.cost + second.cost == way.cost
  }

  /// The number of links on the longest of all paths.
  var diameter: Int { ways.reduce(0) { max($0, $1.reduce(0) { max($0, $1?.hops ?? 0) }) } }
}
