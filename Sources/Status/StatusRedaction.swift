import JSON
import Text

extension StatusReport {
  /// Removes from the status what an outsider must not see. `redaction` is applied to each text. Unless identities are
  /// kept, the name of a node becomes “peer-” and the start of the node's id. The values of discovery info are removed,
  /// and its keys are kept.
  public func redact(_ redaction: Redaction) { change(root, redaction) }

  private func change(_ value: JSONView, _ redaction: Redaction) {
    if !redaction.keepsIdentities {
      rename(value, "name", after: ["id", "peer", "pinned"])
      rename(value, "offered_name", after: ["offered"])
      value["info"].forEach { pair in
        let key = Array(pair.string.utf8.prefix { $0 != UInt8(ascii: "=") })
        pair.set(key + Array("=…".utf8))
      }
    }
    value.forEachMember { change($1, redaction) }
    value.forEach { change($0, redaction) }
    if let text = value.text { value.set(redaction.applied(to: text)) }
  }

  private func rename(_ object: JSONView, _ name: StaticString, after ids: [StaticString]) {
    guard object[name].text != nil, let id = ids.first(where: { object[$0].text != nil }) else { return }
    object[name].set(Array("peer-".utf8) + object[id].string.utf8.prefix(8))
  }

  /// The complete status as JSON.
  public func json() -> [UInt8] { root.jsonText() }
}
