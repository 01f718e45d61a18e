import Frame
import Link
import Mesh
import Primitives
import Seal

/// The node's plan for dialling a candidate.
public enum DialPlan: Equatable, Sendable {
  /// The candidate is not dialled, because other links suffice. See `LinkSelection` and `BluetoothChoice.swift`.
  case notWanted
  /// The candidate is dialled at this instant, or soon after it if other dials were due earlier.
  case waiting(until: Instant)
  /// The dial is due, but the radio has no free connection.
  case lacksSlot
  case dialling
  /// A link or dial to the candidate's node over the same bearer exists.
  case served
}

/// The advertised topology of a node, as stored here.
public struct NodeTopology: Equatable {
  public let id: NodeID
  /// The display name of the node; nil if the profile is unknown.
  public let name: [UInt8]?
  public let relays: Bool
  /// The encryption preference of the node; nil if the topology is unknown.
  public let encryption: EncryptionPreference?
  /// The age of the node's topology advertisement.
  public let age: TimeSpan
  public let neighbours: [Neighbour]
}

/// The state of the node, for people who ask why it does or does not communicate with another node. These methods
/// allocate, so they must not be used on the forwarding path.
extension Node {
  /// The plan for a candidate, its consecutive failures, and the first 8 bytes of the id of the node expected there (0:
  /// unknown). nil for an unknown handle.
  public func plan(_ handle: UInt32, now: Instant) -> (plan: DialPlan, failures: UInt32, hint: UInt64)? {
    guard let candidate = connector.candidates.first(where: { $0.handle == handle }) else { return nil }
    let plan: DialPlan =
      switch candidate.phase {
      case .dialling: .dialling
      case .linked, .served: .served
      case .waiting(let start):
        !candidate.isWanted
          ? .notWanted : candidate.lacksSlot ? .lacksSlot : .waiting(until: candidate.dialTime(start))
      }
    return (plan, candidate.failures, candidate.hint)
  }

  /// The topologies of all known nodes, including this node, in no order.
  public func topologies(now: Instant) -> [NodeTopology] {
    var all: [NodeTopology] = []
    for index in 0..<mesh.indexEnd where mesh.node(at: index) != .none { all.append(topology(at: index, now)) }
    return all
  }

  private func topology(at index: Int, _ now: Instant) -> NodeTopology {
    var name: [UInt8]?
    if let bytes = mesh.advertisement(of: index, .profile), let view = try? AdvertisementView(bytes),
      let profile = try? ProfileView(view.body)
    {
      name = (0..<profile.name.byteCount).map { profile.name.byte($0) }
    }
    var neighbours: [Neighbour] = []
    var flags: TopologyFlags?
    if let bytes = mesh.advertisement(of: index, .topology), let view = try? AdvertisementView(bytes),
      let topology = try? TopologyView(view.body)
    {
      flags = topology.flags
      for entry in 0..<topology.count { if let neighbour = try? topology.entry(entry) { neighbours.append(neighbour) } }
    }
    return NodeTopology(
      id: mesh.node(at: index), name: name, relays: flags?.relays ?? false, encryption: flags?.encryption,
      age: index == 0 ? TimeSpan(nanoseconds: 0) : .milliseconds(mesh.age(of: index, .topology, now: now)),
      neighbours: neighbours)
  }

  /// The longest frame payload on the route to a node, in bytes. 0 without a route.
  public func payloadBytesMax(to node: NodeID) -> Int { mesh.route(to: node)?.payloadBytesMax ?? 0 }

  /// The neighbour to which this node sends a frame for `node` that may still travel over `hops` links. The result is
  /// nil if `node` is farther away.
  public func nextHop(to node: NodeID, within hops: UInt8) -> NodeID? {
    mesh.link(to: node, within: hops).map { links[$0].peer }
  }

  /// Whether a link breaks so often that it is used only without another route.
  public func isQuarantined(_ slot: Int, now: Instant) -> Bool {
    flaps.isQuarantined(links[slot].peer, links[slot].bearer, now: now)
  }

  /// The number of links with a stream, at most `NodeSettings.linksMax`.
  public var openLinkCount: Int { links.indices.count(where: isOpen) }

  /// The reason why there is no encrypted session with a peer, and how long ago that reason arose. nil if there is a
  /// session, if traffic is in plaintext, or if the first attempt has not ended.
  public func sealObstacle(with peer: NodeID, now: Instant) -> (reason: SealObstacle, age: TimeSpan)? {
    let none = TimeSpan(nanoseconds: 0)
    switch associations.association(with: peer)?.protection ?? protection(of: peer) {
    case nil, .clear: return nil
    case .refused(let reason): return (.refused(reason, byPeer: false), none)
    case .sealed(let seal):
      if seal.isOpen { return nil }
      if let obstacle = seal.obstacle, obstacle.reason != .noSlotHere, obstacle.reason != .failed(.displaced) {
        return (obstacle.reason, now - obstacle.since)
      }
      return seal.isHandshaking || hasSlots(for: peer, now) ? nil : (.noSlotHere, none)
    }
  }

  /// The time since which a peer has answered no session attempt, and the time of the last attempt. nil if the peer has
  /// answered, or if no attempt was made.
  public func unansweredSeal(with peer: NodeID) -> (since: Instant, last: Instant)? {
    guard let seal = associations.association(with: peer)?.protection.seal, !seal.isOpen else { return nil }
    return seal.unanswered
  }

  /// Whether a peer has proved its key in a session that is in use.
  public func hasSession(with peer: NodeID) -> Bool {
    associations.association(with: peer)?.protection.seal?.isOpen ?? false
  }

  /// Whether sending to a peer is paused, because one of the two nodes recently refused the other.
  public func isInRefusalPause(with peer: NodeID) -> Bool {
    associations.association(with: peer)?.protection.refusal != nil
  }
}
