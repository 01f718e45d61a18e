import Frame
import Primitives

/// Chooses the node that a full database evicts for a newcomer. It is a node without a route or, if there is none, one
/// in the largest subtree of the route tree.
///
/// An invented node is listed by its inventor or by another invented node, because honest nodes list only neighbours
/// that proved their keys. All invented nodes are therefore in one subtree. The search descends from this node, each
/// time to the child with the most nodes, and evicts the node at the end. This is the push-out of Choudhury and Hahne
/// (1998), with the subtree as the holder. A newcomer counts in the subtree that it would join, so a node that invents
/// others replaces its own. Among equal subtrees the newcomer's is searched, and among equal nodes the newcomer itself
/// is refused. Subtrees thus become equal, and then nothing changes any more.
///
/// The time is proportional to the number of nodes times `Limits.neighboursMax`. The owner limits how often it is used.
extension Mesh {
  /// A place for a node that is not known yet.
  public struct Place {
    /// The indices of the node to evict and of the one that lists the newcomer.
    let leaver: Int
    let parent: Int
  }

  /// The place for `newcomer`, or nil if no node with a route lists it or if the newcomer is the one to refuse.
  /// Neighbours, kept nodes, and nodes on the paths to them are never evicted.
  public func place(for newcomer: NodeID, isKept: (NodeID) -> Bool) -> Place? {
    guard let parent = parent(for: newcomer) else { return nil }
    if let number = database.unreachable { return Place(leaver: number, parent: parent) }
    var tree = RouteTree(database)
    for number in 1..<database.end where tree.holds(number) {
      let node = node(at: number)
      if link(to: node) != nil || isKept(node) { tree.keep(number) }
    }
    for number in 1..<database.end where tree.holds(number) && !tree.isKept[number] { tree.count(number) }
    let isNewcomerKept = parent == RouteTree.root || isKept(newcomer)
    if !isNewcomerKept { tree.count(parent, isNewcomer: true) }
    var place = RouteTree.root
    while true {
      let (child, weight) = tree.heaviestChild(of: place)
      if place == parent && !isNewcomerKept && weight <= 1 { return nil }
      guard let child else { break }
      place = child
    }
    return place == RouteTree.root ? nil : Place(leaver: place, parent: parent)
  }

  /// The record below which a newcomer would be placed: this node's own for a neighbour, otherwise the nearest relay
  /// that lists it.
  private func parent(for newcomer: NodeID) -> Int? {
    if link(to: newcomer) != nil { return RouteTree.root }
    var best: (number: Int, cost: UInt32)?
    for number in 1..<database.end {
      let record = database.records[number]
      guard let route = record.route, record.relays, route.hops < Limits.hopsMax,
        let entry = database.entry(number, of: newcomer)
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

  /// Protects a node and its path from eviction.
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

  func heaviestChild(of place: Int) -> (number: Int?, weight: UInt16) {
    var heaviest: Int?
    var most: UInt16 = 0
    for number in 1..<database.end where holds(number) && Int(database.records[number].parent) == place {
      let weight = weights[number]
      if weight > most || weight == most && weight > 0 && isAboveNewcomer[number] {
        (heaviest, most) = (number, weight)
      }
    }
    return (heaviest, most)
  }
}
