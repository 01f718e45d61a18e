import Channel
import Frame
import Mesh
import Primitives

/// Reliable messages that their receiver drops: the acknowledgement says that the node is there, and how long the way takes.
/// docs/protocol.md, "Message kinds".
enum Probe {
  static let kind: UInt8 = 28
}

extension Node {
  /// Sends a probe to a peer; `Output.completed` follows. Errors: as `send`.
  public func probe(_ peer: NodeID, now: Instant) throws(AssociationRefusal) -> MessageID {
    let nothing: [UInt8] = []
    return try send(kind: Probe.kind, nothing.span.bytes, to: peer, lane: .interactive, now: now)
  }

  /// The links of the present route to a node, the nearest first, each as its nearer end lists it; nothing without a route.
  public func way(to node: NodeID) -> [Neighbour] {
    var way: [Neighbour] = []
    var end = node
    while end != settings.id {
      guard way.count < Int(Limits.hopsMax), let (hop, from) = mesh.lastHop(to: end) else { return [] }
      way.append(hop)
      end = from
    }
    return way.reversed()
  }
}
