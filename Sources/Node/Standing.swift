import Primitives

/// How well a peer is known here. A peer keeps its place against those of a lower standing.
public enum Standing: Int, Comparable, Sendable {
  /// It has proved nothing to this node, or its frames prove nothing, because they are in clear.
  case stranger
  /// It proved its key in a session before. For `Admission`: its key was pinned at first sight, or the policy is `open`.
  case proven
  /// The operator pinned its key. A key that is pinned at first sight costs nothing, and is no more than a proven one.
  case pinned

  public static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
}

/// The peers that proved their key in a session last. When one of them comes back, it finds a place for its handshake that
/// strangers do not get.
///
/// A node with many keys can take places, each for a whole handshake. A place is charged to the link that brought the
/// peer. When all are taken, the oldest of the link with most places is replaced.
struct ProvenPeers {
  /// One for each association.
  static let placesMax = Limits.channelsMax

  private struct Entry {
    var node = NodeID.none
    /// The slot of the link; `FairShare.ownHolder` after it has closed.
    var holder = FairShare.ownHolder
    /// Counts up with each proof.
    var order: UInt64 = 0
  }

  private var entries = FixedArray<64, Entry>(repeating: Entry())
  private var lastOrder: UInt64 = 0

  func contains(_ node: NodeID) -> Bool { entries.indices.contains { entries[$0].node == node } }

  /// `node` proved its key over the link of `holder`.
  mutating func note(_ node: NodeID, on holder: Int) {
    lastOrder += 1
    let place = entries.indices.first { entries[$0].node == node } ?? entries.indices.first { entries[$0].order == 0 }
    entries[place ?? oldestOfLargest] = Entry(node: node, holder: holder, order: lastOrder)
  }

  mutating func linkClosed(_ slot: Int) {
    for index in entries.indices where entries[index].holder == slot { entries[index].holder = FairShare.ownHolder }
  }

  private var oldestOfLargest: Int {
    var share = FairShare(capacity: Self.placesMax)
    for index in entries.indices { share.take(1, by: entries[index].holder) }
    var oldest = 0
    var most = 0
    for index in entries.indices {
      let held = share.held(by: entries[index].holder)
      if held > most || held == most && entries[index].order < entries[oldest].order { (oldest, most) = (index, held) }
    }
    return oldest
  }
}
