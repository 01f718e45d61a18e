import Primitives

/// How well a peer is known. A peer keeps its place against peers of lower standing.
public enum Standing: Int, Comparable, Sendable {
  /// It has proved nothing to this node, or its frames prove nothing because they are plaintext.
  case stranger
  /// It proved its key in an earlier session. For `Admission`: its key was pinned by trust on first use, or the policy
  /// is `open`.
  case proven
  /// The operator pinned its key. A key pinned by trust on first use costs nothing and counts only as proven.
  case pinned

  public static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
}

/// The peers that most recently proved their key in a session. One that comes back gets a place for its handshake that
/// unknown peers do not.
///
/// A node with many keys can take entries at the cost of a whole handshake each. An entry is charged to the link that
/// delivered the peer's frames. In a full table, the oldest entry of the link with the most entries is replaced.
struct ProvenPeers {
  /// One for each association.
  static let placesMax = Limits.channelsMax

  private struct Entry {
    var node = NodeID.none
    /// The slot of the link, or `FairShare.ownHolder` after it has closed.
    var holder = FairShare.ownHolder
    /// Increases with each proof.
    var order: UInt64 = 0
  }

  private var entries = FixedArray<64, Entry>(repeating: Entry())
  private var lastOrder: UInt64 = 0

  func contains(_ node: NodeID) -> Bool { entries.indices.contains { entries[$0].node == node } }

  /// Records that `node` proved its key over the link of `holder`.
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
