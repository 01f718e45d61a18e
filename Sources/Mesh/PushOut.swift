import Frame
import Primitives

/// Chooses the node that a full database evicts for a newcomer, a node that is not known yet. A node without a route is
/// evicted first. If all nodes have routes, a node in the largest subtree of the route tree is evicted.
///
/// Honest nodes list only neighbours that proved their keys. An invented node is therefore listed only by its inventor
/// or by another invented node, and all invented nodes are in their inventor's subtree.
///
/// The search starts at this node and descends, each time to the child with the most nodes in its subtree. The node at
/// the end of the search is evicted. This algorithm is the push-out policy of Choudhury and Hahne (1998), applied to
/// subtrees instead of queues. The newcomer is counted in the subtree that the newcomer would join, so a node that
/// invents others displaces its own inventions.
///
/// If several subtrees are equally large, the search continues in the one that the newcomer would join. At the
/// newcomer's parent, the newcomer itself is refused if no child has more than one evictable node in its subtree.
/// Subtrees thus become equally large, and then further newcomers change nothing.
///
/// The time of a search is proportional to the number of nodes times `Limits.neighboursMax`. The mesh's owner limits
/// how often the mesh searches for a node to evict.
extension Mesh {
  /// The record that a newcomer gets when another node is evicted.
  public struct Replacement {
    /// The index of the node to evict, and the index of the node that lists the newcomer.
    let leaver: Int
    let parent: Int
  }

  /// Chooses the node to evict for `newcomer`. Returns nil if no node with a route lists the newcomer, or if the
  /// newcomer itself must be refused. Neighbours and nodes for which `isKept` is true are never evicted, nor are nodes
  /// on the paths to them.
  public func replacement(for newcomer: NodeID, isKept: (NodeID) -> Bool) -> Replacement? {
    guard let parent = parent(for: newcomer) else { return nil }
    if let number = database.unreachable { return Replacement(leaver: number, parent: parent) }
    var tree = RouteTree(database)
    for number in 1..<database.end where tree.holds(number) {
      let node = node(at: number)
      if link(to: node) != nil || isKept(node) { tree.keep(number) }
    }
    for number in 1..<database.end where tree.holds(number) && !tree.isKept[number] { tree.count(number) }
    let isNewcomerKept = parent == RouteTree.root || isKept(newcomer)
    if !isNewcomerKept { tree.count(parent, isNewcomer: true) }
    var leaver = RouteTree.root
    while true {
      let (child, weight) = tree.heaviestChild(of: leaver)
      if leaver == parent && !isNewcomerKept && weight <= 1 { return nil }
      guard let child else { break }
      leaver = child
    }
    return leaver == RouteTree.root ? nil : Replacement(leaver: leaver, parent: parent)
  }

  /// The record of the node that lists the newcomer. For a neighbour, that record is this node's own record, otherwise
  /// the record of the nearest relay that lists the newcomer.
  private func parent(for newcomer: NodeID) -> Int? {
    if link(to: newcomer) != nil { return RouteTree.root }
    var best: (number: Int, cost: UInt32)?
    for number in 1..<database.end {
      let record = database.records[number]
      guard let route = record.route, record.relays, let entry = database.entry(number, of: newcomer),
        route.hops < Limits.hopsMax || paths.firstLink(toward: number, within: Limits.hopsMax - 1) != nil
      else { continue }
      let cost = route.cost + UInt32(entry.cost)
      if let best, best.cost <= cost { continue }
      best = (number, cost)
    }
    return best?.number
  }
}

/// The tree of all routes, with the number of evictable nodes in each subtree.
private struct RouteTree {
  /// This node's own record.
  static let root = 0

  private let database: Database
  private var weights = Limits.PerNode<UInt16>(repeating: 0)
  private(set) var isKept = Limits.PerNode<Bool>(repeating: false)
  private var isAboveNewcomer = Limits.PerNode<Bool>(repeating: false)

  init(_ database: Database) { self.database = database }

  func holds(_ number: Int) -> Bool { database.records[number].id != .none && database.records[number].isInTree }

  /// Protects a node, and the nodes on the path to it, from eviction.
  mutating func keep(_ number: Int) {
    var number = number
    while number != Self.root, !isKept[number] {
      isKept[number] = true
      number = Int(database.records[number].parent)
    }
  }

  mutating func count(_ number: Int, isNewcomer: Bool = false) {
    var number = number
    while number != Self.root {
      weights[number] += 1
      if isNewcomer { isAboveNewcomer[number] = true }
      number = Int(database.records[number].parent)
    }
  }

  func heaviestChild(of parent: Int) -> (number: Int?, weight: UInt16) {
    var heaviest: Int?
    var most: UInt16 = 0
    for number in 1..<database.end where holds(number) && Int(database.records[number].parent) == parent {
      let weight = weights[number]
      if weight > most || weight == most && weight > 0 && isAboveNewcomer[number] {
        (heaviest, most) = (number, weight)
      }
    }
    return (heaviest, most)
  }
}
