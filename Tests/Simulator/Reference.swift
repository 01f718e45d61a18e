import Frame
import Primitives

/// The naive router. The naive router computes the best paths of all pairs (Floyd 1962, Warshall 1962): the cheapest
/// path, and the path with the fewest links. Only relays can be in the middle of a path.
struct Reference {
  struct Way: Equatable {
    var cost: UInt32
    var hops: Int

    /// Whether the cost is lower than that of `other`, or equal on fewer links.
    func isCheaper(than other: Way) -> Bool { cost != other.cost ? cost < other.cost : hops < other.hops }

    /// Whether there are fewer links than in `other`, or as many at a lower cost.
    func isShorter(than other: Way) -> Bool { hops != other.hops ? hops < other.hops : cost < other.cost }
  }

  private var cheapest: [[Way?]]
  private var shortest: [[Way?]]

  /// Computes paths from the links that both ends advertise, at the cost that the sending end advertises. `topologies`
  /// has an element for each machine; the element is nil for a machine that advertises nothing.
  init(_ topologies: [FrameObserver.Topology?], number: (NodeID) -> Int) {
    let count = topologies.count
    var links = [[Way?]](repeating: [Way?](repeating: nil, count: count), count: count)
    for one in 0..<count {
      for neighbour in topologies[one]?.neighbours ?? [] {
        let other = number(neighbour.node)
        guard other >= 0, other < count, other != one else { continue }
        links[one][other] = Way(cost: UInt32(neighbour.cost), hops: 1)
      }
    }
    let stated = links
    for one in 0..<count { for other in 0..<count where stated[other][one] == nil { links[one][other] = nil } }
    let relays = topologies.map { $0?.relays ?? false }
    cheapest = Self.spread(links, relays) { $0.isCheaper(than: $1) }
    shortest = Self.spread(links, relays) { $0.isShorter(than: $1) }
  }

  /// Computes paths from the wires that are up between `running` machines. The result shows which machines are
  /// reachable, but has no real costs.
  init(wires: [Wire], relays: [Bool], running: [Bool]) {
    let count = relays.count
    var links = [[Way?]](repeating: [Way?](repeating: nil, count: count), count: count)
    for wire in wires where wire.isUp && wire.ends.0 < count && wire.ends.1 < count {
      guard running[wire.ends.0], running[wire.ends.1] else { continue }
      links[wire.ends.0][wire.ends.1] = Way(cost: 1, hops: 1)
      links[wire.ends.1][wire.ends.0] = Way(cost: 1, hops: 1)
    }
    cheapest = Self.spread(links, relays) { $0.isCheaper(than: $1) }
    shortest = cheapest
  }

  private static func spread(_ links: [[Way?]], _ relays: [Bool], isBetter: (Way, Way) -> Bool) -> [[Way?]] {
    let count = relays.count
    var ways = links
    for relay in 0..<count where relays[relay] {
      for a in 0..<count where a != relay {
        guard let first = ways[a][relay] else { continue }
        for b in 0..<count where a != b && b != relay {
          guard let second = ways[relay][b] else { continue }
          let way = Way(cost: first.cost + second.cost, hops: first.hops + second.hops)
          if ways[a][b].map({ isBetter(way, $0) }) ?? true { ways[a][b] = way }
        }
      }
    }
    return ways
  }

  /// The path of the route from `a` to `b`: the cheapest path if a frame can travel that far, otherwise the path with
  /// the fewest links. nil if that path is too long as well.
  func way(from a: Int, to b: Int) -> Way? {
    [cheapest[a][b], shortest[a][b]].compactMap(\.self).first { $0.hops <= Int(Limits.hopsMax) }
  }

  /// The fewest links between two machines.
  func hops(from a: Int, to b: Int) -> Int? { shortest[a][b]?.hops }

  /// Whether each relay from `a` to `b` chooses its cheapest path.
  func isCheapest(from a: Int, to b: Int) -> Bool { (cheapest[a][b]?.hops ?? 0) <= Int(Limits.hopsMax) }

  /// Whether a cheapest path from `a` to `b`, or a path with the fewest links, leads through `c`.
  func leads(from a: Int, to b: Int, through c: Int) -> Bool {
    if let way = cheapest[a][b], let first = cheapest[a][c], let second = cheapest[c][b],
      first.cost + second.cost == way.cost
    {
      return true
    }
    guard !isCheapest(from: a, to: b), let first = shortest[a][c], let second = shortest[c][b] else { return false }
    return first.hops + second.hops <= Int(Limits.hopsMax)
  }

  /// The number of links on the longest of all paths.
  var diameter: Int { cheapest.reduce(0) { max($0, $1.reduce(0) { max($0, $1?.hops ?? 0) }) } }
}
