import Primitives

/// One bit for each place of a node.
struct LocalBits {
  private var words = FixedArray<4, UInt64>(repeating: 0)
  /// Places of nodes, one for each that can be known at once.
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

/// The services of one type, or of all types that the client may use, as far as it was told of them. What it is told next
/// is read from the node when it goes: a client that reads nothing costs a bit a node.
struct LocalBrowse {
  let number: UInt32
  /// Empty: all.
  let type: [UInt8]
  /// Places that the client knows.
  var told = LocalBits()
  /// Places that have changed since.
  var dirty = LocalBits()
  /// The client knows that it was told of all that was there at the beginning.
  var isAllTold = false

  init(number: UInt32, type: [UInt8], places: LocalPlaces) {
    self.number = number
    self.type = type
    for place in 0..<LocalBits.count where places.nodes[place] != .none { dirty[place] = true }
  }
}

/// The nodes that offer services, each in a place of its own as long as it does. A place that becomes free is taken by the
/// next node: clients see that it is another one.
struct LocalPlaces {
  private(set) var nodes = [NodeID](repeating: .none, count: LocalBits.count)

  /// The place of a node that offers services, or no longer does; nil when there is none.
  mutating func place(of node: NodeID, offers: Bool) -> Int? {
    let known = nodes.firstIndex(of: node)
    guard let place = known ?? (offers ? nodes.firstIndex(of: .none) : nil) else { return nil }
    nodes[place] = offers ? node : .none
    return place
  }

  func place(of node: NodeID) -> Int? { nodes.firstIndex(of: node) }
}
