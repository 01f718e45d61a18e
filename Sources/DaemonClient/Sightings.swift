import LocalAPI
import Primitives
import Session

/// A service that a browse has reported, with the description of its node.
public struct Sighting: Equatable {
  public let address: MemberAddress
  public let peer: LocalPeer
  public let service: Service

  public init(_ node: NodeID, _ peer: LocalPeer, _ service: Service) {
    address = MemberAddress(node: node, endpoint: service.endpoint)
    self.peer = peer
    self.service = service
  }

  /// The name that the application chose in its discovery info (“name=…”); nil if there is none. Like every name, the
  /// chosen name is untrusted.
  public var chosenName: [UInt8]? {
    let key = Array("name=".utf8)
    guard let pair = service.info.first(where: { $0.starts(with: key) }), pair.count > key.count else { return nil }
    return Array(pair[key.count...])
  }
}

extension Sighting {
  fileprivate func comesBefore(_ other: Sighting) -> Bool {
    if peer.name != other.peer.name { return peer.name.lexicographicallyPrecedes(other.peer.name) }
    return address < other.address
  }
}

/// The services that a browse has reported. The services are stored by node and not by reference, because the daemon
/// may give a node another reference. A reference is the number by which the browse refers to a node.
public struct Sightings {
  /// A change to the services.
  public enum Change: Equatable {
    case found(Sighting)
    case changed(Sighting)
    case lost(Sighting)
  }

  /// All services, ordered by name.
  public private(set) var all: [Sighting] = []
  private var references: [(reference: UInt16, node: NodeID)] = []

  public init() {}

  /// Handles a `services` event. Returns the changes.
  public mutating func update(
    reference: UInt16, _ node: NodeID, _ peer: LocalPeer, _ services: [Service]
  ) -> [Change] {
    let known = references.firstIndex { $0.reference == reference }
    let former = known.map { references.remove(at: $0).node }
    var changes: [Change] = []
    if !services.isEmpty {
      references.append((reference, node))
      update(node, services.map { Sighting(node, peer, $0) }, &changes)
    }
    // A node that has moved to another reference is not lost.
    if let former, !references.contains(where: { $0.node == former }) { update(former, [], &changes) }
    return changes
  }

  private mutating func update(_ node: NodeID, _ now: [Sighting], _ changes: inout [Change]) {
    for index in all.indices.reversed() where all[index].address.node == node {
      guard !now.contains(where: { $0.address == all[index].address }) else { continue }
      changes.append(.lost(all.remove(at: index)))
    }
    for sighting in now {
      guard let index = all.firstIndex(where: { $0.address == sighting.address }) else {
        insert(sighting)
        changes.append(.found(sighting))
        continue
      }
      if all[index] == sighting { continue }
      all.remove(at: index)
      insert(sighting)
      changes.append(.changed(sighting))
    }
  }

  private mutating func insert(_ sighting: Sighting) {
    all.insert(sighting, at: all.firstIndex { sighting.comesBefore($0) } ?? all.count)
  }

  public func sighting(of address: MemberAddress) -> Sighting? { all.first { $0.address == address } }
}
