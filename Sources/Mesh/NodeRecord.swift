import Frame
import Primitives

/// The held advertisement of one kind of a node.
struct Stamp {
  var epoch: UInt64 = 0
  var sequence: UInt64 = 0
  var expiresAt = Instant.never
  var lifetimeSeconds: UInt16 = 0
  var isHeld = false
  /// Links over which the advertisement must still be sent, one bit per slot.
  var unsent: UInt64 = 0
  /// The expiry that all neighbours were to be told of.
  var toldExpiry = Instant.never
  /// How often the node may renew it.
  var renewals = TokenBucket()

  func isOlder(thanEpoch epoch: UInt64, _ sequence: UInt64) -> Bool {
    self.epoch != epoch ? self.epoch < epoch : self.sequence < sequence
  }

  /// Milliseconds since the origin made it.
  func age(now: Instant) -> UInt64 {
    let lifetime = TimeSpan.seconds(UInt64(lifetimeSeconds)).milliseconds
    return lifetime - min(lifetime, (expiresAt - now).milliseconds)
  }
}

/// One known node, and the route to it.
struct NodeRecord {
  /// `.none` in a free record.
  var id = NodeID.none
  /// The link slot over which the node became known.
  var ingress = UInt8(FairShare.ownHolder)
  var topology = Stamp()
  var profile = Stamp()
  var services = Stamp()
  var relays = false
  var route: Route?
  /// The record before it on the path of its route; with `isPlaced`, which is until it has a route, the one below which
  /// it was let in.
  var parent: UInt16 = 0
  var isPlaced = false

  var isInTree: Bool { route != nil || isPlaced }

  subscript(kind: AdvertisementKind) -> Stamp {
    get {
      switch kind {
      case .topology: topology
      case .profile: profile
      case .services: services
      }
    }
    set {
      switch kind {
      case .topology: topology = newValue
      case .profile: profile = newValue
      case .services: services = newValue
      }
    }
  }
}

/// The route to a node.
public struct Route: Equatable, Sendable {
  /// The link slot of the first hop.
  public var link: UInt8
  /// The neighbour at its other end.
  public var firstHop: NodeID
  /// Links on the path: 1 for a neighbour.
  public var hops: UInt8
  /// Sum of the links' costs.
  public var cost: UInt32
  /// The longest frame payload that every link on the path accepts, in bytes.
  public var payloadBytesMax: Int
}
