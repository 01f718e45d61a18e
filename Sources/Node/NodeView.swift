import Frame
import Link
import Mesh
import Primitives
import Seal

/// What the node does about a candidate.
public enum DialPlan: Equatable, Sendable {
  /// Other links suffice: see `LinkSelection` and `BluetoothChoice`.
  case notWanted
  /// It is dialled at this instant, or soon after it: earlier dials go first.
  case waiting(until: Instant)
  /// Its dial is due, and the radio has no place.
  case lacksPlace
  case dialling
  /// There is a link or a dial to its node over this bearer.
  case served
}

/// What a node advertises, as far as this one holds it.
public struct NodeTopology: Equatable {
  public let id: NodeID
  /// Nil as long as its profile is not known.
  public let name: [UInt8]?
  public let relays: Bool
  /// Nil as long as its links are not known.
  public let encryption: EncryptionPreference?
  /// Since it said so.
  public let age: TimeSpan
  public let neighbours: [Neighbour]
}

/// The state of the node, for people who ask why it talks to somebody or does not. These calls allocate: they are not for the
/// forwarding path.
extension Node {
  /// What is done about a candidate, how many tries in a row have failed, and the first 8 bytes of the node's id that is
  /// expected there (0: none). Nil for an unknown handle.
  public func plan(_ handle: UInt32, now: Instant) -> (plan: DialPlan, failures: UInt32, hint: UInt64)? {
    guard let candidate = connector.candidates.first(where: { $0.handle == handle }) else { return nil }
    let plan: DialPlan =
      switch candidate.phase {
      case .dialling: .dialling
      case .linked, .served: .served
      case .waiting(let start):
        !candidate.isWanted
          ? .notWanted : candidate.lacksPlace ? .lacksPlace : .waiting(until: candidate.dialTime(start))
      }
    return (plan, candidate.failures, candidate.hint)
  }

  /// What each known node advertises, this one included, in no order.
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

  /// The longest frame payload on the route to a node, in bytes; 0 without a route.
  public func payloadBytesMax(to node: NodeID) -> Int { mesh.route(to: node)?.payloadBytesMax ?? 0 }

  /// Whether a link keeps breaking, so that it is used last.
  public func isQuarantined(_ slot: Int, now: Instant) -> Bool {
    flaps.isQuarantined(links[slot].peer, links[slot].bearer, now: now)
  }

  /// Links with a stream, of which there may be `NodeSettings.linksMax`.
  public var openLinkCount: Int { links.indices.count(where: isOpen) }

  /// Why there is no sealed session with a peer, and for how long; nil with one, in clear, and before one was tried.
  public func sealObstacle(with peer: NodeID, now: Instant) -> (reason: SealObstacle, age: TimeSpan)? {
    let none = TimeSpan(nanoseconds: 0)
    switch associations.association(with: peer)?.protection ?? protection(of: peer) {
    case nil, .clear: return nil
    case .refused(let reason): return (.refused(reason, byPeer: false), none)
    case .sealed(let seal):
      if seal.isOpen { return nil }
      if let obstacle = seal.obstacle, obstacle.reason != .noPlaceHere, obstacle.reason != .failed(.displaced) {
        return (obstacle.reason, now - obstacle.since)
      }
      return seal.isHandshaking || hasPlace(for: peer, now) ? nil : (.noPlaceHere, none)
    }
  }

  /// Since when a peer has answered no attempt to begin a session, and when the last one was made; nil when it has
  /// answered, and without an attempt.
  public func unansweredSeal(with peer: NodeID) -> (since: Instant, last: Instant)? {
    guard let seal = associations.association(with: peer)?.protection.seal, !seal.isOpen else { return nil }
    return seal.unanswered
  }

  /// Whether a peer has proved its key in a session that is in use.
  public func hasSession(with peer: NodeID) -> Bool {
    associations.association(with: peer)?.protection.seal?.isOpen ?? false
  }

  /// Whether nothing is sent to a peer now, because one of the two refused the other a moment ago.
  public func isInRefusalPause(with peer: NodeID) -> Bool {
    associations.association(with: peer)?.protection.refusal != nil
  }
}
