import Frame
import Primitives

extension Mesh {
  /// The last link of the path of `hops` links to `node`, as the nearer end of that link lists it, and the id of that
  /// end. The path is the route to `node`, or the path with the fewest links. The result is nil if there is no such
  /// path. This node computes paths from its stored topologies. Relays may have newer topologies, and on a path of the
  /// fewest links a relay may choose a cheaper one (`ShortestPaths`).
  public func lastHop(to node: NodeID, hops: UInt8) -> (hop: Neighbour, from: NodeID)? {
    guard let number = database.find(node), database.records[number].route != nil else { return nil }
    let parent = paths.parent(of: number, database, hops: hops)
    // Parent 0 is this node, whose links may be newer than its advertisement.
    let own = parent == 0 ? link(to: node).map { ownEntry($0) } : nil
    guard let hop = own ?? database.entry(parent, of: node) else { return nil }
    return (hop, database.records[parent].id)
  }
}
