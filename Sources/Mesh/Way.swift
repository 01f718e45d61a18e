import Frame
import Primitives

/// One link of a route.
public struct Hop: Equatable, Sendable {
  /// The node that the link leads to.
  public var node: NodeID
  public var bearer: BearerKind
  /// What the nearer end lists for it.
  public var cost: UInt16

  public init(node: NodeID, bearer: BearerKind, cost: UInt16) {
    self.node = node
    self.bearer = bearer
    self.cost = cost
  }
}

extension Mesh {
  /// The links of the route to a node, the nearest first: what this node computed from the topologies that it holds. Relays
  /// on the way may know better. At most `Limits.hopsMax`; nothing without a route.
  public func way(to node: NodeID) -> [Hop] {
    guard var number = database.find(node), let route = database.records[number].route else { return [] }
    var way: [Hop] = []
    while way.count < Int(route.hops) {
      let id = database.records[number].id
      let parent = Int(database.records[number].parent)
      // Parent 0 is this node, whose links may be newer than what it has advertised.
      let own = parent == 0 ? link(to: id).map { ownEntry($0) } : nil
      guard let entry = own ?? database.entry(parent, of: id) else { return [] }
      way.append(Hop(node: id, bearer: entry.bearer, cost: entry.cost))
      number = parent
    }
    return way.reversed()
  }
}
