import Frame
import Primitives

/// The state of one stored advertisement of a node.
struct Stamp {
  var epoch: UInt64 = 0
  var sequence: UInt64 = 0
  var expiresAt = Instant.never
  var lifetimeSeconds: UInt16 = 0
  var isHeld = false
  /// The links over which the advertisement must still be sent, one bit per slot.
  var unsent: UInt64 = 0
  /// The expiry time when the advertisement was last flooded.
  var toldExpiry = Instant.never
  /// Limits how often the node may renew the advertisement.
  var renewals = TokenBucket()

  func isOlder(thanEpoch epoch: UInt64, _ sequence: UInt64) -> Bool {
    self.epoch != epoch ? self.epoch < epoch : self.sequence < sequence
  }

  /// The milliseconds since the advertisement's source made it.
  func age(now: Instant) -> UInt64 {
    let lifetime = TimeSpan.seconds(UInt64(lifetimeSeconds)).milliseconds
    return lifetime - min(lifetime, (expiresAt - now).milliseconds)
  }
}

/// A known node and the route to it.
struct NodeRecord {
  /// The id of the node; `.none` in a free record.
  var id = NodeID.none
  /// The link slot over which the node became known.
  var ingress = UInt8(FairShare.ownHolder)
  var topology = Stamp()
  var profile = Stamp()
  var services = Stamp()
  var relays = false
  var route: Route?
  /// The record of the node before this record's node on the route. If `isProvisional`, there is no route yet, and
  /// `parent` is the record of the node that listed this node at its admission.
  var parent: UInt16 = 0
  /// Whether the node was admitted to a full database and has no route yet.
  var isProvisional = false

  /// Whether the node is in the route tree, because of its route or because the node of record `parent` lists it.
  var isInTree: Bool { route != nil || isProvisional }

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

/// A route to a node.
public struct Route: Equatable, Sendable {
  /// The link slot of the first hop.
  public var link: UInt8
  /// The neighbour at the other end of the route's first link.
  public var firstHop: NodeID
  /// The number of links on the path. 1 for a neighbour.
  public var hops: UInt8
  /// The sum of the costs of all links on the path.
  public var cost: UInt32
  /// The longest frame payload that every link on the path accepts, in bytes.
  public var payloadBytesMax: Int
}
