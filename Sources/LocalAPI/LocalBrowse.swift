import Primitives

/// A set of places of a browse. A place is the number by which a browse refers to a node (docs/local-api.md, event
/// 130).
struct LocalBits {
  private var words = FixedArray<4, UInt64>(repeating: 0)
  /// The number of places: one for each node that this node can know at once.
  static let count = Limits.nodesMax

  subscript(place: Int) -> Bool {
    get { words[place / 64] >> UInt64(place % 64) & 1 == 1 }
    set {
      let bit = UInt64(1) << UInt64(place % 64)
      words[place / 64] = newValue ? words[place / 64] | bit : words[place / 64] & ~bit
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
  /// The places of nodes whose services were reported to the client.
  var told = LocalBits()
  /// The places of nodes whose services have changed since the last report to the client.
  var dirty = LocalBits()
  /// Whether the client was notified that all initial services have been reported.
  var isAllTold = false

  init(number: UInt32, type: [UInt8], places: LocalPlaces) {
    self.number = number
    self.type = type
    for place in 0..<LocalBits.count where places.nodes[place] != .none { dirty[place] = true }
  }
}

/// The nodes that offer services. Each node has a place of its own while it offers a service. A free place is assigned
/// to the next node that offers a service. Clients recognize the new node by its id.
struct LocalPlaces {
  private(set) var nodes = [NodeID](repeating: .none, count: LocalBits.count)

  /// Assigns a place to a node that offers services, or frees the place of a node that offers none. Returns the place,
  /// or nil if the node has none.
  mutating func place(of node: NodeID, offers: Bool) -> Int? {
    let known = nodes.firstIndex(of: node)
    guard let place = known ?? (offers ? nodes.firstIndex(of: .none) : nil) else { return nil }
    nodes[place] = offers ? node : .none
    return place
  }

  func place(of node: NodeID) -> Int? { nodes.firstIndex(of: node) }
}
