import JSON
import Primitives
import Text

extension Explanation {
  /// The JSON text (RFC 8259) of `causeway explain --json`. Keys are stable: later versions add keys, but remove none.
  public func toJSON() -> [UInt8] {
    let root = JSONObject()
    root.set("from", nodeJSON(facts.from))
    root.set("to", nodeJSON(facts.to))
    root.set("can_talk", canTalk)
    root.set("outcome", "\(outcome.name)")
    root.set("verdict", verdict)
    root.set("remedy", remedy)
    root.set(
      "findings",
      JSONArray(findings) { finding, object in
        object.set("subject", finding.subject)
        object.set("state", "\(finding.state.name)")
        object.set("text", finding.text)
        object.set("remedy", finding.remedy)
      })
    root.set(
      "route",
      JSONArray(hops) { hop, object in
        object.set("id", hop.node.text)
        object.set("name", name(hop.node))
        object.set("bearer", "\(hop.bearer.name)")
        object.set("cost", UInt64(hop.cost))
        object.set("payload_bytes_max", UInt64(hop.payloadBytesMax))
      })
    return root.text()
  }

  private func nodeJSON(_ id: NodeID) -> JSONObject {
    let object = JSONObject()
    object.set("id", id.text)
    object.set("name", name(id))
    return object
  }
}

/// The nodes that `causeway explain` accepts: those in the mesh, discovered, pinned, refused or dialled.
public struct KnownNodes {
  /// The maximum number of nodes. A node can list thousands of invented neighbours, so add nodes that are only listed
  /// by others last.
  static let nodesMax = 2_048

  public private(set) var all: [(id: NodeID, name: String)] = []

  public init() {}

  /// Adds an unknown node, up to `nodesMax`, or completes the entry of a known node. An id from discovery has only its
  /// upper half, and is merged with the complete id that has the same upper half.
  public mutating func add(_ id: NodeID, _ name: String) {
    guard id != .none else { return }
    guard let index = all.firstIndex(where: { $0.id.mayBe(id) }) else {
      if all.count < Self.nodesMax { all.append((id, name)) }
      return
    }
    if all[index].id.low == 0 && id.high != 0 { all[index].id = id }
    if all[index].name.utf8.isEmpty { all[index].name = name }
  }

  public func toJSON() -> [UInt8] {
    let root = JSONObject()
    root.set(
      "nodes",
      JSONArray(all) { node, object in
        object.set("id", node.id.text)
        object.set("name", node.name)
      })
    return root.text()
  }
}
