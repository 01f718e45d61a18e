import JSON
import Text

/// The daemon's answer to the request `explain`, parsed by the command.
public struct ExplainReport {
  private let root: JSONView

  /// Parses the daemon's answer. Throws if it is not a JSON object.
  public init(_ json: [UInt8]) throws(AccessError) {
    guard let root = JSONView(parsing: json) else { throw .notUnderstood }
    self.root = root
  }

  /// Frees jansson's memory; the report must not be used afterwards.
  public func release() { root.release() }

  /// The nodes that the request `explain` accepts (`KnownNodes`); this box is the first.
  public var nodes: [(id: String, name: String)] {
    var all: [(id: String, name: String)] = []
    root["nodes"].forEach { all.append(($0["id"].string, $0["name"].string)) }
    return all
  }

  public var findings: [ExplainFinding] {
    var all: [ExplainFinding] = []
    root["findings"].forEach { finding in
      let state = finding["state"].string
      all.append(
        ExplainFinding(
          subject: finding["subject"].string,
          state: state.utf8.elementsEqual("good".utf8)
            ? .good : state.utf8.elementsEqual("wrong".utf8) ? .wrong : .note,
          text: finding["text"].string, remedy: finding["remedy"].string))
    }
    return all
  }

  public var canTalk: Bool { root["can_talk"].isTrue }

  public var outcome: Explanation.Outcome {
    let word = root["outcome"].string
    for outcome in Explanation.Outcome.allCases where word.utf8.elementsEqual("\(outcome.name)".utf8) { return outcome }
    return canTalk ? .unknown : .cannotTalk
  }

  public var verdict: String { root["verdict"].string }
  public var remedy: String { root["remedy"].string }
  public var from: String { called("from") }
  public var to: String { called("to") }

  private func called(_ key: StaticString) -> String {
    let id = root[key]["id"].string.utf8
    let name = root[key]["name"].string
    // An id whose upper half is zero stands for an address. Such an id has no meaning for people, so show only the
    // name.
    if id.prefix(16).allSatisfy({ $0 == 0x30 }) { return name }
    return joined(name, " (", String(decoding: id.prefix(8), as: UTF8.self), ")")
  }
}
