import Primitives

/// The admission class of a peer: how much the peer has proved to this node. A peer of a higher class is preferred when
/// slots of a shared table are scarce.
public enum Standing: Int, Comparable, Sendable {
  /// The peer has proved nothing to this node, or its frames prove nothing because they are plaintext.
  case stranger
  /// The peer proved its key in an earlier encrypted session. For `Admission`: its key was pinned by trust on first
  /// use, or the trust policy is `open`.
  case proven
  /// The operator pinned the peer's key. A pin by trust on first use gives at most the class `proven`, because anyone
  /// can get a pin of this kind at no cost.
  case pinned

  public static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
}

/// The peers that most recently proved their keys in an encrypted session. When a recorded peer returns, it can use
/// handshake slots that are reserved against strangers.
///
/// A machine with many keys can take many entries, but each entry costs it a complete handshake. An entry is charged to
/// the link that delivered the peer's frames. In a full table, the oldest entry of the link with the most entries is
/// replaced.
struct ProvenPeers {
  /// The table has one entry for each association.
  static let entriesMax = Limits.channelsMax

  private struct Entry {
    var node = NodeID.none
    /// The slot of the link to which the entry is charged, or `FairShare.ownHolder` after that link has closed.
    var holder = FairShare.ownHolder
    /// The number of the proof, which increases with each proof. 0 in a free entry.
    var order: UInt64 = 0
  }

  private var entries = FixedArray<64, Entry>(repeating: Entry())
  private var lastOrder: UInt64 = 0

  func contains(_ node: NodeID) -> Bool { entries.indices.contains { entries[$0].node == node } }

  /// Records that `node` proved its key over the link in slot `holder`.
  mutating func note(_ node: NodeID, on holder: Int) {
    lastOrder += 1
    let index = entries.indices.first { entries[$0].node == node } ?? entries.indices.first { entries[$0].order == 0 }
    entries[index ?? oldestOfLargest] = Entry(node: node, holder: holder, order: lastOrder)
  }

  mutating func linkClosed(_ slot: Int) {
    for index in entries.indices where entries[index].holder == slot { entries[index].holder = FairShare.ownHolder }
  }

  private var oldestOfLargest: Int {
    FairShare.oldestOfLargest(Self.entriesMax, holder: { entries[$0].holder }, order: { entries[$0].order })
  }
}
