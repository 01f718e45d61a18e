import Frame
import Primitives

/// Which advertisement of one kind is held for a node.
struct Stamp {
  var epoch: UInt64 = 0
  var sequence: UInt64 = 0
  var expiresAt = Instant.never
  /// Zero when none is held.
  var byteCount = 0

  var isHeld: Bool { byteCount > 0 }

  func isOlder(thanEpoch epoch: UInt64, _ sequence: UInt64) -> Bool {
    self.epoch != epoch ? self.epoch < epoch : self.sequence < sequence
  }
}

/// What is known of one node, and the route to it.
struct NodeRecord {
  var id = NodeID.none
  var topology = Stamp()
  var profile = Stamp()
  var relays = false
  var neighbourCount = 0
  var route: Route?

  // Scratch of the shortest-path run.
  var isSettled = false
}

/// The way to a node, as the last shortest-path run found it.
public struct Route: Equatable, Sendable {
  /// The link slot of the first hop.
  public var link: UInt8
  /// The neighbour at its other end.
  public var firstHop: NodeID
  /// Links on the way: 1 for a neighbour.
  public var hops: UInt8
  /// Sum of the links' costs.
  public var cost: UInt32
  /// The longest frame payload that every link on the way takes.
  public var payloadBytesMax: Int

  /// Whether this way is preferred: cheaper, then shorter, then by the lower first hop, so that all nodes
  /// choose alike.
  func isBetter(than other: Route) -> Bool {
    if cost != other.cost { return cost < other.cost }
    if hops != other.hops { return hops < other.hops }
    return firstHop < other.firstHop
  }
}

/// A link of this node that may carry routed frames.
struct LocalLink {
  var peer = NodeID.none
  var bearer = BearerKind.ethernet
  var cost: UInt16 = 0
  var payloadBytesMax: UInt16 = 0
}
