import Frame
import Primitives

/// A link of a path.
public struct ExplainHop {
  public var from: NodeID
  public var node: NodeID
  public var bearer: BearerKind
  public var cost: UInt16
  public var payloadBytesMax: UInt16
}

/// Paths between any two nodes in a link-state database, also those that nobody uses: why there is none is the question.
/// (What this node itself uses, `ShortestPaths` in `Mesh` has computed.)
struct PathSearch {
  /// What a path may have that routes have not.
  enum Leniency {
    case none
    /// Nodes on the way that do not relay.
    case silentNodes
    /// These, and links that only one end lists.
    case oneSided
  }

  private var ids: [NodeID] = []
  private var relays: [Bool] = []
  /// Of each node: where its links lead, and how it lists them.
  private var links: [[(to: Int, entry: Neighbour)]] = []
  /// Of each node: who lists it, and how.
  private var listedBy: [[(to: Int, entry: Neighbour)]] = []

  /// `ends`: the nodes that paths are looked for between. Of others that are only listed there may be thousands, which anybody
  /// can invent: they are left out.
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

  /// The cheapest path; nil when there is none.
  func path(from: NodeID, to: NodeID, _ leniency: Leniency = .none) -> [ExplainHop]? {
    guard let start = index(of: from), let end = index(of: to) else { return nil }
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
        let cost = costs[node] + UInt64(way.entry.cost) << 16 + 1
        if cost >= costs[way.to] { continue }
        costs[way.to] = cost
        previous[way.to] = (node, way.entry)
      }
    }
    var hops: [ExplainHop] = []
    var node = end
    while node != start {
      guard let (before, entry) = previous[node], hops.count < Int(Limits.hopsMax) else { return nil }
      hops.append(
        ExplainHop(
          from: ids[before], node: ids[node], bearer: entry.bearer, cost: entry.cost,
          payloadBytesMax: entry.payloadBytesMax))
      node = before
    }
    return hops.reversed()
  }

  /// Whether `node` lists a link to `other`.
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
