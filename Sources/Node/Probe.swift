import Channel
import Frame
import Mesh
import Primitives

/// Probes: reliable messages that their receiver drops. The acknowledgement of a probe proves that the receiver is
/// alive, and the time until the acknowledgement arrives is the round-trip time. docs/protocol.md, "Message kinds".
enum Probe {
  static let kind: UInt8 = 28
}

extension Node {
  /// Sends a probe to a peer. `Output.completed` follows with the result of the probe. Throws the same errors as
  /// `send`.
  public func probe(_ peer: NodeID, now: Instant) throws(AssociationError) -> MessageID {
    let nothing: [UInt8] = []
    return try send(kind: Probe.kind, nothing.span.bytes, to: peer, lane: .interactive, now: now)
  }

  /// The links of the current route to a node, nearest first. Each link of the list is as its nearer end lists it. The
  /// list is empty without a route.
  public func way(to node: NodeID) -> [Neighbour] {
    guard let route = mesh.route(to: node) else { return [] }
    var way: [Neighbour] = []
    var end = node
    for hops in (1...route.hops).reversed() {
      guard let (hop, from) = mesh.lastHop(to: end, hops: hops) else { return [] }
      way.append(hop)
      end = from
    }
    return way.reversed()
  }
}
