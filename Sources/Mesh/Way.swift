import Frame
import Primitives

extension Mesh {
  /// The last link of the route to `node`, as the nearer end of that link lists it, and the id of that end. The result
  /// is nil without a route. This node computes the route from its stored topologies. Relays on the path may have newer
  /// topologies.
  public func lastHop(to node: NodeID) -> (hop: Neighbour, from: NodeID)? {
    guard let number = database.find(node), database.records[number].route != nil else { return nil }
    let parent = Int(database.records[number].parent)
    // Parent 0 is this node, whose links may be newer than its advertisement.
    let own = parent == 0 ? link(to: node).map { ownEntry($0) } : nil
    guard let hop = own ?? database.entry(parent, of: node) else { return nil }
    return (hop, database.records[parent].id)
  }
}
