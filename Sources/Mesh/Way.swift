import Frame
import Primitives

extension Mesh {
  /// The links of the route to `node`, nearest first. Each link is as its nearer end lists it. The list is empty without
  /// a route. This node computes the route from its stored topologies. Relays on the path may have newer topologies, and
  /// on a path of the fewest links a relay may choose a cheaper one (`ShortestPaths`).
  public func way(to node: NodeID) -> [Neighbour] {
    guard var number = database.find(node), let route = database.records[number].route else { return [] }
    var way: [Neighbour] = []
    for hops in (1...route.hops).reversed() {
      let parent = paths.parent(of: number, database, hops: hops)
      let end = database.records[number].id
      // Parent 0 is this node, whose links may be newer than its advertisement.
      let own = parent == 0 ? link(to: end).map { ownEntry($0) } : nil
      guard let hop = own ?? database.entry(parent, of: end) else { return [] }
      way.append(hop)
      number = parent
    }
    return way.reversed()
  }
}
