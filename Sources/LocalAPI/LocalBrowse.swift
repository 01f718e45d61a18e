import Primitives

/// A set of references of a browse. A reference is the number by which a browse refers to a node (docs/local-api.md,
/// event 130).
struct LocalBits {
  private var words = FixedArray<4, UInt64>(repeating: 0)
  /// The number of references: one for each node that this node can know at once.
  static let count = Limits.nodesMax

  subscript(reference: Int) -> Bool {
    get { words[reference / 64] >> UInt64(reference % 64) & 1 == 1 }
    set {
      let bit = UInt64(1) << UInt64(reference % 64)
      words[reference / 64] = newValue ? words[reference / 64] | bit : words[reference / 64] & ~bit
    }
  }

  var first: Int? {
    for word in 0..<4 where words[word] != 0 { return word * 64 + words[word].trailingZeroBitCount }
    return nil
  }
}

/// A browse for the services of one type, or of all types that the client may use.
///
/// An event of the browse is built when it is sent, from the services that a node offers at the time of sending. So a
/// client that reads nothing costs one bit for each node.
struct LocalBrowse {
  let number: UInt32
  /// The service type; empty for all types.
  let type: [UInt8]
  /// The references of nodes whose services were reported to the client.
  var told = LocalBits()
  /// The references of nodes whose services have changed since the last report to the client.
  var dirty = LocalBits()
  /// Whether the client was notified that all initial services have been reported.
  var isAllTold = false

  init(number: UInt32, type: [UInt8], references: NodeReferences) {
    self.number = number
    self.type = type
    for reference in 0..<LocalBits.count where references.nodes[reference] != .none { dirty[reference] = true }
  }
}

/// The nodes that offer services. Each node has a reference of its own while it offers a service. A free reference is
/// assigned to the next node that offers a service. Clients recognize the new node by its id.
struct NodeReferences {
  private(set) var nodes = [NodeID](repeating: .none, count: LocalBits.count)

  /// Assigns a reference to a node that offers services, or frees the reference of a node that offers none. Returns the
  /// reference, or nil if the node has none.
  mutating func reference(of node: NodeID, offers: Bool) -> Int? {
    let known = nodes.firstIndex(of: node)
    guard let reference = known ?? (offers ? nodes.firstIndex(of: .none) : nil) else { return nil }
    nodes[reference] = offers ? node : .none
    return reference
  }

  func reference(of node: NodeID) -> Int? { nodes.firstIndex(of: node) }
}
