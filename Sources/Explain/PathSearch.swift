import Frame
import Primitives

/// One link of a path, from the node `from` to the node `node`.
public struct ExplainHop {
  public var from: NodeID
  public var node: NodeID
  public var bearer: BearerKind
  public var cost: UInt16
  public var payloadBytesMax: UInt16
}

/// Searches paths between any two nodes in a link-state database. To explain why there is no route, it can also find
/// paths that routing rejects. `ShortestPaths` in `Mesh` computes the routes of this node.
struct PathSearch {
  /// The routing rules that a path may violate.
  enum Leniency {
    case none
    /// Intermediate nodes of the path need not be relays.
    case silentNodes
    /// Intermediate nodes need not be relays, and a link may be listed by only one of its ends.
    case oneSided
  }

  private var ids: [NodeID] = []
  private var relays: [Bool] = []
  /// For each node, the links that the node itself lists in its advertisement.
  private var links: [[(to: Int, entry: Neighbour)]] = []
  /// For each node, the links to this node that other nodes list.
  private var listedBy: [[(to: Int, entry: Neighbour)]] = []

  /// Builds the graph from the known nodes and `ends`, the nodes to find paths between. A node that is only listed as a
  /// neighbour is left out, because one node can list thousands of invented neighbours.
  init(_ nodes: [NodeFacts], ends: [NodeID]) {
    for node in nodes { add(node.id, relays: node.relays) }
    for end in ends where index(of: end) == nil { add(end, relays: false) }
    for (from, node) in nodes.enumerated() {
      for neighbour in node.neighbours {
        guard let to = index(of: neighbour.node) else { continue }
        links[from].append((to, neighbour))
        var back = neighbour
        back.node = node.id
        listedBy[to].append((from, back))
      }
    }
  }

  /// The path that a frame takes, or nil if there is no path of at most `Limits.hopsMax` links. Each node on the path
  /// chooses as `Mesh.link(to:within:)`: the cheapest path if it is short enough, otherwise the one with the fewest
  /// links.
  func path(from: NodeID, to: NodeID, _ leniency: Leniency = .none) -> [ExplainHop]? {
    guard var current = index(of: from), let end = index(of: to) else { return nil }
    var taken: [ExplainHop] = []
    while let cheapest = search(from: current, to: end, step: 1, cost: 1 << 16, leniency) {
      let left = Int(Limits.hopsMax) - taken.count
      if cheapest.count <= left { return taken + cheapest }
      guard let shortest = search(from: current, to: end, step: 1 << 40, cost: 1, leniency), shortest.count <= left,
        let next = index(of: shortest[0].node)
      else { return nil }
      taken.append(shortest[0])
      current = next
    }
    return nil
  }

  /// The best path, if each link counts `step`, and `cost` times its cost.
  private func search(from start: Int, to end: Int, step: UInt64, cost: UInt64, _ leniency: Leniency) -> [ExplainHop]? {
    var costs = [UInt64](repeating: .max, count: ids.count)
    var previous = [(node: Int, entry: Neighbour)?](repeating: nil, count: ids.count)
    var isSettled = [Bool](repeating: false, count: ids.count)
    costs[start] = 0
    while let node = nearest(costs, isSettled), node != end {
      isSettled[node] = true
      if node != start && leniency == .none && !relays[node] { continue }
      let ways = leniency == .oneSided ? links[node] + listedBy[node] : links[node]
      for way in ways where !isSettled[way.to] {
        if leniency != .oneSided && !isListed(node, by: way.to) { continue }
        let sum = costs[node] + UInt64(way.entry.cost) * cost + step
        if sum >= costs[way.to] { continue }
        costs[way.to] = sum
        previous[way.to] = (node, way.entry)
      }
    }
    var hops: [ExplainHop] = []
    var node = end
    while node != start {
      guard let (before, entry) = previous[node] else { return nil }
      hops.append(
        ExplainHop(
          from: ids[before], node: ids[node], bearer: entry.bearer, cost: entry.cost,
          payloadBytesMax: entry.payloadBytesMax))
      node = before
    }
    return hops.reversed()
  }

  /// Whether `node` lists a link to `other` in its advertisement.
  func lists(_ node: NodeID, _ other: NodeID) -> Bool {
    guard let from = index(of: node), let to = index(of: other) else { return false }
    return isListed(to, by: from)
  }

  func relays(_ node: NodeID) -> Bool { index(of: node).map { relays[$0] } ?? false }

  private func isListed(_ node: Int, by other: Int) -> Bool { links[other].contains { $0.to == node } }

  private func nearest(_ costs: [UInt64], _ isSettled: [Bool]) -> Int? {
    var found: Int?
    for index in costs.indices where !isSettled[index] && costs[index] < (found.map { costs[$0] } ?? .max) {
      found = index
    }
    return found
  }

  private func index(of id: NodeID) -> Int? { ids.firstIndex(of: id) }

  private mutating func add(_ id: NodeID, relays isRelay: Bool) {
    ids.append(id)
    relays.append(isRelay)
    links.append([])
    listedBy.append([])
  }
}
