import Primitives

/// A bit set over the places of nodes.
struct LocalBits {
  private var words = FixedArray<4, UInt64>(repeating: 0)
  /// The number of places: one for each node that can be known at once.
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
/// The next event is built from the node's current services when it is sent. So a client that reads nothing costs one
/// bit per node.
struct LocalBrowse {
  let number: UInt32
  /// The service type; empty for all types.
  let type: [UInt8]
  /// The places that the client knows.
  var told = LocalBits()
  /// The places that have changed since they were reported.
  var dirty = LocalBits()
  /// Whether the client was notified that the initial services are complete.
  var isAllTold = false

  init(number: UInt32, type: [UInt8], places: LocalPlaces) {
    self.number = number
    self.type = type
    for place in 0..<LocalBits.count where places.nodes[place] != .none { dirty[place] = true }
  }
}

/// The nodes that offer services. Each has its own place while it offers a service. A free place goes to the next node;
/// clients recognize that by the node's id.
struct LocalPlaces {
  private(set) var nodes = [NodeID](repeating: .none, count: LocalBits.count)

  /// Assigns or frees the place of a node. Returns nil if it has none.
  mutating func place(of node: NodeID, offers: Bool) -> Int? {
    let known = nodes.firstIndex(of: node)
    guard let place = known ?? (offers ? nodes.firstIndex(of: .none) : nil) else { return nil }
    nodes[place] = offers ? node : .none
    return place
  }

  func place(of node: NodeID) -> Int? { nodes.firstIndex(of: node) }
}
