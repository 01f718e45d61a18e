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
  /// The last link of the route to a node, and the node at its nearer end; nil without a route. It is what this node computed
  /// from the topologies that it holds: relays on the way may know better.
  public func lastHop(to node: NodeID) -> (hop: Hop, from: NodeID)? {
    guard let number = database.find(node), database.records[number].route != nil else { return nil }
    let parent = Int(database.records[number].parent)
    // Parent 0 is this node, whose links may be newer than what it has advertised.
    let own = parent == 0 ? link(to: node).map { ownEntry($0) } : nil
    guard let entry = own ?? database.entry(parent, of: node) else { return nil }
    return (Hop(node: node, bearer: entry.bearer, cost: entry.cost), database.records[parent].id)
  }
}
